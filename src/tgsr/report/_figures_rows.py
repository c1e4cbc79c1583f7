"""Rows: one arm per line, each of its runs a point, with median, interval, mean and the paper's number.

What lies outside the axis is never dropped in silence: an arrow stands at the edge for every such run, a cross for
every failed one, and the number of runs that are shown stands behind the row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr.report._arms import ArmStyle
from tgsr.report._figures_axes import (
    DASHED,
    MEAN,
    MEAN_LABEL,
    PAPER,
    PAPER_LABEL,
    SMALL,
    below,
    dot,
    guide,
    logarithmic,
    positive,
    short,
    signed_logarithmic,
)
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._style import FAINT, GRID, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

PITCH, REST, LEAST = 0.25, 1.15, 2.3  # inches: a row, everything around the rows, the smallest picture
UP, DOWN = 0.13, 0.24  # in rows: the points stand above the middle, the summary below it


@dataclass(frozen=True)
class Row:
    """An arm's runs. Values that are not finite are failed runs."""

    style: ArmStyle
    values: tuple[float, ...]
    words: tuple[str, ...]  # of every run, for the one who points at it
    behind: str = ""
    median: float = math.nan
    low: float = math.nan
    high: float = math.nan
    mean: float = math.nan
    paper: float = math.nan


@dataclass(frozen=True)
class Scale:
    """The axis: 'log', 'linear' or 'signed' (logarithmic both ways, linear around zero); and what it leaves out."""

    label: str
    kind: str
    low: float
    high: float
    linear: float = 0.0
    heading: str = ""  # of the column behind the rows
    guide: tuple[float, str] | None = None  # where a dashed line stands, and its name in the legend
    shaded: tuple[float, float, str] | None = None  # from, to, and what that means
    summary: str = "median"
    paper: str = PAPER_LABEL


def rows_panel(title: str, words: str, rows: Sequence[Row], scale: Scale) -> Panel:
    """A picture as high as its rows need."""
    return Panel(title, words, partial(_draw, tuple(rows), scale), (4.3, max(LEAST, REST + PITCH * len(rows))))


def log_scale(label: str, rows: Sequence[Row], upper: float, include: Sequence[float] = (), **more: Any) -> Scale:
    """A logarithmic axis up to `upper`, from the smallest number that is shown; `include` is on it in any case."""
    held = [v for row in rows for v in (*row.values, row.median, row.mean, row.paper) if v <= upper * 1.001]
    shown = positive([*held, *include])
    low = float(shown.min()) if len(shown) else 0.1
    top = max(upper, float(shown.max())) if len(shown) else 10.0 * low
    margin = max((top / low) ** 0.04, 1.06)
    return Scale(label, "log", low / margin, top * margin, **more)


def _draw(rows: Sequence[Row], scale: Scale, ax: Axes) -> None:
    _axis(rows, scale, ax)
    shown: set[str] = set()
    for place, row in enumerate(rows):
        _runs(ax, place, row, scale, shown)
        _summary(ax, place, row, scale, shown)
        if row.behind:
            ax.text(
                1.035, place, row.behind, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL, color=INK
            )
    if scale.heading:
        ax.annotate(scale.heading, (1.035, 1.0), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points",
                    fontsize=SMALL, color=FAINT)  # fmt: skip
    _legend(ax, scale, shown)


def _axis(rows: Sequence[Row], scale: Scale, ax: Axes) -> None:
    ax.set_ylim(len(rows) - 0.45, -0.55)
    ax.set_yticks(range(len(rows)), [short(row.style.arm, 26) for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    for row, text in zip(rows, ax.get_yticklabels(), strict=True):
        mark(text, row.style.number)
        if row.style.stands_out:
            text.set_fontweight("bold")
    for edge in range(1, len(rows)):
        ax.axhline(edge - 0.5, color=GRID, linewidth=0.5, zorder=0)
    ax.set_xlabel(scale.label)
    if scale.kind == "signed":
        signed_logarithmic(ax, scale.linear, scale.high)
    ax.set_xlim(scale.low, scale.high)
    if scale.kind == "log":
        logarithmic(ax.xaxis)
        ax.set_xlim(scale.low, scale.high)
    if scale.shaded:
        ax.axvspan(*scale.shaded[:2], color=GRID, alpha=0.45, linewidth=0, zorder=0)
    if scale.guide:
        guide(ax, *scale.guide)


def _runs(ax: Axes, place: int, row: Row, scale: Scale, shown: set[str]) -> None:
    for i, (value, words) in enumerate(zip(row.values, row.words, strict=True)):
        y = place - UP + 0.3 * ((i * 0.618034) % 1.0 - 0.5)
        look: dict[str, Any] = {"color": row.style.colour, "markersize": 3.6, "markeredgewidth": 0.0}
        if not math.isfinite(value):
            kind, x = "failed", scale.low if value < 0 else scale.high
            look |= {"marker": "x", "markeredgewidth": 1.3, "markersize": 4.2}
        elif value > scale.high or value < scale.low:
            kind, x = "outside", scale.high if value > scale.high else scale.low
            look |= {"marker": ">" if value > scale.high else "<", "markersize": 4.6}
        else:
            kind, x = "one run", value
            look |= {"marker": "o"}
        shown.add(kind)
        dot(ax, x, y, row.style.number, words, zorder=4, **look)


def _summary(ax: Axes, place: int, row: Row, scale: Scale, shown: set[str]) -> None:
    y, inside = place + DOWN, lambda v: math.isfinite(v) and scale.low <= v <= scale.high
    low, high = (min(max(v, scale.low), scale.high) for v in (row.low, row.high))
    if not (math.isnan(row.low) or math.isnan(row.high)) and high > low:
        ax.plot([low, high], [y, y], color=INK, linewidth=1.1, zorder=5)
        shown.add("interval")
    if inside(row.median):
        ax.plot([row.median], [y], marker="|", color=INK, markersize=9, markeredgewidth=2.0, zorder=6)
        shown.add("summary")
    for kind, value, look, whose in (("mean", row.mean, MEAN, "mean"), ("paper", row.paper, PAPER, "the paper")):
        if math.isfinite(value):
            marker = look["marker"] if inside(value) else ">" if value > scale.high else "<"
            at = min(max(value, scale.low), scale.high)
            dot(ax, at, y, row.style.number, f"{row.style.arm}, {whose}: {value:.4g}", **{**look, "marker": marker})
            shown.add(kind)


def _legend(ax: Axes, scale: Scale, shown: set[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bare: dict[str, Any] = {"linestyle": "none", "color": FAINT}
    entries: dict[str, dict[str, Any]] = {
        "one run": {**bare, "marker": "o", "markersize": 3.6, "label": "one run"},
        "summary": {"color": INK, "marker": "|", "markersize": 8, "markeredgewidth": 2.0, "linewidth": 1.1,
                    "linestyle": "-" if "interval" in shown else "none",
                    "label": scale.summary + (", 95 %" if "interval" in shown else "")},
        "mean": {**MEAN, "label": MEAN_LABEL},
        "paper": {**PAPER, "label": scale.paper},
        "outside": {**bare, "marker": ">", "markersize": 4.6, "label": "run outside"},
        "failed": {**bare, "marker": "x", "markersize": 4.2, "label": "failed run"},
    }  # fmt: skip
    handles: list[Artist] = [Line2D([], [], **look) for name, look in entries.items() if name in shown]
    if scale.guide and scale.guide[1]:
        handles.append(Line2D([], [], **DASHED, label=scale.guide[1]))
    if scale.shaded:
        handles.append(Patch(color=GRID, alpha=0.45, label=scale.shaded[2]))
    letters = sum(4 + len(str(handle.get_label())) for handle in handles)
    below(ax, handles, columns=4 if len(handles) == 4 and letters < 56 else 3)


def hover(arm: str, seed: int, value: float, unit: str = " %") -> str:
    """What a run says when pointed at."""
    return f"{arm}, seed {seed}: {f'{value:.4g}{unit}' if np.isfinite(value) else 'failed'}"
