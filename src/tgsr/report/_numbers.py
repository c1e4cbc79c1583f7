"""Numbers as a table prints them: three digits, a real minus sign, failures in plain sight, the paper's as printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tgsr.report._table import Cell
from tgsr.study._statistics import Summary
from tgsr.study.paper import Quoted

INFINITE = "∞"
UNKNOWN = "\N{EN DASH}"
PLAIN = 1e-4, 1e6  # numbers between are printed in full, others with a power of ten
SPREAD = ("mean", "sd", "failed", "mean of the others", "sd of the others")
INTERVAL = ("median", "low", "high")


def num(value: float, digits: int = 3) -> str:
    """A number to `digits` significant digits, but whole numbers in full."""
    if math.isnan(value):
        return UNKNOWN
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    size = abs(float(value))
    if math.isinf(size):
        return sign + INFINITE
    if size == 0 or (size == int(size) and size < PLAIN[1]):
        return f"{sign}{int(size)}"
    rounded = float(f"{size:.{digits - 1}e}")
    if not PLAIN[0] <= rounded < PLAIN[1]:
        mantissa, _, power = f"{size:.{digits - 1}e}".partition("e")
        return f"{sign}{mantissa}e{int(power)}"
    decimals = max(digits - 1 - math.floor(math.log10(rounded)), 0)
    return f"{sign}{size:.{decimals}f}"


def signed(value: float) -> str:
    """A difference, with its sign."""
    return f"+{num(value)}" if value > 0 else num(value)


def number_cell(value: float, digits: int = 3, *, note: str = "") -> Cell:
    """A single number."""
    return Cell(num(value, digits), value, note=note)


def count_cell(value: int | None) -> Cell:
    """A count; None is not known."""
    return Cell(UNKNOWN if value is None else f"{value:,}", value)


def share_cell(part: int, n: int) -> Cell:
    """So many of so many; exports both."""
    return Cell(f"{part} of {n}", (part, n))


def spread_cell(sample: Summary) -> Cell:
    """Mean ± sd over all runs; where some failed, that of the others beside the infinite one."""
    exported = (sample.mean, sample.sd, sample.failed, sample.finite_mean, sample.finite_sd)
    if not sample.n:
        return Cell(UNKNOWN, (math.nan, math.nan, 0, math.nan, math.nan))
    finite = _plus_minus(sample.finite_mean, sample.finite_sd)
    if not sample.failed:
        return Cell(finite, exported)
    if not sample.finite:
        return Cell(f"{INFINITE} (all {sample.n} failed)", exported)
    return Cell(f"{INFINITE} ({sample.failed} failed; the other {sample.finite}: {finite})", exported)


def median_cell(sample: Summary) -> Cell:
    """Median and its 95 % interval from order statistics, which needs six runs."""
    exported = (sample.median, sample.median_low, sample.median_high)
    if math.isnan(sample.median_low):
        return Cell(num(sample.median), exported)
    return Cell(f"{num(sample.median)} [{interval(sample.median_low, sample.median_high)}]", exported)


def interval(low: float, high: float) -> str:
    """From here to there."""
    return UNKNOWN if math.isnan(low) or math.isnan(high) else f"{num(low)} to {num(high)}"


def quoted_cell(quoted: Quoted) -> Cell:
    """A number of the paper as the paper prints it, with its standard deviation where it has one."""
    if not quoted.known:
        return Cell(UNKNOWN, (math.nan, math.nan), paper=True)
    sd = "" if math.isnan(quoted.sd) else f" ± {printed(quoted.sd)}"
    return Cell(printed(quoted.value) + sd, (float(quoted.value), float(quoted.sd)), paper=True)


def paper_cell(value: float) -> Cell:
    """A single number of the paper."""
    return Cell(printed(value), math.nan if math.isnan(value) else value, paper=True)


def printed(value: float) -> str:
    """With the digits that the paper prints."""
    return getattr(value, "printed", "") or num(float(value), 4)


def with_best(cells: Sequence[Cell], ranks: Sequence[float]) -> list[Cell]:
    """The cells with the lowest finite rank marked; nothing is best of one."""
    known = [rank for rank in ranks if math.isfinite(rank)]
    least = min(known, default=math.nan)
    return [replace(cell, best=len(known) > 1 and rank == least) for cell, rank in zip(cells, ranks, strict=True)]


def _plus_minus(mean: float, sd: float) -> str:
    return num(mean) if math.isnan(sd) else f"{num(mean)} ± {num(sd)}"
