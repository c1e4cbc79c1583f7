"""`tgsr solve`: recover the unknowns of a problem from a random start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tgsr.cli._options import WHOLE
from tgsr.cli._run import carry_out, run_options

if TYPE_CHECKING:
    from tgsr._result import Result
    from tgsr.problem import Problem


@click.command(name="solve", short_help="Recover the unknowns of the problem in a Python file.")
@click.argument("file", metavar="FILE.py[:NAME]")
@click.option("--widths", type=WHOLE, metavar="24,24,24", help="Neurons per hidden layer.")
@click.option("--activation", metavar="NAME", help="tanh (the default), sin, swish, gelu, softplus or sigmoid.")
@run_options
def command(file: str, widths: tuple[int, ...] | None, activation: str | None, **options: Any) -> int:
    """Recover the unknowns of the problem in FILE.py.

    The file defines `problem = tgsr.Problem(...)`; FILE.py:NAME takes another variable. The run is kept in a
    folder under DIR: the same command again goes on where it stopped, or shows the finished result. A
    variable `truth = tgsr.Truth(...)` is compared with the result at the end and never before.
    """
    return carry_out(partial(_solve, widths, activation), file, **options)


def _solve(widths: tuple[int, ...] | None, activation: str | None, problem: Problem, **settings: Any) -> Result:
    from tgsr._request import default_network
    from tgsr._solve import solve
    from tgsr.network._propagate import MLP

    network = MLP(widths or default_network(problem).widths, activation or "tanh")
    return solve(problem, network=network, **settings)
