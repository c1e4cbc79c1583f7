"""The picture of the first screen: every run of every arm as a dot, best arm first, on one logarithmic axis.

It is made of text and of shapes whose places are percentages, so it fits any width without a script.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgsr._errors import plain
from tgsr.report._arms import ArmStyle
from tgsr.report._numbers import num
from tgsr.report._study_runs import colour_class
from tgsr.report._words import percent
from tgsr.study._limits import common_range
from tgsr.study._pairs import arms_of, errors_of, runs_of
from tgsr.study._record import Record
from tgsr.study._statistics import median

LEFT, RIGHT, MOST = 2.0, 86.0, 100.0  # percent of the width: the ends of the axis; how far it may reach for an arm
RUNAWAY = 3.0  # times the median of its arm


@dataclass(frozen=True)
class Row:
    """An arm: where its dots are, and its numbers in words."""

    arm: str
    number: int  # of the arm in the study
    colour: str  # a class of the style sheet
    dots: tuple[float, ...]
    beyond: int  # runs that the axis does not reach
    failed: int
    middle: float | None
    median: str
    words: str


@dataclass(frozen=True)
class Ranking:
    """The arms of a task with readings, then those without."""

    rows: tuple[Row, ...]
    without: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    limit: float | None
    limit_words: str

    @property
    def failed(self) -> bool:
        """Whether any run did."""
        return any(row.failed for row in (*self.rows, *self.without))

    @property
    def beyond(self) -> bool:
        """Whether any run lies beyond the axis."""
        return any(row.beyond for row in (*self.rows, *self.without))


def ranking(records: Sequence[Record], task: str, styles: Mapping[str, ArmStyle]) -> Ranking | None:
    """None where no truth is known, or nothing ended well."""
    samples = {arm: tuple(errors_of(records, task, arm).values()) for arm in arms_of(records, task)}
    finite = [v for sample in samples.values() for v in sample if 0 < v < math.inf]
    if not finite:
        return None
    bound = _bound(records, task)
    axis = _Axis(min([*finite, bound]), max([*_shown(samples), *([bound] if math.isfinite(bound) else [])]))
    fed = {arm: next(iter(runs_of(records, task, arm).values())).observations > 0 for arm in samples}
    ordered = sorted(samples, key=lambda arm: (median(samples[arm]), styles[arm].number))
    rows = {arm: _row(styles[arm], samples[arm], axis) for arm in ordered}
    return Ranking(
        tuple(row for arm, row in rows.items() if fed[arm]),
        tuple(row for arm, row in rows.items() if not fed[arm]),
        axis.ticks(),
        axis.at(bound) if math.isfinite(bound) else None,
        percent(bound),
    )


def _shown(samples: Mapping[str, Sequence[float]]) -> list[float]:
    """What the axis is to reach: the common range, and every arm that is not too far off, but none of its runaways."""
    usual = common_range(samples)
    near = {m: sample for sample in samples.values() if (m := median(sample)) <= MOST * usual}
    return [usual] + [v for m, sample in near.items() for v in sample if v <= RUNAWAY * m]


class _Axis:
    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = math.log10(low), math.log10(max(high, low * 1.5))

    def at(self, value: float) -> float:
        share = (math.log10(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return round(LEFT + (RIGHT - LEFT) * min(max(share, 0.0), 1.0), 2)

    def holds(self, value: float) -> bool:
        return math.log10(max(value, 1e-300)) <= self.high + 1e-9

    def ticks(self) -> tuple[tuple[float, str], ...]:
        decades = range(max(math.floor(self.low), -300), min(math.ceil(self.high), 300) + 1)
        span = self.high - self.low
        steps = (1,) if span > 1.3 else (1, 2, 5) if span > 0.6 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
        values = [step * 10.0**decade for decade in decades for step in steps]
        inside = [v for v in values if self.low - 1e-9 <= math.log10(v) <= self.high + 1e-9]
        skip = -(-len(inside) // 5) or 1  # more labels run into each other
        return tuple((self.at(v), f"{v:g}") for v in inside[::skip])


def _row(style: ArmStyle, sample: Sequence[float], axis: _Axis) -> Row:
    finite = [v for v in sample if math.isfinite(v)]
    inside = [v for v in finite if axis.holds(v)]
    failed, beyond, middle = len(sample) - len(finite), len(finite) - len(inside), median(sample)
    words = (
        f"{len(sample)} runs from {percent(min(finite))} to {percent(max(finite))}" if finite else "no run ended well"
    )
    words += f", {failed} failed" if failed and finite else ""
    on_axis = math.isfinite(middle) and axis.holds(middle)
    return Row(
        plain(style.arm, 80), style.number, colour_class(style), tuple(axis.at(v) for v in inside), beyond, failed,
        axis.at(middle) if on_axis else None, num(middle), words,
    )  # fmt: skip


def _bound(records: Sequence[Record], task: str) -> float:
    """The median over the runs of the mean bound of the unknowns; infinite where a run's bounds are not known."""
    each = [
        sum(r.bounds.values()) / len(r.bounds)
        for r in records
        if r.role == "target" and r.task == task and r.bounds and all(0 < b < math.inf for b in r.bounds.values())
    ]
    return median(each) if each else math.inf
