"""`tgsr show`: a run in any state, or all runs of a folder."""

from __future__ import annotations

import datetime
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgsr._errors import InputError, shown_path
from tgsr.cli._options import json_option
from tgsr.cli._write import say, say_json, table

if TYPE_CHECKING:
    from tgsr.storage import RunDirectory

_FIGURES = (".png", ".svg", ".pdf")


@click.command(name="show", short_help="Show a run, or all runs of a folder.")
@click.argument("run")
@json_option
@click.option("--plot", metavar="FILE", help="Draw the result into a .png, .svg or .pdf file.")
def command(run: str, as_json: bool, plot: str | None) -> int:
    """Show RUN: its estimates, or how far it has come, or what went wrong.

    RUN is the folder of one run, finished or not, or a folder of runs, which are listed, the newest first.
    """
    from tgsr.cli._status import run_at, runs_at, standing

    if plot is not None:
        _draw(run_at(run), Path(plot))
    one, many = runs_at(run)
    if one is None:
        found = [standing(each) for each in many]
        say_json({"runs": found}) if as_json else say(_listed(found))
        return 0
    about = standing(one)
    result = _result(one, about)
    if as_json:
        from tgsr._runs import as_json as record_of

        say_json(about if result is None else about | record_of(result))
    else:
        say(f"{shown_path(one.path)}: {about['state']} ({about['reason']})")
        say(_unfinished(about) if result is None else str(result))
    return 1 if about["state"] == "damaged" else 0


def _result(run: RunDirectory, about: dict[str, Any]) -> Any:
    """The result of a run that has one."""
    if about["state"] not in ("finished", "failed") or about.get("closures") is None:
        return None
    from tgsr._runs import load

    return load(run.path)


def _unfinished(about: dict[str, Any]) -> str:
    lines = []
    if "name" in about:
        lines.append(f"{about['name']} ({about['method']}), seed {about['seed']}")
    if "loss" in about:
        lines.append(
            f"  at the last checkpoint: {about['stage']}, {about['phase']}, epoch {about['epoch']}, "
            f"loss {about['loss']:.4e}, {about['closures']} closures, {about['seconds']:.0f} s"
        )
    lines += [f"  {name} = {value:.6g} (so far)" for name, value in about.get("unknowns", {}).items()]
    return "\n".join(lines) or "  Nothing in it can be relied on."


def _listed(found: list[dict[str, Any]]) -> str:
    rows = [("run", "state", "method", "seed", "closures", "last change", "unknowns")]
    for about in found:
        path = Path(about["run"])
        when = datetime.datetime.fromtimestamp(path.stat().st_mtime).isoformat(" ", "minutes")
        unknowns = ", ".join(f"{name} = {value:.5g}" for name, value in about.get("unknowns", {}).items())
        known = [str(about.get(key) if about.get(key) is not None else "-") for key in ("method", "seed", "closures")]
        rows.append((path.name, about["state"], *known, when, unknowns))  # type: ignore[arg-type]
    return table(rows)


def _draw(run: RunDirectory, file: Path) -> None:
    if file.suffix.lower() not in _FIGURES:
        raise InputError(f"a figure ends in {', '.join(_FIGURES)}", file=file, remedy="Name it so")
    import matplotlib as mpl

    mpl.use("agg")
    from tgsr._runs import load
    from tgsr.storage import write_bytes

    image = io.BytesIO()
    load(run.path).plot().savefig(image, format=file.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    write_bytes(file, image.getvalue())
