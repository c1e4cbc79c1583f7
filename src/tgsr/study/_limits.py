"""Three checks of what an error means: the statistical limit, the control without readings, the range of a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tgsr.study._pairs import Paired, arms_of, compare_arms, runs_of
from tgsr.study._record import Record
from tgsr.study._statistics import Summary, extended, median, summarise

EFFICIENT = 0.674  # the median of |N(0, 1)|: what error/bound is for an efficient estimator
LEAK = 0.3  # below: the knowledge came from elsewhere than the readings
FAR = 3.0  # above: the optimiser, not the readings, limits the answer


@dataclass(frozen=True)
class Limit:
    """An unknown's error over its Cramér-Rao bound, over the seeds of an arm."""

    task: str
    arm: str
    unknown: str
    bound: float  # median over seeds, percent of the truth
    error: float  # median, percent
    ratio: float  # median of error/bound
    n: int


def limits(records: Sequence[Record], task: str, arms: Sequence[str] | None = None) -> tuple[Limit, ...]:
    """Error over bound of every arm and unknown that has a finite bound. A failed run's ratio is infinite."""
    out = []
    for arm in arms_of(records, task) if arms is None else arms:
        runs = [run for run in runs_of(records, task, arm).values() if run.bounds]
        for unknown in dict.fromkeys(name for run in runs for name in run.bounds):
            pairs = [(_error(run, unknown), run.bounds.get(unknown, math.inf)) for run in runs]
            pairs = [(error, bound) for error, bound in pairs if 0 < bound < math.inf]
            if pairs:
                error, bound = (median(column) for column in zip(*pairs, strict=True))
                ratio = median(error / bound for error, bound in pairs)
                out.append(Limit(task, arm, unknown, bound, error, ratio, len(pairs)))
    return tuple(out)


@dataclass(frozen=True)
class Control:
    """The same method with its readings and with none: what did the data contribute?"""

    task: str
    method: str
    readings: int
    with_readings: Summary
    without: Summary
    paired: Paired  # with readings against without

    @property
    def gain(self) -> float:
        """How many times smaller the median error is with readings. 1: they contributed nothing; below: they harmed."""
        ours, theirs = self.with_readings.median, self.without.median
        if ours == theirs:
            return 1.0
        return math.inf if ours == 0 or math.isinf(theirs) else theirs / ours


def zero_data_controls(records: Sequence[Record], task: str) -> tuple[Control, ...]:
    """Every arm with no readings beside the arm of the same method and options with the most."""
    first = {arm: next(iter(runs_of(records, task, arm).values())) for arm in arms_of(records, task)}
    out = []
    for arm, run in first.items():
        same = [a for a, r in first.items()
                if r.observations > 0 and r.method == run.method and dict(r.options) == dict(run.options)]  # fmt: skip
        if run.observations > 0 or not same:
            continue
        fed = max(same, key=lambda a: first[a].observations)
        paired = compare_arms(records, task, fed, arm)
        if paired.n:
            sides = summarise(paired.ours), summarise(paired.theirs)
            out.append(Control(task, run.method, first[fed].observations, *sides, paired))
    return tuple(out)


@dataclass(frozen=True)
class Excluded:
    """What a picture with a bounded axis leaves out. Nothing is left out of a table or a test."""

    arm: str
    n: int
    retained: int
    outside: tuple[float, ...]  # ascending; failed runs are infinite


def common_range(samples: Mapping[str, Sequence[float]]) -> float:
    """An upper end of the axis that shows most of all samples: Tukey's fence on the logarithms, Q3 + 1.5 IQR."""
    pooled = extended(value for sample in samples.values() for value in sample)
    logs = np.log(pooled[np.isfinite(pooled) & (pooled > 0)])
    if not len(logs):
        return math.inf
    low, high = np.percentile(logs, [25, 75])
    fence = math.exp(min(float(high + 1.5 * (high - low)), 700.0))
    return float(min(fence, np.exp(logs.max())))


def exclusions(samples: Mapping[str, Sequence[float]], most: float) -> tuple[Excluded, ...]:
    """Of every arm the runs above `most`."""
    out = []
    for arm, sample in samples.items():
        x = np.sort(extended(sample))
        outside = tuple(float(v) for v in x[(x > most * (1.0 + 1e-12)) | np.isinf(x)])
        out.append(Excluded(arm, len(x), len(x) - len(outside), outside))
    return tuple(out)


def _error(run: Record, unknown: str) -> float:
    value = run.errors.get(unknown, math.inf) if run.ok else math.inf
    return value if math.isfinite(value) else math.inf
