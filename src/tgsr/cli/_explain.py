"""`tgsr explain`: what a transfer scored, softened and why."""

from __future__ import annotations

import io
from pathlib import Path

import click

from tgsr._errors import InputError
from tgsr.cli._options import json_option
from tgsr.cli._write import say, say_json

_FIGURES = (".png", ".svg", ".pdf")


@click.command(name="explain", short_help="What a transfer scored, softened and why.")
@click.argument("run")
@click.option("--plot", metavar="FILE", help="Draw scores, groups and decay factors into a .png, .svg or .pdf file.")
@json_option
def command(run: str, plot: str | None, as_json: bool) -> None:
    """Explain RUN, the folder of a finished transfer: which neurons of each layer were softened, and why."""
    kind = None if plot is None else Path(plot).suffix.lower()
    if kind is not None and kind not in _FIGURES:
        raise InputError(f"a figure ends in {', '.join(_FIGURES)}", file=plot, remedy="Name it so")
    from tgsr.cli._status import run_at
    from tgsr.report._explain import explain

    found = explain(run_at(run).path)
    if plot is not None and kind is not None:
        from tgsr.storage import write_bytes

        image = io.BytesIO()
        found.plot().savefig(image, format=kind[1:], dpi=150, bbox_inches="tight")
        write_bytes(plot, image.getvalue())
    say_json(found.as_json()) if as_json else say(found.text)
