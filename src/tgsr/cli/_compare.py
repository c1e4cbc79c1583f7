"""`tgsr compare`: did transfer help? Several methods and seeds at one budget, and a verdict that needs no truth."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgsr._errors import TgsrError, shown_path
from tgsr._problem_file import UserFile, errors_of, read_problem
from tgsr.cli._options import NAMES, WHOLE, json_option
from tgsr.cli._progress import progress_of
from tgsr.cli._write import say, say_json

if TYPE_CHECKING:
    from tgsr._compare import MethodComparison, TruthCheck


@click.command(name="compare", short_help="Did transfer help? Several methods and seeds, and a verdict.")
@click.argument("source")
@click.argument("file", metavar="FILE.py[:NAME]")
@click.option(
    "--methods",
    type=NAMES,
    default="scratch,full,tgsr",
    show_default=True,
    metavar="A,B",
    help="scratch and the transfer methods to judge; `tgsr methods` lists them.",
)
@click.option(
    "--seeds",
    type=WHOLE,
    default="3",
    show_default=True,
    metavar="N",
    help="How many seeds, counted from 0; or several seeds, as in 3,5,8.",
)
@click.option(
    "--held-out",
    type=float,
    default=0.2,
    show_default=True,
    metavar="SHARE",
    help="The share of the readings left out of training, to test on.",
)
@click.option(
    "--training",
    type=click.Choice(["best", "paper"]),
    default="best",
    show_default=True,
    help="How to train: what suits the problem, or as in the paper.",
)
@click.option(
    "--budget",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Most evaluations of loss and gradient (closures) in each run.",
)
@click.option("--out", default="runs", show_default=True, metavar="DIR", help="The folder that keeps the runs.")
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Processor threads. The last digits of a result depend on their number.",
)
@json_option
@click.option("--quiet", is_flag=True, help="Print nothing but the comparison.")
def command(source: str, file: str, threads: int | None, as_json: bool, quiet: bool, **choices: Any) -> int:
    """Solve the problem in FILE.py by every method at every seed, from the network of SOURCE, and compare.

    Every run has the same budget; runs at the same seed have the same readings, points and first guesses. The verdict
    on each transfer (helped, hurt or cannot tell) rests on losses, held-out readings, estimates and closures. A
    variable `truth` in FILE.py is only compared with it. The same command again computes only what is missing.
    """
    if threads is not None:
        from tgsr._jax import use_threads

        use_threads(threads)
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        user = read_problem(file)
        comparison = _compared(source, user, quiet, **choices)
    check, wrong = _checked(comparison, user)
    if as_json:
        say_json(comparison.as_json(check))
    else:
        from tgsr._compare_text import comparison_text

        say(comparison_text(comparison, check))
        if not quiet:
            folder = shown_path(Path(choices["out"]))
            say(f"\nThe runs lie in {folder}. To list them: tgsr show {folder}")
    if wrong is not None:
        raise wrong
    return 0 if comparison.ok else 1


def _compared(
    source: str,
    user: UserFile,
    quiet: bool,
    *,
    methods: tuple[str, ...],
    seeds: tuple[int, ...],
    held_out: float,
    training: str,
    budget: int | None,
    out: str,
) -> MethodComparison:
    from tgsr._compare import compare
    from tgsr.training import PRESETS

    plan = PRESETS[training]
    plan = replace(plan, budget=budget, weights=plan.weight_table)
    with errors_of(user.path), progress_of(user.problem, quiet=quiet) as progress:
        return compare(
            user.problem,
            source,
            methods=methods,
            seeds=seeds[0] if len(seeds) == 1 else seeds,
            held_out=held_out,
            training=plan,
            out=out,
            progress=progress,
        )


def _checked(comparison: MethodComparison, user: UserFile) -> tuple[TruthCheck | None, TgsrError | None]:
    """Errors against the file's truth; a truth that does not fit must not cost the comparison."""
    if user.truth is None:
        return None, None
    try:
        with errors_of(user.path):
            return comparison.check(user.truth), None
    except TgsrError as error:
        return None, error
