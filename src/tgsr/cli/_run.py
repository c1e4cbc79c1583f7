"""What `solve` and `transfer` share: their options, and a run from a user's file to the printed result."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tgsr._errors import TgsrError, shown_path
from tgsr._problem_file import UserFile, errors_of, read_problem
from tgsr.cli._options import json_option
from tgsr.cli._parallel import one_of_many, use
from tgsr.cli._progress import progress_of
from tgsr.cli._write import say, say_json

if TYPE_CHECKING:
    from tgsr._result import Result
    from tgsr._truth import Errors
    from tgsr.training import Training

_OPTIONS = (
    click.option(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        default=0,
        show_default=True,
        metavar="N",
        help="Where all chance comes from.",
    ),
    click.option("--out", default="runs", show_default=True, metavar="DIR", help="The folder that keeps the runs."),
    click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Processor threads. The last digits of a result depend on their number.",
    ),
    click.option(
        "--training",
        type=click.Choice(["best", "paper"]),
        default="best",
        show_default=True,
        help="How to train: what suits the problem, or as in the paper.",
    ),
    click.option(
        "--budget",
        type=click.IntRange(1, 10**9),
        metavar="N",
        help="Most evaluations of loss and gradient (closures).",
    ),
    click.option(
        "--engine",
        type=click.Choice(["auto", "jax", "native"]),
        default="auto",
        show_default=True,
        help="What computes losses and gradients: XLA, or code compiled by g++.",
    ),
    click.option(
        "--devices",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        metavar="N",
        help="Spread the points over so many devices (parts of a processor, or GPUs) of each process.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(1, 1024),
        default=1,
        show_default=True,
        metavar="N",
        help="Spread the points over so many processes of this machine; if one is lost, all start again.",
    ),
    click.option(
        "--coordinator",
        envvar="TGSR_COORDINATOR",
        metavar="HOST:PORT",
        help="Be one of several processes, on any machines: where rank 0 listens.",
    ),
    click.option(
        "--rank",
        envvar="TGSR_RANK",
        type=click.IntRange(0, 1023),
        metavar="I",
        help="Which of them this one is, from 0.",
    ),
    click.option("--ranks", envvar="TGSR_RANKS", type=click.IntRange(2, 1024), metavar="N", help="How many they are."),
    json_option,
    click.option("--quiet", is_flag=True, help="Print nothing but the result."),
    click.option("--no-save", is_flag=True, help="Keep nothing on disk."),
)


def run_options(function: Callable[..., int]) -> Callable[..., int]:
    """The options of a run."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def carry_out(
    call: Callable[..., Result],
    file: str,
    *,
    seed: int,
    out: str,
    threads: int | None,
    training: str,
    budget: int | None,
    engine: str,
    devices: int,
    processes: int,
    coordinator: str | None,
    rank: int | None,
    ranks: int | None,
    as_json: bool,
    quiet: bool,
    no_save: bool,
) -> int:
    """Run `call(problem, training=, seed=, engine=, devices=, out=, progress=)` on the file's problem: exit code."""
    if processes > 1 and coordinator is None:
        from tgsr._supervisor import supervise

        return supervise(click.get_current_context().obj, processes, lambda text: say(text, err=True))
    use(threads, devices)
    with (
        one_of_many(coordinator, rank, ranks),
        redirect_stdout(sys.stderr) if as_json else nullcontext(),  # what the user's file prints is no JSON
    ):
        user = read_problem(file)
        plan, folder = _plan(training, budget), None if no_save else out
        with errors_of(user.path), progress_of(user.problem, quiet=quiet or bool(rank)) as progress:
            result = call(
                user.problem, training=plan, seed=seed, engine=engine, devices=devices, out=folder, progress=progress
            )
    errors, wrong = _compared(result, user)
    if as_json:
        _write_json(result, errors)
    else:
        _write(result, errors, user, quiet)
    if wrong is not None:
        raise wrong
    return 0 if result.outcome.ok else 1


def _plan(training: str, budget: int | None) -> Training:
    from tgsr.training import PRESETS

    plan = PRESETS[training]
    return replace(plan, budget=budget, weights=plan.weight_table)


def _compared(result: Result, user: UserFile) -> tuple[Errors | None, TgsrError | None]:
    """The errors against the file's truth; a truth that does not fit must not cost the result."""
    from tgsr._truth import evaluate

    if user.truth is None:
        return None, None

    try:
        with errors_of(user.path):
            return evaluate(result, user.truth), None
    except TgsrError as error:
        return None, error


def _write_json(result: Result, errors: Errors | None) -> None:
    from tgsr._runs import as_json

    record: dict[str, Any] = as_json(result) | {"run": None if result.path is None else str(result.path)}
    if errors is not None:
        record["errors_against_truth"] = vars(errors)
    say_json(record)


def _write(result: Result, errors: Errors | None, user: UserFile, quiet: bool) -> None:
    say(str(result))
    if errors is not None:
        say(f"  compared with the truth in {user.path.name} (evaluation only): {errors}")
    if result.path is not None and not quiet:
        path = shown_path(result.path)
        say(f"The run lies in {path}. To see it again: tgsr show {path}")
