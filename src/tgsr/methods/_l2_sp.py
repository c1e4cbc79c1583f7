"""L2-SP (Li, Grandvalet & Davoine 2018): the source as starting point and as what training is drawn back to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tgsr.methods._method import Prepared, Setting, copied, trained_only
from tgsr.methods._ranges import NonNegative, check_options
from tgsr.training import Start


@dataclass(frozen=True)
class L2SP:
    """Full fine-tuning with the penalty mu * sum (theta - theta_source)^2 over all weights and biases copied."""

    name: ClassVar[str] = "l2-sp"
    mu: NonNegative = 1e-4
    """Strength of the pull towards the source, in [0, inf)."""

    def __post_init__(self) -> None:
        check_options(self)

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights, twice: where training begins, and what it is drawn to. Unknowns are free."""
        theta = copied(setting, self.name)
        came_from_source = 1.0 - trained_only(setting, lambda layer, kind: False)
        return Prepared(Start(theta, anchor=np.asarray(theta), pull=self.mu * came_from_source))
