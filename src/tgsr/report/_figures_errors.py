"""Figures of the errors of a task: their distributions, field against parameter, pairs, limits and controls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._arms import ArmStyle
from tgsr.report._figures_axes import (
    MINUS,
    PAPER_LABEL,
    arm_legend,
    dot,
    listed,
    logarithmic,
    outside_words,
    positive,
    short,
)
from tgsr.report._figures_rows import Row, Scale, hover, log_scale, rows_panel
from tgsr.report._panel import Panel
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._style import FAINT
from tgsr.report._words import percent
from tgsr.study._limits import EFFICIENT, FAR, LEAK, common_range, exclusions
from tgsr.study._pairs import Paired
from tgsr.study._signed_rank import SIGNIFICANT
from tgsr.study._statistics import median, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Styles = Mapping[str, ArmStyle]
KINDS = {"parameter": "Parameter error", "field": "Field error"}
LOCAL = {"layer": "Error in the layer, x ≥ 0.95", "gradient": "Error of the gradient"}


def distributions(scene: Scene) -> list[StudyFigure]:
    """Every run's errors, arm by arm."""
    panels = [_distribution(scene, kind, title) for kind, title in {**KINDS, **LOCAL}.items()]
    words = (
        "Every run a point, on a logarithmic axis; behind each row, how many of its runs the axis shows. Runs beyond "
        "its end are arrows, failed ones crosses; medians and tests count them all. Means are over runs that ended."
    )
    return scene.figure("errors", "Errors of every run", words, panels)


def _distribution(scene: Scene, kind: str, title: str) -> Panel | None:
    samples = {arm: scene.view.errors(arm, kind) for arm in scene.arms}
    samples = {arm: sample for arm, sample in samples.items() if sample}
    upper = common_range({arm: list(sample.values()) for arm, sample in samples.items()})
    if not math.isfinite(upper):
        return None
    unit = "" if kind == "gradient" else " %"
    rows, left_out = [], {}
    for out in exclusions({arm: list(sample.values()) for arm, sample in samples.items()}, upper):
        sample = samples[out.arm]
        s = summarise(sample.values())
        said = tuple(hover(out.arm, seed, value, unit) for seed, value in sample.items())
        rows.append(
            Row(scene.styles[out.arm], tuple(sample.values()), said, f"{out.retained}/{out.n}", s.median, s.median_low,
                s.median_high, s.finite_mean, scene.paper(out.arm, kind))
        )  # fmt: skip
        if out.outside:
            left_out[out.arm] = f"{len(out.outside)} of {out.n} ({outside_words(out.outside, unit)})"
    medians = {row.style.arm: f"{row.median:.3g}{unit}" for row in rows if math.isfinite(row.median)}
    words = f"Medians: {listed(medians)}."
    if left_out:
        words += f" Outside the axis: {listed(left_out)}."
    label = f"{title[0].lower()}{title[1:]} ({'a fraction' if kind == 'gradient' else '%'})"
    scale = log_scale(label, rows, upper, heading="shown")
    return rows_panel(title, words, rows, scale)


def joint(scene: Scene) -> list[StudyFigure]:
    """Field against parameter error: the full range, and the range of most runs."""
    runs = {}
    for arm in scene.arms:
        field, parameter = scene.view.errors(arm, "field"), scene.view.errors(arm)
        runs[arm] = [(seed, field[seed], parameter[seed]) for seed in parameter if seed in field]
    both = [(f, p) for pairs in runs.values() for _, f, p in pairs if math.isfinite(f) and math.isfinite(p)]
    if len(both) < 2 or not all(f > 0 and p > 0 for f, p in both):
        return []
    failed = sum(len(pairs) for pairs in runs.values()) - len(both)
    paper = {arm: (scene.paper(arm, "field"), scene.paper(arm, "parameter")) for arm in runs}
    edges = [common_range({arm: [pair[i] for pair in pairs] for arm, pairs in runs.items()}) for i in (1, 2)]
    inside = [pair for pair in both if pair[0] <= edges[0] * 1.0001 and pair[1] <= edges[1] * 1.0001]
    limits_of = [_around(both)]
    if len(inside) < len(both) and len(inside) > 1:
        limits_of.append(_around(inside))
    lower = [pair for pair in both if all(pair[i] <= median([b[i] for b in both]) for i in (0, 1))]
    if len(lower) > 3:
        limits_of.append(_around(lower))
    panels = []
    for place, box in enumerate(limits_of):
        held = sum(box[0][0] <= f <= box[0][1] and box[1][0] <= p <= box[1][1] for f, p in both)
        title = "Field and parameter error" + (": full range" if place == 0 else f": detail {place}")
        words = (
            f"Parameter error against field error, both logarithmic: {held} of {len(both)} runs"
            f"{f'; {failed} failed and have no place' if failed and place == 0 else ''}."
        )
        panels.append(Panel(title, words, partial(_scatter, runs, paper, scene.styles, box), (4.3, 3.9)))
    told = "Every run a point. A method may fit the field well and still miss the parameters: points high on the left."
    return scene.figure("joint", "Field and parameter error together", told, panels, columns=3)


Box = tuple[tuple[float, float], tuple[float, float]]


def _around(pairs: Sequence[tuple[float, float]]) -> Box:
    ends = []
    for column in zip(*pairs, strict=True):
        low, high = min(column), max(column)
        margin = max((high / low) ** 0.06, 1.1)
        ends.append((low / margin, high * margin))
    return ends[0], ends[1]


def _scatter(
    runs: Mapping[str, list[tuple[int, float, float]]], paper: Mapping[str, tuple[float, float]], styles: Styles,
    box: Box, ax: Axes,
) -> None:  # fmt: skip
    from matplotlib.lines import Line2D

    used, quoted = [], False
    for arm, pairs in sorted(runs.items(), key=lambda item: styles[item[0]].stands_out):
        style, size = styles[arm], 8.5 if styles[arm].stands_out else 4.6
        used.append(style)
        for seed, f, p in pairs:
            if _within((f, p), box):
                look = {**style.dot, "markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.4}
                words = f"{arm}, seed {seed}: field {percent(f)}, parameter {percent(p)}"
                dot(ax, f, p, style.number, words, **look, zorder=6 if style.stands_out else 4)
        if _within(paper[arm], box):
            words = f"{arm}, the paper: field {paper[arm][0]:.4g} %, parameter {paper[arm][1]:.4g} %"
            dot(ax, *paper[arm], style.number, words, marker=style.marker, markersize=size + 1.5, zorder=7,
                markerfacecolor="none", markeredgecolor=style.colour, markeredgewidth=1.3)  # fmt: skip
            quoted = True
    ax.set_xlim(*box[0])
    ax.set_ylim(*box[1])
    logarithmic(ax.xaxis)
    logarithmic(ax.yaxis)
    ax.set_xlabel("field error (%)")
    ax.set_ylabel("parameter error (%)")
    hollow_entry = Line2D([], [], marker="o", linestyle="none", markerfacecolor="none", color=FAINT,
                          label=f"hollow: {PAPER_LABEL}")  # fmt: skip
    order = sorted(used, key=lambda style: style.number)
    arm_legend(ax, order, extra=[hollow_entry] if quoted else [])


def _within(pair: Sequence[float], box: Box) -> bool:
    return all(low <= value <= high for value, (low, high) in zip(pair, box, strict=True))


def pairs(scene: Scene) -> list[StudyFigure]:
    """The reference arm against every other, seed by seed."""
    shown = {kind: [pair for pair in scene.view.pairs(kind) if pair.other in scene.arms] for kind in KINDS}
    panels = [_pairs_panel(found, scene.leading, KINDS[kind], scene.styles) for kind, found in shown.items()]
    words = (
        f"The error of {scene.leading} minus that of another arm at the same seed, every pair a point: left of zero "
        f"{scene.leading} is better. Behind each row the pairs it wins and p of the exact signed-rank test, unadjusted."
    )
    return scene.figure("pairs", f"Pairs: {scene.leading} against the others", words, panels)


def _pairs_panel(found: Sequence[Paired], leading: str, title: str, styles: Styles) -> Panel | None:
    d = {pair.other: _differences(pair) for pair in found}
    sizes = positive(abs(v) for values in d.values() for v in values)
    if not found or not len(sizes):
        return None
    upper = min(common_range({"": list(sizes)}), float(sizes.max()))
    rows = [
        Row(styles[pair.other], tuple(d[pair.other]),
            tuple(f"{pair.other}, seed {s}: {a:.4g} % against {b:.4g} %" if math.isfinite(a + b)
                  else f"{pair.other}, seed {s}: failed" for s, a, b in zip(pair.seeds, pair.theirs, pair.ours,
                                                                            strict=True)),
            f"{pair.tally.wins}/{pair.n}  {p_words(pair.test.p)}", pair.difference, pair.low, pair.high)
        for pair in found
    ]  # fmt: skip
    linear = 10.0 ** math.floor(math.log10(float(np.percentile(sizes, 20))))
    kind = "signed" if upper > 30 * linear else "linear"
    name = short(leading, 16)
    axis = f"{name} {MINUS} other, percentage points\n← {name} better   |   {name} worse →"
    scale = Scale(axis, kind, -1.25 * upper, 1.25 * upper, linear, "wins   p", (0.0, ""),
                  summary="median difference")  # fmt: skip
    told = {pair.other: f"{pair.tally.wins} of {pair.n} (p = {p_words(pair.test.p)})" for pair in found}
    clear = sum(pair.test.p < SIGNIFICANT for pair in found)
    words = f"Wins of {leading} against {listed(told)}. p < {SIGNIFICANT:g} in {clear} of {len(found)}."
    return rows_panel(title, words, rows, scale)


def _differences(pair: Paired) -> list[float]:
    out = []
    for ours, theirs in zip(pair.ours, pair.theirs, strict=True):
        out.append(0.0 if ours == theirs else ours - theirs)
    return out


def p_words(p: float) -> str:
    """A p-value to three decimals, or its power of ten."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}".replace("e-0", "e-")


def bounds(scene: Scene) -> list[StudyFigure]:
    """Error over the Cramér-Rao bound of the readings, unknown by unknown."""
    names = dict.fromkeys(one.unknown for one in scene.view.limits if one.arm in scene.arms)
    words = (
        f"Errors over the Cramér-Rao bound of the run's own readings. The median of an efficient estimator is "
        f"{EFFICIENT:.2f} (dashed). Right of the grey band, above {FAR:g}, the optimiser limits the answer and not the "
        f"readings; left of it, below {LEAK:g}, the knowledge came from elsewhere than the readings."
    )
    panels = [_bound(scene, name, len(names)) for name in names]
    return scene.figure("bound", "Error over the statistical limit", words, panels, columns=3)


def _bound(scene: Scene, unknown: str, count: int) -> Panel | None:
    ratios: dict[str, dict[int, float]] = {}
    limit: list[float] = []
    for arm in scene.arms:
        own, errors = {}, scene.view.errors(arm, unknown)
        for seed, run in scene.view.runs(arm).items():
            bound = run.bounds.get(unknown, math.inf)
            if 0 < bound < math.inf and seed in errors:
                own[seed] = errors[seed] / bound
                limit.append(bound)
        if own:
            ratios[arm] = own
    upper = common_range({arm: list(own.values()) for arm, own in ratios.items()})
    if not math.isfinite(upper):
        return None
    rows = []
    for out in exclusions({arm: list(own.values()) for arm, own in ratios.items()}, upper):
        s = summarise(ratios[out.arm].values())
        said = tuple(hover(out.arm, seed, ratio, " times the limit") for seed, ratio in ratios[out.arm].items())
        values = tuple(ratios[out.arm].values())
        rows.append(Row(scene.styles[out.arm], values, said, f"{out.retained}/{out.n}", s.median, s.median_low,
                        s.median_high))  # fmt: skip
    scale = log_scale("error / Cramér-Rao bound", rows, upper, (LEAK / 1.2, 1.2 * FAR), heading="shown",
                      guide=(EFFICIENT, f"{EFFICIENT:.2f}: efficient"),
                      shaded=(LEAK, FAR, f"{LEAK:g} to {FAR:g}"))  # fmt: skip
    title = f"Limit of {short(unknown)}" if count > 1 else "Error over the limit"
    medians = {row.style.arm: f"{row.median:.3g}" for row in rows if math.isfinite(row.median)}
    words = (
        f"Bound of {unknown}: {percent(median(limit))} in the median. Medians of error over bound: {listed(medians)}."
    )
    return rows_panel(title, words, rows, scale)
