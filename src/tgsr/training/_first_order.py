"""Phases of first-order steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.loss import Objective
from tgsr.optimiser import Program, adam
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
