"""The paired test: exact two-sided Wilcoxon signed-rank, Holm's adjustment, and the size of the effect.

Ranks of |difference| are averaged over ties; pairs without a difference are left out (Wilcoxon's own way), as they say
nothing about a direction; where one of a pair failed its difference is infinite and ranks largest. Given these ranks,
every pattern of signs is equally likely under the hypothesis of no difference, and p is the share of the 2^m patterns
whose rank sum is at least as extreme. That is exact with ties too, where tables of the rank sum (and SciPy's
`method="exact"`) are not: they assume the ranks 1..m. SciPy is asked where they are just that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tgsr.study._statistics import differences

SIGNIFICANT = 0.05  # the paper's criterion, on the unadjusted p


@dataclass(frozen=True)
class SignedRank:
    """`p` is exact. `below` and `above` are the rank sums of the pairs in which the first is lower, and higher."""

    p: float
    below: float
    above: float
    used: int  # pairs with a difference
    ties: bool  # among the sizes of the differences

    @property
    def effect(self) -> float:
        """Matched-pairs rank-biserial correlation: 1 if the first is lower in every pair, -1 if higher in every one."""
        total = self.below + self.above
        return (self.below - self.above) / total if total else 0.0

    @property
    def least_p(self) -> float:
        """The smallest p that so many pairs can give, 2^(1 - m): above 0.05 below six pairs."""
        return min(1.0, 2.0 ** (1 - self.used))


def signed_rank(ours: Iterable[float], theirs: Iterable[float]) -> SignedRank:
    """The test of no difference between paired samples."""
    d = differences(ours, theirs)
    d = d[d != 0.0]
    if not len(d):
        return SignedRank(1.0, 0.0, 0.0, 0, False)
    ranks = np.asarray(stats.rankdata(np.abs(d)))
    below, above = float(ranks[d < 0].sum()), float(ranks[d > 0].sum())
    ties = len(np.unique(ranks)) < len(ranks)
    if ties:
        p = permutation_p(ranks, min(below, above))
    else:
        test: Any = stats.wilcoxon(np.where(d < 0, -ranks, ranks), method="exact")
        p = float(test.pvalue)
    return SignedRank(p, below, above, len(d), ties)


def permutation_p(ranks: Sequence[float] | np.ndarray, statistic: float) -> float:
    """P(smaller of the two rank sums <= statistic) when every sign is tossed: twice the lower tail, at most 1.

    The chances of every rank sum are built up rank by rank, halves of the one before: (m ranks) x (their sum) steps.
    Average ranks are multiples of one half, so twice a rank is a whole number.
    """
    doubled = np.rint(2.0 * np.asarray(ranks, dtype=float)).astype(int)
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chance)
        moved[rank:] = chance[: len(chance) - rank]
        chance = 0.5 * (chance + moved)
    return min(1.0, 2.0 * float(chance[: int(np.rint(2.0 * statistic)) + 1].sum()))


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjustment: the i-th smallest of m times (m - i + 1), never falling, at most 1."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, largest = [0.0] * len(p), 0.0
    for step, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - step) * p[i]))
        adjusted[i] = largest
    return tuple(adjusted)
