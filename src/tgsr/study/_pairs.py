"""Arms of a study side by side: which runs belong together, and what the pairs say.

Runs are pairs where task and seed agree: they then have the same readings, points, first guess and source. Seeds that
only one of two arms has are left out of their comparison and named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from tgsr._errors import InputError, plain
from tgsr._random import stream
from tgsr.study._record import Record
from tgsr.study._signed_rank import SignedRank, holm, signed_rank
from tgsr.study._statistics import LEVEL, Tally, differences, median, tally

RESAMPLES = 4999
_HUGE = 1e300  # stands for infinity while medians are resampled: the mean of two opposite ones is 0, not NaN
_SOME = 1e150


@dataclass(frozen=True)
class Paired:
    """One arm against another over matched seeds; from the first one's side, so a negative difference is better."""

    task: str
    error: str  # which one: 'parameter', 'field', an unknown
    arm: str
    other: str
    seeds: tuple[int, ...]
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    only_arm: tuple[int, ...]  # seeds that the other does not have
    only_other: tuple[int, ...]
    tally: Tally
    test: SignedRank
    difference: float  # the median of ours - theirs
    low: float  # its 95 % bootstrap interval; NaN below two pairs
    high: float
    adjusted: float = math.nan  # p after Holm, among the comparisons made together

    @property
    def n(self) -> int:
        """The number of pairs."""
        return len(self.seeds)


def tasks_of(records: Iterable[Record]) -> tuple[str, ...]:
    """The tasks of a study, in the order of its records."""
    return tuple(dict.fromkeys(r.task for r in records if r.role == "target"))


def arms_of(records: Iterable[Record], task: str | None = None) -> tuple[str, ...]:
    """The arms of a task (of all tasks), in the order of its records."""
    return tuple(dict.fromkeys(r.arm for r in records if r.role == "target" and task in (None, r.task)))


def runs_of(records: Iterable[Record], task: str, arm: str) -> dict[int, Record]:
    """The run of every seed. Two different runs at one seed are an error: a mean over both would count it twice."""
    found: dict[int, Record] = {}
    for r in records:
        if r.role == "target" and r.task == task and r.arm == arm:
            before = found.setdefault(r.seed, r)
            if before is not r and (before.run, before.outcome, before.weights) != (r.run, r.outcome, r.weights):
                raise InputError(
                    f"two different runs of {plain(arm, 60)!r} on {plain(task, 60)!r} at seed {r.seed}",
                    field=arm,
                    remedy="Give studies that do not overlap, or other labels",
                )
    return dict(sorted(found.items()))


def errors_of(records: Iterable[Record], task: str, arm: str, error: str = "parameter") -> dict[int, float]:
    """The error of every seed; +inf for a run that failed. Empty where no run of the task has such an error."""
    known = [r for r in records if r.role == "target" and r.task == task]
    if not any(error in r.errors for r in known):
        return {}
    out = {}
    for seed, run in runs_of(known, task, arm).items():
        value = run.errors.get(error, math.inf) if run.ok else math.inf
        out[seed] = value if math.isfinite(value) else math.inf
    return out


def compare_arms(records: Sequence[Record], task: str, arm: str, other: str, error: str = "parameter") -> Paired:
    """`arm` against `other`."""
    a, b = errors_of(records, task, arm, error), errors_of(records, task, other, error)
    seeds = tuple(seed for seed in a if seed in b)
    ours, theirs = tuple(a[s] for s in seeds), tuple(b[s] for s in seeds)
    d = differences(ours, theirs)
    return Paired(
        task, error, arm, other, seeds, ours, theirs,
        tuple(s for s in a if s not in b), tuple(s for s in b if s not in a),
        tally(ours, theirs), signed_rank(ours, theirs), median(d), *median_interval(d),
    )  # fmt: skip


def compare_all(
    records: Sequence[Record], task: str, arm: str, others: Iterable[str] | None = None, error: str = "parameter"
) -> tuple[Paired, ...]:
    """`arm` against each of the others (all of the task), with Holm's adjustment among them."""
    named = arms_of(records, task) if others is None else tuple(others)
    found = [compare_arms(records, task, arm, other, error) for other in named if other != arm]
    found = [pair for pair in found if pair.n]
    return tuple(replace(p, adjusted=q) for p, q in zip(found, holm([p.test.p for p in found]), strict=True))


def median_interval(d: Sequence[float] | np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """The percentile bootstrap interval of the median, over extended reals; the same numbers every time."""
    if len(d) < 2:
        return math.nan, math.nan
    bounded = np.clip(np.asarray(d, dtype=float), -_HUGE, _HUGE)
    with np.errstate(over="ignore"):  # it also takes a standard error, for which what stands for infinity is too large
        found = stats.bootstrap(
            (bounded,), np.median, n_resamples=RESAMPLES, confidence_level=level, method="percentile",
            vectorized=True, rng=stream(0, "bootstrap"),
        ).confidence_interval  # fmt: skip
    low, high = (math.copysign(math.inf, v) if abs(v) > _SOME else float(v) for v in (found.low, found.high))
    return low, high
