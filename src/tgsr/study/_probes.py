"""The gate check of recorded runs: does a neuron's score say what happens when the neuron is damped?

The check needs the state after the short adaptation, which a run does not keep; it is computed again, to the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

COLUMNS = ("layer", "neuron", "score", "loss", "loss_predicted", "gradient", "gradient_predicted")


@dataclass(frozen=True, eq=False)
class Probes:
    """The probed neurons of a run, one row each."""

    task: str
    arm: str
    seed: int
    rows: np.ndarray  # (probes, 7), the columns of COLUMNS

    def __getitem__(self, column: str) -> np.ndarray:
        """A column of `COLUMNS`."""
        return self.rows[:, COLUMNS.index(column)]

    @property
    def count(self) -> int:
        """The number of probes."""
        return len(self.rows)

    @property
    def score_correlation(self) -> float:
        """Spearman's rank correlation of score and change of the loss; NaN where one side does not vary."""
        return spearman(self["score"], self["loss"])

    @property
    def gradient_correlation(self) -> float:
        """That of predicted and observed change of the gradient in the unknowns."""
        return spearman(self["gradient_predicted"], self["gradient"])

    @classmethod
    def pooled(cls, probes: Sequence[Probes]) -> Probes:
        """The probes of several runs as if they were one's, as the paper counts them."""
        return cls("", "", -1, np.concatenate([one.rows for one in probes]))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation of average ranks; NaN where one side does not vary."""
    ranks = np.stack([rankdata(a), rankdata(b)])
    return float(np.corrcoef(ranks)[0, 1]) if np.all(np.ptp(ranks, axis=1) > 0) else float("nan")
