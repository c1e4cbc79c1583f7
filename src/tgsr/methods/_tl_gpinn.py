"""TL-gPINN (Lin & Chen 2024): full fine-tuning on a loss that also holds the residual's gradient at zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr.loss import Objective, with_residual_gradient
from tgsr.methods._method import Prepared, Setting, copied
from tgsr.methods._ranges import Positive, check_options
from tgsr.training import Start


@dataclass(frozen=True)
class TlGpinn:
    """Full fine-tuning plus the mean square of the residual's gradient in every coordinate."""

    name: ClassVar[str] = "tl-gpinn"
    gradient_weight: Positive = 1e-2
    """Weight of each gradient component as a share of its residual's, in (0, inf)."""

    def __post_init__(self) -> None:
        check_options(self)

    def objective(self, own: Objective) -> Objective:
        """The target's loss with its gradient terms."""
        return with_residual_gradient(own, self.gradient_weight, f"method {self.name!r}")

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights with the target's own first guesses."""
        return Prepared(Start(copied(setting, self.name)))
