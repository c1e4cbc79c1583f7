"""`tgsr explain`: what a transfer scored, softened and why."""

from __future__ import annotations

from pathlib import Path

import click

from tgsr._errors import InputError
from tgsr.cli._options import json_option
from tgsr.cli._show import FIGURES, write_figure
from tgsr.cli._write import say, say_json


@click.command(name="explain", short_help="What a transfer scored, softened and why.")
@click.argument("run")
@click.option("--plot", metavar="FILE", help="Draw scores, mixtures and decay factors into a .png, .svg or .pdf file.")
@json_option
def command(run: str, plot: str | None, as_json: bool) -> None:
    """Explain RUN, the folder of a finished transfer: for every layer which neurons were softened, and why."""
    pass
