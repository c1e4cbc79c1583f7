"""Phases of damped Gauss-Newton steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from tgsr._errors import InputError, plain
from tgsr.loss import Objective, affine_unknowns
from tgsr.optimiser import Program, levenberg, matrix_free
from tgsr.training._checks import UNSEEN, Stopping, checked_hold, whole


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss-Newton steps: few and strong; for up to some thousand weights or rows.

    For the first `hold` steps the unknowns stay at their first guess while the field takes its shape. Otherwise such
    strong steps can run off with an unknown before there is a field to judge it by (the boundary layer from a random
    start went to a false minimum at eps = 0 on one seed of three, with 856 closures; held, it is right after 377).

    `accelerate` bends each step along with the rows (geodesic acceleration, Transtrum & Sethna 2012): a trial costs
    more, and about a third of the steps are needed.

    `eliminate` solves for the unknowns in which every part of the loss is affine, at each network that is tried
    (variable projection), once they are no longer held. Others are searched as before, and a warning of the result
    names them. It cannot be had together with `accelerate`.
    """

    name: ClassVar[str] = "levenberg-marquardt"
    epochs: int = 40
    inner: int = 10
    hold: int = 20
    eliminate: bool = field(default=False, metadata=UNSEEN)
    accelerate: bool = field(default=False, metadata=UNSEEN)
    stopping: Stopping = Stopping(1e-3, 2)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner")
        checked_hold(self.hold)
        for option in ("eliminate", "accelerate"):
            if not isinstance(getattr(self, option), bool):
                raise InputError(
                    f"{option} is {plain(getattr(self, option), 40)!r}", field=option, remedy="Give True or False"
                )
        if self.eliminate and self.accelerate:
            raise InputError("eliminate and accelerate are both asked for", field="phases", remedy="Choose one of them")

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        affine = affine_unknowns(objective).eliminated if self.eliminate else ()
        return levenberg(objective, rows, self.inner, 0.0, affine, self.accelerate)

    def note(self, objective: Objective) -> str:
        """What could not be done as asked; empty when all could."""
        return affine_unknowns(objective).sentence if self.eliminate else ""

    def setting(self, epoch: int) -> float:
        """For how many steps the unknowns are held."""
        return float(self.hold)

    @property
    def closures(self) -> int:
        """Closures of an outer epoch: a Jacobian and a trial per step."""
        return self.least * self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 4 if self.accelerate else 2

    def within(self, budget: int | None) -> LevenbergMarquardt:
        """Under a small budget the unknowns are held for at most a quarter of it."""
        return self if budget is None else replace(self, hold=min(self.hold, max(budget, 0) // (4 * self.least)))


@dataclass(frozen=True)
class MatrixFreeLM:
    """Levenberg-Marquardt without a stored Jacobian: for large networks with many points.

    Its linear systems are solved by at most `iterations` conjugate gradients, preconditioned by about `sample` of the
    rows: memory is that of `sample` x weights numbers, whatever the number of points. A larger sample takes fewer
    closures and more linear algebra. `hold` as for `LevenbergMarquardt`.
    """

    name: ClassVar[str] = "matrix-free-lm"
    epochs: int = 40
    inner: int = 10
    hold: int = 20
    sample: int = 600
    iterations: int = 20
    stopping: Stopping = Stopping(1e-3, 2)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner", "sample", "iterations")
        checked_hold(self.hold)

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        return matrix_free(objective, rows, self.inner, self.sample, self.iterations)

    def setting(self, epoch: int) -> float:
        """For how many steps the unknowns are held."""
        return float(self.hold)

    @property
    def closures(self) -> int:
        """Closures of an outer epoch, when every step is the first trial and takes half of its iterations."""
        return self.inner * (3 + self.iterations)

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 5

    def within(self, budget: int | None) -> MatrixFreeLM:
        """Under a small budget the unknowns are held for at most a quarter of it."""
        return self if budget is None else replace(self, hold=min(self.hold, max(budget, 0) // (4 * self.least)))
