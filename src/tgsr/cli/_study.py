"""`tgsr study`: run, watch, resume and check a study, and write its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgsr._errors import InputError, shown_path
from tgsr.cli._options import json_option
from tgsr.cli._write import say, say_json, table

if TYPE_CHECKING:
    from tgsr.study._folder import StudyFolder
    from tgsr.study._results import StudyResults
    from tgsr.study._spec import Study

COUNTS = ("finished", "failed", "running", "interrupted", "damaged", "missing")
MOST_FAILURES = 20  # are listed

_spec = click.argument("spec", metavar="SPEC.toml|DIR")
_out = click.option("--out", default="studies", show_default=True, metavar="DIR", help="The folder of all studies.")
_HOW = (
    click.option(
        "--jobs",
        type=click.IntRange(0, 4096),
        metavar="N",
        help="Runs at a time on this machine (2); 0: in this process.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, such as tls://host:8786."),
    click.option("--scheduler-file", metavar="FILE", help="The file in which a Dask scheduler left its address."),
    click.option("--insecure", is_flag=True, help="Allow a scheduler that anybody on the network could use."),
    click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        metavar="N",
        help="Processor threads of a run. The last digits of a result depend on their number.",
    ),
    click.option("--quiet", is_flag=True, help="Show no progress."),
    json_option,
)


def how_options(function: Callable[..., int]) -> Callable[..., int]:
    """Where to run, and what to print."""
    for option in reversed(_HOW):
        function = option(function)
    return function


@click.group(name="study", short_help="Compare methods fairly, over tasks and seeds.")
def command() -> None:
    """Compare methods on the same tasks, seeds, readings and budget.

    A study is described by a TOML file and kept in one folder. It can be stopped, killed, resumed, extended and
    checked at any time. In place of a file you may name one of the studies that ship: `tgsr study run mapping`.
    """


@command.command(name="run", short_help="Run what is missing of a study.")
@_spec
@_out
@how_options
def run(spec: str, out: str, **how: Any) -> int:
    """Run what is missing of the study in SPEC.toml, or of the one kept in DIR."""
    return _carried_out(spec, out, again=False, **how)


@command.command(name="resume", short_help="The same, and crashed runs get another chance.")
@_spec
@_out
@how_options
def resume(spec: str, out: str, **how: Any) -> int:
    """Run what is missing, and once more what crashed or took too long."""
    return _carried_out(spec, out, again=True, **how)


@command.command(name="status", short_help="How far a study is.")
@_spec
@_out
@json_option
def status(spec: str, out: str, as_json: bool) -> int:
    """Show how many runs of a study are finished, running, failed or missing, and the time left."""
    from tgsr.study._progress import summary

    found = summary(folder_at(spec, out))
    say_json(found) if as_json else say("\n".join(_status_lines(found, spec)))
    return 0


@command.command(name="verify", short_help="Read every file of a study back.")
@_spec
@_out
@json_option
def verify(spec: str, out: str, as_json: bool) -> int:
    """Read every file of a study back and compare its SHA-256 with what was kept; exit code 1 if one differs."""
    from tgsr.study._verify import verified

    folder = folder_at(spec, out)
    found = verified(folder)
    if as_json:
        say_json({"folder": str(folder.path), **vars(found)})
    else:
        say("\n".join(found.problems)) if found.problems else None
        wrong = f"{len(found.problems)} problems" if found.problems else "all verify"
        say(f"{found.runs} runs, {found.files} files: {wrong}")
        if found.problems:
            say(f"To make what is damaged again: tgsr study run {shown_path(folder.path)}")
    return 1 if found.problems else 0


@command.command(name="report", short_help="Write the report of a study.")
@_spec
@_out
@click.option(
    "--format",
    "kind",
    type=click.Choice(["html", "md", "tex", "csv", "parquet"]),
    default="html",
    show_default=True,
    help="One page, or its tables for a text or another program.",
)
@click.option("--figures", metavar="DIR", help="Also save every figure there, as PDF, PNG and SVG.")
@click.option(
    "--output",
    metavar="PATH",
    help="The page, or the folder of tables [default: report.html, tables/ in the study's folder].",
)
def report(spec: str, out: str, kind: str, figures: str | None, output: str | None) -> int:
    """Write the report of a study, finished or not."""
    from tgsr.cli._study_report import write_report

    for path in write_report(folder_at(spec, out), kind, output, figures):
        say(shown_path(path))
    return 0


def run_and_tell(study: Study, folder: StudyFolder, *, again: bool, quiet: bool, as_json: bool, **how: Any) -> int:
    """Run a study, tell what came of it; the exit code is 1 if a run failed or could not be run."""
    from tgsr.cli._study_progress import following
    from tgsr.study._run import run_study

    given = {key: value for key, value in how.items() if value is not None}
    with following(quiet or as_json) as progress:
        results = run_study(study, folder=folder, again=again, progress=progress, **given)
    _told(results, as_json)
    return 1 if results.pending or any(not record.ok for record in results.records) else 0


def folder_at(spec: str, out: str) -> StudyFolder:
    """The folder of a study that has been begun."""
    from tgsr.study._folder import StudyFolder
    from tgsr.study._read import parsed_study

    found = _file_or_folder(spec)
    return StudyFolder.open(found if found.is_dir() else Path(out) / parsed_study(found).name)


def _carried_out(spec: str, out: str, **how: Any) -> int:
    from tgsr.study._folder import StudyFolder
    from tgsr.study._read import read_study

    found = _file_or_folder(spec)
    if found.is_dir():
        folder = StudyFolder.open(found)
        return run_and_tell(read_study(folder.path / "study.toml"), folder, **how)
    study = read_study(found)
    return run_and_tell(study, StudyFolder(Path(out) / study.name), **how)


def _file_or_folder(spec: str) -> Path:
    """The file or folder that is meant: it exists, or is a study that ships under this name."""
    from tgsr.study._shipped import shipped_specs

    path = Path(spec)
    try:
        if path.exists():
            return path
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be a path ({error})", file=spec) from None
    shipped = shipped_specs()
    if spec in shipped:
        return shipped[spec]
    remedy = f"Give a study's file or folder, or the name of one that ships: {', '.join(shipped)}"
    raise InputError("there is no such file or folder", file=spec, remedy=remedy)


def _status_lines(found: dict[str, Any], spec: str) -> list[str]:
    from tgsr.cli._progress import seconds

    ended = found["finished"] + found["failed"]
    lines = [f"{found['study']}: {ended} of {found['runs']} runs have ended"]
    lines.append(table([COUNTS, [str(found[word]) for word in COUNTS]]))
    lines += [f"  running: {line}" for line in found["running_now"]]
    failures = found["failures"]
    lines += [f"  failed: {one['trial']}: {one['reason']}" for one in failures[:MOST_FAILURES]]
    if len(failures) > MOST_FAILURES:
        lines.append(f"  and {len(failures) - MOST_FAILURES} more")
    left = found["seconds_left"]
    guess = "not known yet" if left != left else f"about {seconds(left)}"
    if found["coordinator"] is not None:
        lines.append(f"Time left: {guess}, with {found['jobs']} at a time ({found['coordinator']})")
    elif ended < found["runs"]:
        lines.append(f"Nobody runs it now. Time left: {guess}, one at a time. To go on: tgsr study run {spec}")
    return lines


def _told(results: StudyResults, as_json: bool) -> None:
    failed = [record for record in results.records if not record.ok]
    finished = len(results.records) - len(failed)
    if as_json:
        counts = {"finished": finished, "failed": len(failed), "missing": len(results.pending)}
        records = [record.as_json() for record in results.records]
        pending = [vars(one) for one in results.pending]
        say_json(
            {"study": results.name, "folder": str(results.folder), **counts, "records": records, "pending": pending}
        )
        return
    assert results.folder is not None  # it was just run there
    path = shown_path(results.folder)
    say(f"{results.name}: {finished} runs finished, {len(failed)} failed")
    for record in failed:
        say(f"  failed: {record.task}, {record.arm}, seed {record.seed}: {record.sentence}")
    for one in results.pending:
        say(f"  not run: {one.task}, {one.arm}, seed {one.seed}: {one.state} ({one.reason})")
    say(f"The study lies in {path}. For its report: tgsr study report {path}")
