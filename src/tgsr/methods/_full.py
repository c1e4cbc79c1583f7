"""Full fine-tuning: every weight and bias is copied from the source, and everything is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.methods._method import Prepared, Setting, copied
from tgsr.training import Start


@dataclass(frozen=True)
class Full:
    """Copy the source network and train all of it; `match="leading"` allows coordinates that the source lacks."""

    name: ClassVar[str] = "full"
    match: str = "exact"

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights with the target's own first guesses."""
        return Prepared(Start(copied(setting, self.name, self.match)))
