"""LoRA (Hu et al. 2022): every weight matrix stays, and a product of two thin ones is added to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tgsr.loss import Objective
from tgsr.methods._method import Prepared, Setting, copied, trained_only
from tgsr.methods._ranges import Count, check_options
from tgsr.training import Start


@dataclass(frozen=True)
class LoRA:
    """Copy and freeze the source network; train W + A B with A, B of low rank in every layer, and the unknowns."""

    name: ClassVar[str] = "lora"
    rank: Count = 4
    """Rank of the updates, at least 1; a smaller matrix gets at most its own."""

    def __post_init__(self) -> None:
        check_options(self)

    def objective(self, own: Objective) -> Objective:
        """The target's loss as a function of A and B as well."""
        return replace(own, surrogate=replace(own.surrogate, rank=self.rank))

    def prepare(self, setting: Setting) -> Prepared:
        """The source's network; B is zero, so that training begins exactly there."""
        moves = trained_only(setting, lambda layer, kind: kind in ("left", "right"))
        return Prepared(Start(copied(setting, self.name), moves))
