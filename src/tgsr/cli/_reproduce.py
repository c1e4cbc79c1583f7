"""`tgsr reproduce`: the paper's comparison on its tasks, as one study with one report."""

from __future__ import annotations

from typing import Any

import click

from tgsr._errors import InputError, plain
from tgsr.cli._options import NAMES
from tgsr.cli._study import how_options, run_and_tell
from tgsr.cli._write import say

PAPER = ("scratch", "full", "lightweight", "partial", "tl-gpinn", "bitfit", "l2-sp", "sfp", "tgsr")
CONTROL = "tgsr"  # also without readings: what did the data contribute?


@click.command(name="reproduce", short_help="Run the paper's comparison and write its report.")
@click.argument("tasks", nargs=-1, metavar="[TASK ...]")
@click.option(
    "--profile",
    type=click.Choice(["paper", "laptop", "smoke"]),
    default="laptop",
    show_default=True,
    help="How much effort a run gets.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    metavar="N",
    help="Paired repetitions, counted from 0.",
)
@click.option("--methods", type=NAMES, metavar="A,B", help="Methods to compare [default: the nine of the paper].")
@click.option("--output", metavar="DIR", help="Where study and report lie [default: reproduction-PROFILE].")
@how_options
def command(
    tasks: tuple[str, ...],
    profile: str,
    seeds: int,
    methods: tuple[str, ...] | None,
    output: str | None,
    as_json: bool,
    **how: Any,
) -> int:
    """Run the methods of the paper on TASK ... (on all its tasks if none is named), and write one report.

    With the control of the last method on no readings. The same command again runs only what is missing.
    """
    from tgsr._errors import shown_path
    from tgsr.cli._study_report import write_report
    from tgsr.study._folder import StudyFolder
    from tgsr.study._spec import Study
    from tgsr.tasks import names

    for name in tasks:
        if name not in names():
            raise InputError(
                f"there is no task {plain(name, 40)!r}", field="TASK", remedy=f"The tasks are {', '.join(names())}"
            )
    chosen = methods or PAPER
    control = [{"method": CONTROL, "label": f"{CONTROL}, no readings", "observations": 0}] if CONTROL in chosen else []
    study = Study(
        name=f"reproduction-{profile}",
        title=f"The paper's comparison, profile {profile}",
        tasks=tuple(dict.fromkeys(tasks)) or names(),  # type: ignore[arg-type]
        methods=chosen,
        arms=control,  # type: ignore[arg-type]
        seeds=seeds,  # type: ignore[arg-type]
        profile=profile,
    )
    folder = StudyFolder(output or study.name)
    code = run_and_tell(study, folder, again=False, as_json=as_json, **how)
    for path in write_report(folder, "html", None, None):
        say(f"The report: {shown_path(path)}", err=as_json)
    return code
