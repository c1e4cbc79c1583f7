"""Soft filter pruning (He et al. 2018) before fine-tuning: the weakest neurons are silenced once, and may return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tgsr.methods._method import Prepared, Setting, copied, numpy_layers
from tgsr.methods._ranges import Share, check_options
from tgsr.training import Start


@dataclass(frozen=True)
class Sfp:
    """Full fine-tuning after the weakest neurons of every hidden layer got a zero row and bias; all may move again."""

    name: ClassVar[str] = "sfp"
    share: Share = 0.3
    """Share of each hidden layer's neurons that is silenced, rounded to whole neurons, in [0, 1]."""

    def __post_init__(self) -> None:
        check_options(self)

    def prepare(self, setting: Setting) -> Prepared:
        """Zero incoming rows where they were shortest; what leaves those neurons stays."""
        theta = copied(setting, self.name)
        *hidden, output = numpy_layers(setting, theta)
        layers, silenced = [], {}
        for number, (weight, bias) in enumerate(hidden, start=1):
            chosen = shortest_rows(weight, self.share)
            silenced[f"layer{number}.silenced"] = chosen
            layers.append((np.where(chosen, 0.0, weight), np.where(chosen, 0.0, bias)))
        start = Start(setting.objective.surrogate.with_fields_network(theta, [*layers, output]))
        return Prepared(start, {"pruning": silenced})


def shortest_rows(weight: np.ndarray, share: float) -> np.ndarray:
    """Which neurons (columns of `weight`) have the shortest incoming rows; equal ones in the order of the layer."""
    norm = np.linalg.norm(weight, axis=0)
    chosen = np.zeros(len(norm), dtype=bool)
    chosen[np.argsort(norm, kind="stable")[: round(share * len(norm))]] = True
    return chosen
