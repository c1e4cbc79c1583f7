"""Phases of damped Gauss-Newton steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tgsr._errors import InputError, plain
from tgsr.loss import Objective
from tgsr.optimiser import Program, levenberg
from tgsr.training._checks import Stopping, whole


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss-Newton steps: few and strong; for up to some thousand weights or rows.

    For the first `hold` steps the unknowns stay at their first guess while the field takes its shape. Otherwise such
    strong steps can run off with an unknown before there is a field to judge it by (the boundary layer from a random
    start went to a false minimum at eps = 0 on one seed of three, with 856 closures; held, it is right after 377).
    """

    name: ClassVar[str] = "levenberg-marquardt"
    epochs: int = 40
    inner: int = 10
    hold: int = 20
    stopping: Stopping = Stopping(1e-3, 2)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner")
        if isinstance(self.hold, bool) or not isinstance(self.hold, int) or not 0 <= self.hold <= 10**9:
            raise InputError(f"hold is {plain(self.hold, 40)!r}", field="hold", remedy="Give a whole number from 0")

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        return levenberg(objective, rows, self.inner, 0.0)

    def setting(self, epoch: int) -> float:
        """For how many steps the unknowns are held."""
        return float(self.hold)

    @property
    def closures(self) -> int:
        """Closures of an outer epoch: a Jacobian and a trial per step."""
        return 2 * self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 2

    def within(self, budget: int | None) -> LevenbergMarquardt:
        """Under a small budget the unknowns are held for at most a quarter of it."""
        return self if budget is None else replace(self, hold=min(self.hold, max(budget, 0) // 8))
