"""BitFit (Ben Zaken, Goldberg & Ravfogel 2022): tune the biases, keep the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.methods._method import Prepared, Setting, copied, trained_only
from tgsr.training import Start


@dataclass(frozen=True)
class BitFit:
    """Copy the source network, train its biases and the unknowns only."""

    name: ClassVar[str] = "bitfit"

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights fixed, its biases free."""
        return Prepared(Start(copied(setting, self.name), trained_only(setting, lambda layer, kind: kind == "bias")))
