"""Phases of first-order steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.loss import Objective
from tgsr.optimiser import Program, adam, paper_rates, soap
from tgsr.training._checks import Stopping, positive, whole


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
class SOAP:
    """First-order steps in the eigenbasis of each layer's gradients (Vyas et al. 2024); no line search.

    `every` so many steps the basis is brought up to date. The rate falls along a cosine over the outer epochs, to the
    share `last` of the first.
    """

    name: ClassVar[str] = "soap"
    epochs: int = 20
    inner: int = 100
    learning_rate: float = 3e-3
    last: float = 0.01
    every: int = 10
    stopping: Stopping = Stopping(0.0, 10**6)

    def __post_init__(self) -> None:
        whole(self, "epochs", "inner", "every")
        positive(self, "learning_rate", "last")

    def program(self, objective: Objective, rows: int) -> Program:
        """The compiled steps."""
        return soap(objective, self.inner, self.learning_rate, self.every)

    def setting(self, epoch: int) -> float:
        """The learning rate of an outer epoch."""
        return float(paper_rates(self.epochs, self.learning_rate, self.last * self.learning_rate)[epoch])

    @property
    def closures(self) -> int:
        """Closures of an outer epoch."""
        return self.inner

    @property
    def least(self) -> int:
        """Closures of a step at the least."""
        return 1

    def within(self, budget: int | None) -> SOAP:
        """The same under any budget."""
        return self
