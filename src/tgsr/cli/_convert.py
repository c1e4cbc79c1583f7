"""`tgsr convert`: weights of another program as a network that a transfer can start from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tgsr._errors import InputError
from tgsr.cli._options import NAMES, NUMBERS
from tgsr.cli._write import say


@click.command(name="convert", short_help="Bring in a network from PyTorch, DeepXDE, Flax or Keras.")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--activation", required=True, metavar="NAME", help="tanh, sin, swish, gelu, softplus or sigmoid.")
@click.option("--coordinates", required=True, type=NAMES, metavar="x,t", help="Names of the inputs, in order.")
@click.option("--fields", required=True, type=NAMES, metavar="u,v", help="Names of the outputs, in order.")
@click.option("--centre", type=NUMBERS, metavar="0.5,1", help="The network takes (x - centre) / half-width.")
@click.option("--half-width", type=NUMBERS, metavar="0.5,1", help="One number per coordinate.")
@click.option("--offset", type=NUMBERS, metavar="20", help="The field is offset + scale * output.")
@click.option("--scale", type=NUMBERS, metavar="60", help="One number per field.")
@click.option("--prefix", help="Look only at keys that begin so.")
def command(source: str, target: str, **meaning: Any) -> None:
    """Write the network in IN, a .safetensors or PyTorch .pt file, into the new folder OUT.

    The file holds arrays only; what they mean you say here. A .pt file needs PyTorch and is opened for its
    weights alone. Then: tgsr transfer OUT FILE.py
    """
    folder = Path(target)
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError("exists already", file=target, remedy="Name a new folder")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be a folder ({error})", file=target, remedy="Name a new folder") from None
    from tgsr.network._import import import_network
    from tgsr.network._manifest import write_network
    from tgsr.network._pytorch import convert_pytorch

    read = convert_pytorch if Path(source).suffix in (".pt", ".pth") else import_network
    network = read(source, **meaning)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made ({error.strerror})", file=target, remedy="Name another folder") from None
    write_network(folder, network)
    shape = "-".join(map(str, network.widths))
    say(f"{shape} {network.activation} network written. Next: tgsr transfer {target} FILE.py")
