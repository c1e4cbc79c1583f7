"""No transfer: Glorot-uniform weights and zero biases. The source is never read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.methods._method import Prepared, Setting
from tgsr.training import Start


@dataclass(frozen=True)
class Scratch:
    """Train the target from a random start."""

    name: ClassVar[str] = "scratch"
    needs_source: ClassVar[bool] = False

    def prepare(self, setting: Setting) -> Prepared:
        """The fresh start as it is."""
        return Prepared(Start(setting.fresh))
