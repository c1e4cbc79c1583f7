"""Figures of sweeps: the error over a number that was varied, one at a time, and over the number of readings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._arms import ArmStyle
from tgsr.report._figures_axes import (
    DASHED,
    PAPER,
    PAPER_LABEL,
    below,
    dot,
    guide,
    listed,
    logarithmic,
    outside_words,
    positive,
    short,
)
from tgsr.report._figures_rows import hover
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._study_variants import DEFAULTS, NOWHERE, changed, full_arms, paper_variant, variants
from tgsr.report._style import FAINT, INK, label
from tgsr.study._limits import common_range
from tgsr.study._statistics import summarise
from tgsr.study.paper import Quoted, paper_tables

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

SIZE = (4.3, 3.3)
NAMES = {
    "alpha_s": r"fusion weight $\alpha_s$", "adapt_fraction": r"short adaptation $E_{ad}/E_{main}$",
    "batches": "scoring batches $K$", "gamma_m": r"$\gamma_m$", "gamma_min": r"$\gamma_{min}$", "kappa": r"$\kappa$",
}  # fmt: skip
TITLES = {"parameter": "Parameter error", "field": "Field error"}


@dataclass(frozen=True)
class Point:
    """One value of what was varied: its runs, and what the paper has."""

    x: float
    arm: str
    runs: Mapping[int, float]
    paper: tuple[Quoted, ...] = ()
    ends: tuple[float, float] = field(default=(math.nan, math.nan))  # the paper's best and worst


def sweeps(scene: Scene) -> list[StudyFigure]:
    """Everything that was varied one at a time."""
    first = scene.view.unknowns[0] if len(scene.view.unknowns) > 1 else "parameter"
    out = []
    about = "Every run a point; mean and standard deviation over the runs that ended. The dashed line is the default."
    for key, choice, title, kinds in (
        ("alpha-s", "alpha_s", "Sensitivity and variance in the score", (first, "parameter", "field")),
        ("adaptation-length", "adapt_fraction", "Length of the short adaptation", (first, "parameter", "field")),
        ("scoring-batches", "batches", "Number of scoring batches", ("parameter", "field")),
    ):
        panels = [_sweep(scene, choice, kind) for kind in dict.fromkeys(kinds)]
        out += scene.ablation(key, title, about, panels, columns=3)
    decay = [_sweep(scene, choice, kind) for kind in TITLES for choice in ("gamma_m", "gamma_min", "kappa")]
    out += scene.ablation("decay-parameters", "Constants of the decay map", about, decay, columns=3)
    return [*out, *sparsity(scene)]


def _sweep(scene: Scene, choice: str, kind: str) -> Panel | None:
    points = []
    for value, arm in variants(scene, choice).items():
        runs = scene.view.errors(arm, kind)
        columns = ("alpha.a", "alpha.b") if choice == "adapt_fraction" and kind == "alpha" else (kind,)
        quoted = tuple(paper_variant(scene, choice, value, column) for column in columns)
        best, worst = (float(paper_variant(scene, choice, value, f"{kind}.{end}").value) for end in ("best", "worst"))
        points.append(Point(float(value), arm, runs, tuple(q for q in quoted if q.known), (best, worst)))
    points = [point for point in points if point.runs]
    upper = common_range({point.arm: list(point.runs.values()) for point in points})
    if len(points) < 2 or not math.isfinite(upper):
        return None
    means = {f"{point.x:.3g}": f"{summarise(point.runs.values()).finite_mean:.3g} %" for point in points}
    words = f"Means of the {kind} error by {label_of(choice)}: {listed(means)}." + _outside(points, upper)
    title = f"{TITLES.get(kind, f'Error of {short(kind)}')} over {label_of(choice)}"
    style = scene.styles[variants(scene, choice).get(DEFAULTS[choice]) or points[0].arm]
    lines = {"": (style, points)}
    return Panel(
        title, words, partial(_draw, lines, upper, NAMES[choice], _axis_label(kind), DEFAULTS[choice], scene), SIZE
    )


def label_of(choice: str) -> str:
    """The choice in letters that any font has."""
    return {"alpha_s": "alpha_s", "adapt_fraction": "E_ad / E_main", "batches": "K"}.get(choice, choice)


def _axis_label(kind: str) -> str:
    return f"{label(kind)} error (%)"


def _outside(points: Sequence[Point], upper: float) -> str:
    out = {point.arm: outside_words([v for v in point.runs.values() if v > upper * 1.0001]) for point in points}
    out = {arm: words for arm, words in out.items() if words}
    return f" Outside the axis: {listed(out)}." if out else ""


def sparsity(scene: Scene) -> list[StudyFigure]:
    """Errors over the number of readings, for every method that has more than one."""
    lines: dict[str, dict[int, str]] = {}
    most = next(iter(full_arms(scene).values())).observations if full_arms(scene) else 0
    for arm in scene.view.compared:
        run = scene.view.first(arm)
        twin = next((a for a, r in full_arms(scene).items()
                     if r.method == run.method and changed(r) == changed(run)), "")  # fmt: skip
        if twin and run.observations > 0:
            lines.setdefault(twin, {})[run.observations] = arm
    lines = {arm: own for arm, own in lines.items() if len(own) > 1}
    first = scene.view.unknowns[0] if len(scene.view.unknowns) > 1 else "parameter"
    panels = [_sparsity(scene, lines, kind, most) for kind in dict.fromkeys((first, "field"))] if lines else []
    words = (
        "Errors with all readings and with fewer of the same: every run a point, and mean and standard deviation over "
        "the runs that ended. The paper's are single runs."
    )
    return scene.ablation("data-sparsity", "Fewer readings", words, panels)


def _sparsity(scene: Scene, lines: Mapping[str, Mapping[int, str]], kind: str, most: int) -> Panel | None:
    table, drawn = paper_tables()["sparsity"], {}
    for twin, own in lines.items():
        points = []
        for count, arm in sorted(own.items()):
            known = table.task == scene.task and most == 1000
            name = scene.view.first(arm).method + ("" if count == most else f", {count} readings")
            quoted = table.quoted(name, kind) if known else NOWHERE
            points.append(Point(float(count), arm, scene.view.errors(arm, kind), (quoted,) if quoted.known else ()))
        points = [point for point in points if point.runs]
        if points:
            drawn[twin] = (scene.styles[twin], points)
    every = [point for _, points in drawn.values() for point in points]
    upper = common_range({point.arm: list(point.runs.values()) for point in every})
    if not every or not math.isfinite(upper):
        return None
    means = {point.arm: f"{summarise(point.runs.values()).finite_mean:.3g} %" for point in every}
    words = f"Means of the {kind} error: {listed(means)}." + _outside(every, upper)
    title = TITLES.get(kind, f"Error of {short(kind)}")
    return Panel(title, words, partial(_draw, drawn, upper, "readings", _axis_label(kind), None, scene), (4.3, 3.5))


def _draw(
    lines: Mapping[str, tuple[ArmStyle, Sequence[Point]]], upper: float, across: str, up: str, default: float | None,
    scene: Scene, ax: Axes,
) -> None:  # fmt: skip
    every = [point for _, points in lines.values() for point in points]
    xs = np.array(sorted({point.x for point in every}))
    logarithmic_x = default is None
    box, wide = _box(every, upper)
    paper = False
    for place, (style, points) in enumerate(lines.values()):
        shift = (place - (len(lines) - 1) / 2) * 0.07
        means = [(_beside(p.x, shift, xs, logarithmic_x), mean_of(p)) for p in points if math.isfinite(mean_of(p))]
        if means:
            (line,) = ax.plot(*zip(*means, strict=True), **style.line)
            mark(line, style.number, style.arm)
        for p in points:
            own = replace(style, number=scene.styles[p.arm].number)
            at = [_beside(p.x, shift + more, xs, logarithmic_x) for more in (0.0, -0.025, 0.05)]
            _point(ax, own, p, (at[0], at[1]), box)
            paper |= _paper(ax, p, at[2], style.colour if len(lines) > 1 else INK)
    if default is not None:
        guide(ax, default)
    ax.set_ylim(*box)
    if wide:
        logarithmic(ax.yaxis)
    if logarithmic_x:
        ax.set_xscale("log")
        ax.minorticks_off()
    ticks = xs if len(xs) <= 6 else xs[:: 2 if len(xs) < 13 else 4]
    ax.set_xticks(ticks, [f"{x:g}" if x >= 1 else f"{x:.2g}" for x in ticks])
    ax.set_xlabel(across)
    ax.set_ylabel(up)
    _legend(ax, lines, default, paper)


def mean_of(p: Point) -> float:
    """Over the runs that ended."""
    return summarise(p.runs.values()).finite_mean


def _box(every: Sequence[Point], upper: float) -> tuple[tuple[float, float], bool]:
    """The ends of the axis, and whether it is logarithmic: where the means lie far apart."""
    means = positive(v for p in every for v in (mean_of(p), *(q.value for q in p.paper)))
    if len(means) and means.max() > 30 * means.min():
        shown = positive(v for p in every for v in (*p.runs.values(), *means) if v <= 2 * upper)
        return (float(shown.min()) / 1.3, float(shown.max()) * 1.3), True
    return (0.0, 1.08 * max(upper, float(means.max(initial=0.0)))), False


def _beside(x: float, shift: float, xs: np.ndarray, log: bool) -> float:
    if log:
        return float(x * (xs.max() / xs.min()) ** (0.5 * shift))
    return float(x + 0.5 * shift * (xs.max() - xs.min()))


def _point(ax: Axes, style: ArmStyle, p: Point, across: tuple[float, float], box: tuple[float, float]) -> None:
    x, before = across  # the runs stand beside their mean
    for seed, value in p.runs.items():
        marker = "o" if value <= box[1] else "^" if math.isfinite(value) else "x"
        dot(ax, before, min(value, box[1]), style.number, hover(p.arm, seed, value), marker=marker, markersize=3.2,
            color=style.colour, alpha=0.55, zorder=3, markeredgewidth=1.2 if marker == "x" else 0.0)  # fmt: skip
    s = summarise(p.runs.values())
    if s.finite_mean <= box[1]:
        sd = s.finite_sd if math.isfinite(s.finite_sd) else 0.0
        ends = [max(s.finite_mean - sd, box[0]), min(s.finite_mean + sd, box[1])]
        (bar,) = ax.plot([x, x], ends, color=style.colour, linewidth=1.6, zorder=4)
        mark(bar, style.number)
        words = f"{p.arm}: mean {s.finite_mean:.4g} %" + (f", sd {sd:.3g}" if sd else "")
        dot(ax, x, s.finite_mean, style.number, words, marker=style.marker, color=style.colour, zorder=5,
            markersize=9.5 if style.stands_out else 6, markeredgecolor="white", markeredgewidth=0.5)  # fmt: skip


def _paper(ax: Axes, p: Point, x: float, colour: str) -> bool:
    for quoted in p.paper:
        ends = (quoted.value - quoted.sd, quoted.value + quoted.sd) if math.isfinite(quoted.sd) else p.ends
        if all(math.isfinite(end) for end in ends):
            ax.plot([x, x], [max(ends[0], 0.0), ends[1]], color=FAINT, linewidth=0.9, linestyle=(0, (2, 1.5)), zorder=2)
        ax.plot([x], [quoted.value], **{**PAPER, "markeredgecolor": colour})
    return bool(p.paper)


def _legend(
    ax: Axes, lines: Mapping[str, tuple[ArmStyle, Sequence[Point]]], default: float | None, paper: bool
) -> None:
    from matplotlib.lines import Line2D

    handles: list[Artist] = []
    for name, (style, _) in lines.items():
        shown = short(style.arm) if name else "mean ± sd"
        handles.append(Line2D([], [], **{**style.line, "marker": style.marker, "markersize": 5}, label=shown))
    if default is not None:
        handles.append(Line2D([], [], **DASHED, label="default"))
    if paper:
        ends = any(math.isfinite(p.ends[0]) for _, points in lines.values() for p in points)
        single = default is None or any(len(p.paper) > 1 for _, points in lines.values() for p in points)
        name = "the paper's runs" if single else PAPER_LABEL
        handles.append(Line2D([], [], **PAPER, label=f"{name}{', best to worst' if ends else ''}"))
    below(ax, handles, columns=3)
