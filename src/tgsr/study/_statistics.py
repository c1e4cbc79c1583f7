"""Numbers that describe a sample of runs, failures included.

A run that failed, diverged or gave NaN counts as +inf, never as NaN and never as absent: it loses against every run
that did not fail and ties with one that failed too. A mean over such a sample is infinite, so the mean over the
runs that did not fail stands beside it, with their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True)
class Summary:
    """A sample of errors, or of costs. `mean` and `sd` are infinite where a run failed; NaN: it cannot be known."""

    n: int
    failed: int  # not finite
    mean: float
    sd: float  # n - 1 in the denominator; NaN for one run
    median: float
    low: float  # 95 % interval of the mean, Student's t
    high: float
    median_low: float  # 95 % interval of the median from order statistics; NaN below six runs
    median_high: float
    best: float
    worst: float
    finite_mean: float  # of the runs that did not fail
    finite_sd: float

    @property
    def finite(self) -> int:
        """The number of runs that did not fail."""
        return self.n - self.failed


def extended(values: Iterable[float]) -> np.ndarray:
    """The values with everything that is not finite as +inf."""
    given = np.asarray(list(values), dtype=float)
    return np.where(np.isfinite(given), given, np.inf)


def summarise(values: Iterable[float], level: float = LEVEL) -> Summary:
    """Mean, sd (n - 1), median and intervals of a sample."""
    x = np.sort(extended(values))
    finite = x[np.isfinite(x)]
    failed = len(x) - len(finite)
    finite_mean, finite_sd = _mean_sd(finite)
    mean, sd = (math.inf, math.inf) if failed else (finite_mean, finite_sd)
    low, high = (math.nan, math.inf) if failed else _t_interval(finite, level)
    median_low, median_high = _median_interval(x, level)
    best, worst = (float(x[0]), float(x[-1])) if len(x) else (math.nan, math.nan)
    return Summary(
        len(x), failed, mean, sd, median(x), low, high, median_low, median_high, best, worst, finite_mean, finite_sd
    )


def median(values: Iterable[float]) -> float:
    """The median over extended reals: the mean of the middle two of an even number; NaN of nothing.

    Opposite infinities in the middle of paired differences have the median 0: half the pairs say one thing, half the
    other.
    """
    x = np.sort(np.asarray(list(values), dtype=float))
    if not len(x):
        return math.nan
    low, high = float(x[(len(x) - 1) // 2]), float(x[len(x) // 2])
    if math.isinf(low) and math.isinf(high) and low != high:
        return 0.0
    for infinite in (low, high):
        if math.isinf(infinite):
            return infinite
    return low + (high - low) / 2.0


@dataclass(frozen=True)
class Tally:
    """Paired runs counted from the first one's side. `wins + ties + losses` is the number of pairs."""

    wins: int  # strictly lower
    ties: int  # equal, or both failed
    losses: int

    @property
    def n(self) -> int:
        """The number of pairs."""
        return self.wins + self.ties + self.losses


def tally(ours: Iterable[float], theirs: Iterable[float]) -> Tally:
    """Wins, ties and losses of `ours`, pair by pair."""
    a, b = extended(ours), extended(theirs)
    return Tally(int(np.sum(a < b)), int(np.sum(a == b)), int(np.sum(a > b)))


def differences(ours: Iterable[float], theirs: Iterable[float]) -> np.ndarray:
    """ours - theirs over extended reals: 0 where both failed, -inf where only `theirs` did."""
    a, b = extended(ours), extended(theirs)
    same = a == b
    return np.where(same, 0.0, np.where(same, 0.0, a) - np.where(same, 0.0, b))


def _mean_sd(x: np.ndarray) -> tuple[float, float]:
    if not len(x):
        return math.nan, math.nan
    scale = float(np.abs(x).max()) or 1.0  # runs that diverge to 1e200 have squares that overflow
    sd = scale * float(np.std(x / scale, ddof=1)) if len(x) > 1 else math.nan
    return scale * float(np.mean(x / scale)), sd


def _t_interval(x: np.ndarray, level: float) -> tuple[float, float]:
    if len(x) < 2:
        return math.nan, math.nan
    mean, sd = _mean_sd(x)
    half = float(stats.t.ppf(0.5 + level / 2.0, len(x) - 1)) * sd / math.sqrt(len(x))
    return mean - half, mean + half


def _median_interval(x: np.ndarray, level: float) -> tuple[float, float]:
    """[x_(k), x_(n+1-k)] with the largest k for which P(Bin(n, 1/2) < k) <= (1 - level)/2."""
    k = int(stats.binom.ppf((1.0 - level) / 2.0, len(x), 0.5)) if len(x) else 0
    while k > 0 and stats.binom.cdf(k - 1, len(x), 0.5) > (1.0 - level) / 2.0:
        k -= 1
    return (float(x[k - 1]), float(x[len(x) - k])) if k > 0 else (math.nan, math.nan)
