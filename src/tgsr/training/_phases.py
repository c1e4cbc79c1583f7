"""The phases that training consists of: one optimiser each, and when to stop. Frozen, printable, comparable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tgsr._errors import InputError, plain
from tgsr.loss import Objective
from tgsr.optimiser import Program, adam, lbfgs, levenberg, paper_lbfgs, paper_rates


def whole(spec: object, *names: str) -> None:
    """Refuse what is no whole number from 1."""
    for name in names:
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
            raise InputError(
                f"{type(spec).__name__}.{name} is {plain(value, 40)!r}", field=name, remedy="Give a whole number from 1"
            )


def positive(spec: object, *names: str) -> None:
    """Refuse what is no number from 0."""
    for name in names:
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise InputError(
                f"{type(spec).__name__}.{name} is {plain(value, 40)!r}", field=name, remedy="Give a number from 0"
            )


@dataclass(frozen=True)
class Stopping:
    """Stop when the loss improved by less than the share `tolerance` in each of `patience` outer epochs in a row.

    `change` also stops on one absolute change below it. Nothing but the training loss is read.
    """

    tolerance: float = 1e-3
    patience: int = 2
    change: float = 0.0

    def __post_init__(self) -> None:
        positive(self, "tolerance", "change")
        whole(self, "patience")


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


@dataclass(frozen=True)
class Adam:
    """First-order steps, for a rough start."""

    name: ClassVar[str] = "adam"
    epochs: int = 20
    inner: int = 100
    learning_rate: float = 1e-3
    stopping: Stopping = Stopping(0.0, 10**6)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner")
        positive(self, "learning_rate")

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        return adam(objective, self.inner, self.learning_rate)

    def setting(self, epoch: int) -> float:
        """The learning rate of an outer epoch."""
        return self.learning_rate

    @property
    def closures(self) -> int:
        """Closures of an outer epoch."""
        return self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 1

    def within(self, budget: int | None) -> Adam:
        """The same under any budget."""
        return self


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


Phase = LevenbergMarquardt | LBFGS | Adam | PaperLBFGS
PHASES: dict[str, type[Phase]] = {kind.name: kind for kind in (LevenbergMarquardt, LBFGS, Adam, PaperLBFGS)}


def recipe(phase: Phase) -> Phase:
    """The phase as far as its compiled steps depend on it: how long, how held and when to stop are decided outside."""
    same: dict[str, Any] = {"epochs": 1, "stopping": Stopping()}
    return replace(phase, **same, **({"hold": 0} if isinstance(phase, LevenbergMarquardt) else {}))
