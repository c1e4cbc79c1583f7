"""`tgsr transfer`: recover the unknowns of a problem, starting from what another run has learnt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tgsr.cli._options import Assignments
from tgsr.cli._run import carry_out, run_options

if TYPE_CHECKING:
    from tgsr._result import Result
    from tgsr.problem import Problem


@click.command(name="transfer", short_help="The same, starting from a network trained on a related problem.")
@click.argument("source")
@click.argument("file", metavar="FILE.py[:NAME]")
@click.option("--method", default="tgsr", show_default=True, help="How to transfer; `tgsr methods` lists them.")
@click.option(
    "--option",
    "choices",
    multiple=True,
    type=Assignments("gamma_min=0.3"),
    metavar="KEY=VALUE",
    help="An option of the method; may be repeated.",
)
@click.option(
    "--counting",
    type=click.Choice(["matched", "paper"]),
    default="matched",
    show_default=True,
    help="Whether the method's own closures count towards the budget, or come on top as in the paper.",
)
@run_options
def command(
    source: str, file: str, method: str, choices: Sequence[dict[str, str]], counting: str, **options: Any
) -> int:
    """Recover the unknowns of the problem in FILE.py, starting from the network of SOURCE.

    SOURCE is the folder of a run or of a converted network. Only weights travel: every unknown starts at the
    guess in FILE.py. The architecture is the source's.
    """
    return carry_out(partial(_transfer, source, method, choices, counting), file, **options)


def _transfer(
    source: str,
    method: str,
    choices: Sequence[dict[str, str]],
    counting: str,
    problem: Problem,
    **settings: Any,
) -> Result:
    from tgsr._solve import transfer
    from tgsr.cli._catalogue import method_with

    return transfer(problem, source, method=method_with(method, choices), budget=counting, **settings)
