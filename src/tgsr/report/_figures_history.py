"""Figures of how the parameters came about: their error over closures, and before, after and at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._arms import in_groups
from tgsr.report._figures_axes import arm_legend, listed, logarithmic, positive
from tgsr.report._history_panels import CLOSURES
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_curves import Curve
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._words import percent
from tgsr.study._statistics import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 100  # of a curve
STILL = 0.01  # decades that a curve may move before it is drawn to have moved
HEIGHT = 3.7
QUARTILES = 4  # runs from which the band holds the middle half; below it holds all

Curves = Mapping[str, Sequence[Curve | None]]  # by arm, one per run; None failed, or cannot be read


def convergence(scene: Scene) -> list[StudyFigure]:
    """The parameter error over closures: median and spread over the seeds."""
    curves = curves_of(scene)
    if not curves:
        return []
    groups = in_groups(list(curves), scene.leading)
    panels = []
    for place, group in enumerate(groups):
        title = "Convergence" + (f" ({place + 1} of {len(groups)})" if len(groups) > 1 else "")
        finals = {arm: percent(median(_last(curve) for curve in curves[arm])) for arm in group}
        words = f"Median at the end: {listed(finals)}."
        panels.append(
            Panel(title, words, partial(_convergence, scene, {arm: curves[arm] for arm in group}), (4.3, HEIGHT))
        )
    words = (
        "Parameter error over closures, adaptation and scoring included: the median over the seeds, and a band that "
        f"holds the middle half of the runs (all of fewer than {QUARTILES}). A failed run counts as infinite, one that "
        "ended early keeps its last value."
    )
    return scene.figure("convergence", "How the parameters converge", words, panels)


def curves_of(scene: Scene) -> Curves:
    """The arms of which at least one run can be read."""
    found = {arm: [scene.runs.curve(run) for run in scene.view.runs(arm).values()] for arm in scene.arms}
    return {arm: own for arm, own in found.items() if any(curve is not None for curve in own)}


def _last(curve: Curve | None) -> float:
    return math.inf if curve is None else float(curve.error[-1])


def _convergence(scene: Scene, curves: Curves, ax: Axes) -> None:
    top = max(float(curve.closures[-1]) for own in curves.values() for curve in own if curve is not None)
    grid = np.linspace(0.0, top, POINTS)
    bands = {arm: _band(own, grid) for arm, own in curves.items()}
    for arm, (low, middle, high) in bands.items():
        style, kept = scene.styles[arm], _corners(low, middle, high)
        low, middle, high, x = low[kept], middle[kept], high[kept], grid[kept]
        if any(np.isfinite(low) & np.isfinite(high) & (high > low)):
            area = ax.fill_between(x, low, _bounded(high), color=style.colour, alpha=0.13, linewidth=0)
            mark(area, style.number)
        known = np.isfinite(middle)
        (line,) = ax.plot(x[known], middle[known], **style.line)
        mark(line, style.number, f"{arm}: {percent(float(middle[-1]))} at the end (median)")
        if known.any():
            (end,) = ax.plot(x[known][-1:], middle[known][-1:], **style.dot, clip_on=False, zorder=6)
            mark(end, style.number)
    lows, middles = (positive(v for band in bands.values() for v in band[i]) for i in (0, 1))
    if len(middles):
        bottom = float(np.percentile(lows, 2)) / 1.3  # an error that passes through zero has no lowest value
        ax.set_ylim(bottom, min(float(middles.max()) * 1.5, 1e8 * bottom))
    logarithmic(ax.yaxis)
    ax.set_xlim(0.0, top * 1.02)
    ax.set_xlabel(CLOSURES)
    ax.set_ylabel("parameter error (%)")
    arm_legend(ax, sorted((scene.styles[arm] for arm in curves), key=lambda s: s.number), kind="line")


def _corners(*curves: np.ndarray) -> np.ndarray:
    """Where curves have to be drawn through: at their ends, where one has moved, and just before."""
    logs = np.log10(np.clip(np.stack(curves), 1e-30, 1e30))
    kept = [0]
    for i in range(1, logs.shape[1]):
        if np.max(np.abs(logs[:, i] - logs[:, kept[-1]])) > STILL:
            kept += [i - 1, i]
    return np.unique([*kept, logs.shape[1] - 1])


def _bounded(values: np.ndarray) -> np.ndarray:
    """Infinity as a number that lies above every axis."""
    return np.minimum(values, 1e30)


def _band(curves: Sequence[Curve | None], grid: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower end, median and upper end at every closure count."""
    table = np.sort(np.stack([np.full(len(grid), np.inf) if c is None else c.at(grid) for c in curves]), axis=0)
    n = len(table)
    shares = (0.25, 0.5, 0.75) if n >= QUARTILES else (0.0, 0.5, 1.0)
    ends = []
    for share in shares:
        place = share * (n - 1)
        low, high = table[math.floor(place)], table[math.ceil(place)]
        with np.errstate(invalid="ignore"):
            between = low + (place - math.floor(place)) * (high - low)
        ends.append(np.where(np.isinf(low) | np.isinf(high), high if share else low, between))
    return ends[0], ends[1], ends[2]


STEPS = ("first guess", "after decay", "final")


def stages(scene: Scene) -> list[StudyFigure]:
    """The parameter error before adaptation, after the decay, and at the end."""
    curves = curves_of(scene)
    adapted = [arm for arm, own in curves.items() if any(c is not None and c.adapted is not None for c in own)]
    if not adapted:
        return []
    shown = {arm: own for arm, own in curves.items() if arm in adapted or arm in ("scratch", "full")}
    after = {arm: f"{percent(_steps(curves[arm])[1][1])} and {percent(_steps(curves[arm])[2][1])}" for arm in adapted}
    panel = Panel("Before, after decay, final", f"Medians after adaptation and decay, and at the end: {listed(after)}.",
                  partial(_stages, scene, shown), (4.3, HEIGHT))  # fmt: skip
    words = (
        "Parameter error of the first guess, after short adaptation and decay (which leaves the parameters as they "
        "are), and at the end: median and middle half of the runs. Methods that do not adapt have no middle point."
    )
    return scene.figure("stages", "What adaptation and main training do", words, [panel])


def _steps(curves: Sequence[Curve | None]) -> list[tuple[float, float, float]]:
    """Low, median and high of each step; NaN for a step that the arm has not."""
    out = []
    for pick in (_first, _after, _last):
        values = np.array([pick(curve) for curve in curves])
        if np.isnan(values).any() and pick is _after:
            values = values[~np.isnan(values)]
        if not len(values):
            out.append((math.nan, math.nan, math.nan))
            continue
        middle = _band(
            [None if math.isinf(v) else Curve(np.zeros(1), np.array([v]), None) for v in values], np.zeros(1)
        )
        out.append((float(middle[0][0]), float(middle[1][0]), float(middle[2][0])))
    return out


def _first(curve: Curve | None) -> float:
    return math.nan if curve is None else float(curve.error[0])


def _after(curve: Curve | None) -> float:
    return math.nan if curve is None or curve.adapted is None else float(curve.at(curve.adapted))


def _stages(scene: Scene, curves: Curves, ax: Axes) -> None:
    for place, (arm, own) in enumerate(curves.items()):
        style, steps = scene.styles[arm], _steps(own)
        shift = 0.5 * ((place + 0.5) / len(curves) - 0.5)
        at = [i for i, (_, middle, _) in enumerate(steps) if math.isfinite(middle)]
        x, y = [i + shift for i in at], [steps[i][1] for i in at]
        (line,) = ax.plot(x, y, **{**style.line, "linewidth": style.line["linewidth"] * 0.7}, alpha=0.8)
        mark(line, style.number)
        for i, middle in zip(at, y, strict=True):
            low, _, high = steps[i]
            if high > low:
                (whisker,) = ax.plot([i + shift] * 2, [low, min(high, 1e30)], color=style.colour, linewidth=1.0)
                mark(whisker, style.number)
            (dot,) = ax.plot([i + shift], [middle], **style.dot, zorder=6)
            mark(dot, style.number, f"{arm}, {STEPS[i]}: {percent(middle)} (median)")
    seen = positive(v for own in curves.values() for step in _steps(own) for v in step[:2])
    if len(seen):
        ax.set_ylim(seen.min() / 1.4, seen.max() * 1.6)
    logarithmic(ax.yaxis)
    ax.set_xlim(-0.45, 2.45)
    ax.set_xticks(range(3), STEPS)
    ax.grid(False, axis="x")
    ax.set_ylabel("parameter error (%)")
    arm_legend(ax, sorted((scene.styles[arm] for arm in curves), key=lambda s: s.number), kind="line")
