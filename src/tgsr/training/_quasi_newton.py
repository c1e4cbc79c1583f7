"""Phases that learn the curvature from gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tgsr._errors import InputError, plain
from tgsr.loss import Objective
from tgsr.optimiser import UPDATES, Program, lbfgs, paper_lbfgs, paper_rates, self_scaled
from tgsr.problem._names import nearest
from tgsr.training._checks import Stopping, checked_hold, positive, whole


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS with a strong-Wolfe line search; for networks of any size."""

    name: ClassVar[str] = "l-bfgs"
    epochs: int = 100
    inner: int = 20
    history: int = 50
    trial_step: float = 1.0
    stopping: Stopping = Stopping(1e-3, 3)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner", "history")
        positive(self, "trial_step")

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        return lbfgs(objective, self.inner, self.history, trial_step=self.trial_step)

    def setting(self, epoch: int) -> float:
        """Nothing to set."""
        return 0.0

    @property
    def closures(self) -> int:
        """Closures of an outer epoch, when every line search ends at its first trial."""
        return self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 2

    def within(self, budget: int | None) -> LBFGS:
        """The same under any budget."""
        return self


MOST_DENSE = 8000  # weights: 0.5 GB for the matrix in float64, and as much while a step writes the next one


@dataclass(frozen=True)
class SSBroyden:
    """Self-scaled quasi-Newton with a dense inverse Hessian; for up to some thousand weights and any number of points.

    `update` is "broyden" or "bfgs" (Urbán, Stefanou & Pons 2025). A step reads and writes weights^2 numbers. In the
    first `hold` outer epochs the unknowns stay at their first guess, as in `LevenbergMarquardt` and for its reason.
    """

    name: ClassVar[str] = "ss-broyden"
    epochs: int = 100
    inner: int = 20
    update: str = "broyden"
    hold: int = 3
    stopping: Stopping = Stopping(1e-3, 3)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner")
        checked_hold(self.hold)
        if self.update not in UPDATES:
            raise InputError(
                f"update is {plain(self.update, 40)!r}", field="update", remedy=nearest(str(self.update), UPDATES)
            )

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        size = objective.surrogate.size
        if size > MOST_DENSE:
            raise InputError(
                f"{self.name} keeps a matrix of weights x weights, and this network has {size} weights",
                field="phases",
                remedy=f"Take at most {MOST_DENSE} weights, or tgsr.LBFGS()",
            )
        return self_scaled(objective, self.inner, self.update)

    def setting(self, epoch: int) -> float:
        """Whether the unknowns are held."""
        return float(epoch < self.hold)

    @property
    def closures(self) -> int:
        """Closures of an outer epoch, when every line search ends at its first trial."""
        return self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 2

    def within(self, budget: int | None) -> SSBroyden:
        """Under a small budget the unknowns are held for at most a quarter of it."""
        return self if budget is None else replace(self, hold=min(self.hold, max(budget, 0) // (4 * self.closures)))


@dataclass(frozen=True)
class PaperLBFGS:
    """The authors' L-BFGS: no line search, step 0.1 annealed to 0.001 by a cosine over the outer epochs."""

    name: ClassVar[str] = "paper-l-bfgs"
    epochs: int = 300
    inner: int = 20
    history: int = 100
    first: float = 0.1
    last: float = 0.001
    stopping: Stopping = Stopping(1e-8, 10, 1e-8)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner", "history")
        positive(self, "first", "last")

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        return paper_lbfgs(objective, self.inner, self.history)

    def setting(self, epoch: int) -> float:
        """The step length of an outer epoch."""
        return float(paper_rates(self.epochs, self.first, self.last)[epoch])

    @property
    def closures(self) -> int:
        """Closures of an outer epoch."""
        return self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 1

    def within(self, budget: int | None) -> PaperLBFGS:
        """The same under any budget."""
        return self
