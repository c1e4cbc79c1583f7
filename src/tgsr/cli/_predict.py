"""`tgsr predict`: the fields of a finished run at any points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tgsr._errors import InputError
from tgsr.cli._options import Assignments, json_option
from tgsr.cli._write import say, say_json

if TYPE_CHECKING:
    from tgsr._result import Result
    from tgsr.cli._points import Columns


@click.command(name="predict", short_help="Evaluate the fields of a run at points.")
@click.argument("run")
@click.option(
    "--at",
    "at",
    multiple=True,
    type=Assignments("x=0.5,t=0.1"),
    metavar="x=0.5,t=0.1",
    help="A point; may be repeated.",
)
@click.option("--points", "file", metavar="FILE.csv", help="A table whose headings are the coordinates.")
@click.option(
    "--grid",
    type=Assignments("x=0:1:50,t=0:2:20"),
    metavar="x=0:1:50,t=0:2:20",
    help="low:high:count for each coordinate.",
)
@click.option("--extrapolate", is_flag=True, help="Allow points outside the problem's box.")
@click.option("--output", metavar="FILE", help="Write a .csv or .npz file instead of printing.")
@json_option
def command(
    run: str,
    at: Sequence[dict[str, str]],
    file: str | None,
    grid: dict[str, str] | None,
    extrapolate: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Evaluate the fields of RUN, as a table: one column per coordinate and per field.

    Points come from one of --at, --points and --grid.
    """
    if sum((bool(at), file is not None, grid is not None)) != 1:
        raise click.UsageError("Give points by exactly one of --at, --points and --grid.")
    if as_json and output is not None:
        raise click.UsageError("Give --json or --output, not both.")
    if output is not None and not output.endswith((".csv", ".npz")):
        raise InputError("a prediction is written as .csv or .npz", file=output, remedy="Name it so")
    from tgsr._runs import load
    from tgsr._truth import box_of
    from tgsr.cli import _points
    from tgsr.cli._status import run_at

    result = load(run_at(run).path)
    names = result.network.coordinates
    if grid is not None:
        columns, rows = _points.points_on(grid, names)
    elif file is not None:
        columns, rows = _points.points_in(file, names)
    else:
        columns, rows = _points.points_at(at, names)
    if not extrapolate:
        _points.check_inside(columns, rows, box_of(result), file)
    _write(result, columns, output, as_json)


def _write(result: Result, columns: Columns, output: str | None, as_json: bool) -> None:
    fields = result.predict(**columns)
    if as_json:
        lists = [{name: column.tolist() for name, column in part.items()} for part in (columns, fields)]
        say_json({"coordinates": lists[0], "fields": lists[1]})
        return
    everything = {**columns, **fields}
    if output is not None and output.endswith(".npz"):
        from tgsr.storage import write_arrays

        write_arrays(output, everything)
        return
    numbers = zip(*(column.tolist() for column in everything.values()), strict=True)
    lines = [",".join(everything), *(",".join(map(repr, row)) for row in numbers)]
    if output is None:
        say("\n".join(lines))
        return
    from tgsr.storage import write_bytes

    write_bytes(output, ("\n".join(lines) + "\n").encode())
