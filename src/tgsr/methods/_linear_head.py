"""Train the output layer alone: the source's last hidden layer is a fixed basis for the target's field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.methods._lightweight import frozen_below
from tgsr.methods._method import Prepared, Setting


@dataclass(frozen=True)
class LinearHead:
    """Copy the source network, train its output layer and the unknowns only."""

    name: ClassVar[str] = "linear-head"

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights, all hidden ones fixed."""
        return frozen_below(setting, self.name, 1)
