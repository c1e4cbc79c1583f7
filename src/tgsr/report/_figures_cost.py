"""Figures of what a method costs: error against closures and seconds, and the stages before main training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr.report._arms import ArmStyle
from tgsr.report._figures_axes import PAPER_LABEL, SMALL, arm_legend, below, dot, listed, logarithmic, positive, short
from tgsr.report._figures_rows import Row, Scale, rows_panel
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._style import FAINT, GRID, PALETTE
from tgsr.report._table import COST
from tgsr.report._words import duration, percent
from tgsr.study._limits import common_range
from tgsr.study._statistics import median, summarise
from tgsr.study.paper import facts, paper_tables, results_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPENT = {"closures": "closures (loss and gradient)", "seconds": "seconds"}
STAGES = {"adaptation": (PALETTE[0], ""), "scoring": (PALETTE[5], "////"), "correction": (PALETTE[2], "xxxx"),
          "main": (GRID, "")}  # fmt: skip
MAIN = "main"
ALIKE = 0.03  # closures that differ by less are the same to a reader
PAPER_TASK = "smooth-advection-diffusion"

Spent = Mapping[str, list[tuple[int, float, float]]]  # by arm: seed, cost, error


def cost(scene: Scene) -> list[StudyFigure]:
    """Parameter error against what the run spent."""
    if not scene.view.has_truth:
        return []
    words = (
        "Small: every run that ended. Large: medians over all runs of an arm, failed ones counting as infinite. Below "
        "and left is better. Seconds depend on the machine and on what else ran there; closures do not."
    )
    spent = _same_closures(scene)
    kinds = [kind for kind in SPENT if kind != "closures" or not spent]
    words += f" All runs spent about as many closures, {spent}, so these are not drawn." if spent else ""
    return scene.figure("cost", "Error against cost", words, [_cost(scene, kind) for kind in kinds])


def _same_closures(scene: Scene) -> str:
    """The range of closures where all runs lie within a few percent: a matched budget, used up. Empty otherwise."""
    spent = [run.closures for arm in scene.arms for run in scene.view.runs(arm).values() if run.ok]
    if not spent or max(spent) > (1.0 + ALIKE) * min(spent):
        return ""
    return f"{min(spent)}" if min(spent) == max(spent) else f"{min(spent)} to {max(spent)}"


def _cost(scene: Scene, kind: str) -> Panel | None:
    spent: dict[str, list[tuple[int, float, float]]] = {}
    for arm in scene.arms:
        errors = scene.view.errors(arm)
        spent[arm] = [(seed, float(getattr(run, kind)), errors[seed]) for seed, run in scene.view.runs(arm).items()
                      if seed in errors]  # fmt: skip
    finite = [(c, e) for pairs in spent.values() for _, c, e in pairs if math.isfinite(c + e) and c > 0 and e > 0]
    if len(finite) < 2:
        return None
    upper = common_range({arm: [error for _, _, error in pairs] for arm, pairs in spent.items()})
    shown = [error for _, error in finite if error <= upper * 1.001]
    box = min(shown) / 1.25, max(shown) * 1.25
    medians = {arm: median(c for _, c, _ in pairs if math.isfinite(c)) for arm, pairs in spent.items() if pairs}
    unit = duration if kind == "seconds" else lambda c: f"{c:.0f}"
    outside = sum(len(pairs) for pairs in spent.values()) - len(shown)
    words = f"Median {kind}: {listed({arm: unit(c) for arm, c in medians.items() if math.isfinite(c)})}."
    words += f" {outside} runs failed or lie above the axis." if outside else ""
    title = f"Error against {kind}"
    return Panel(title, words, partial(_cost_scatter, scene, spent, kind, box), (4.3, 3.9))


def _cost_scatter(scene: Scene, spent: Spent, kind: str, box: tuple[float, float], ax: Axes) -> None:
    from matplotlib.lines import Line2D

    quoted = False
    for arm, pairs in sorted(spent.items(), key=lambda item: scene.styles[item[0]].stands_out):
        style = scene.styles[arm]
        for seed, c, e in pairs:
            if math.isfinite(c) and box[0] <= e <= box[1]:
                words = f"{arm}, seed {seed}: {percent(e)}, {c:.4g} {kind}"
                dot(ax, c, e, style.number, words, **{**style.dot, "markersize": 3.0}, alpha=0.55, markeredgewidth=0.0)
        middle = median(c for _, c, _ in pairs if math.isfinite(c)), median(e for _, _, e in pairs)
        if math.isfinite(middle[0]) and box[0] <= middle[1] <= box[1]:
            big = {**style.dot, "markersize": 11.0 if style.stands_out else 7.5, "markeredgecolor": "white"}
            words = f"{arm}, median: {percent(middle[1])}, {middle[0]:.4g} {kind}"
            dot(ax, *middle, style.number, words, **big, markeredgewidth=0.8, zorder=6)
        theirs = _paper_seconds(scene, arm) if kind == "seconds" else math.nan
        if math.isfinite(theirs) and box[0] <= scene.paper(arm, "parameter") <= box[1]:
            at = scene.paper(arm, "parameter")
            dot(
                ax,
                theirs,
                at,
                style.number,
                f"{arm}, the paper: {at:.4g} %, {theirs:.4g} s",
                marker=style.marker,
                markersize=7.5,
                markerfacecolor="none",
                markeredgecolor=style.colour,
                markeredgewidth=1.2,
                zorder=5,
            )
            quoted = True
    ax.set_ylim(*box)
    logarithmic(ax.yaxis)
    across = positive(float(x) for line in ax.lines for x in np.asarray(line.get_xdata()))
    if across.max() > 6 * across.min():
        ax.set_xlim(across.min() / 1.2, across.max() * 1.2)
        logarithmic(ax.xaxis)
    else:
        margin = max(0.06 * float(np.ptp(across)), 0.04 * float(across.max()))
        ax.set_xlim(across.min() - margin, across.max() + margin)
    ax.set_xlabel(SPENT[kind])
    ax.set_ylabel("parameter error (%)")
    hollow_entry = Line2D([], [], marker="o", linestyle="none", markerfacecolor="none", color=FAINT,
                          label=f"hollow: {PAPER_LABEL}")  # fmt: skip
    listed_styles = sorted((scene.styles[arm] for arm in spent), key=lambda style: style.number)
    arm_legend(ax, listed_styles, extra=[hollow_entry] if quoted else [])


def _paper_seconds(scene: Scene, arm: str) -> float:
    table = results_table(scene.task)
    known = table is not None and not math.isnan(scene.paper(arm, "parameter"))
    return float(table.quoted(scene.view.paper_arm(arm), "seconds").value) if table and known else math.nan


def overhead(scenes: Sequence[Scene]) -> list[StudyFigure]:
    """What comes before main training, over all tasks: time, closures and memory of every stage."""
    several = len(scenes) > 1
    rows = [(scene, arm) for scene in scenes for arm in scene.arms
            if _staged(scene, arm) and (arm == scene.leading or not several)]  # fmt: skip
    if not rows:
        return []
    panels = [_stacked(rows, "seconds"), _stacked(rows, "closures"), _memory(rows), _extra_time(scenes)]
    made = tuple(panel for panel in panels if panel is not None)
    words = (
        "Stages of the method before main training: means over the runs that ended, and behind the row what a whole "
        "run takes. Memory is the peak of the whole process when a stage ends, so a later stage can only seem larger."
    )
    section = "overhead" if scenes[0].results.name == "overhead" else COST
    return [StudyFigure("overhead", section, "What the stages cost", words, made, 2)]


def _staged(scene: Scene, arm: str) -> bool:
    return any(run.ok and set(run.stages) - {MAIN} for run in scene.view.runs(arm).values())


def _stage_mean(scene: Scene, arm: str, stage: str, what: str) -> float:
    values = [run.stages[stage].get(what, math.nan) for run in scene.view.runs(arm).values()
              if run.ok and stage in run.stages]  # fmt: skip
    return float(np.nanmean(values)) if values and np.isfinite(values).any() else 0.0


def _stacked(rows: Sequence[tuple[Scene, str]], what: str) -> Panel | None:
    """Every stage as a share of the run."""
    several, bars = len({scene.task for scene, _ in rows}) > 1, []
    for scene, arm in rows:
        means = {stage: _stage_mean(scene, arm, stage, what) for stage in STAGES}
        whole = sum(means.values())
        if whole > 0:
            name = short(scene.task if several else arm, 28)
            shares = {stage: 100.0 * mean / whole for stage, mean in means.items()}
            bars.append(
                Bar(name, scene.styles[arm].number, shares, duration(whole) if what == "seconds" else f"{whole:.0f}")
            )
    if not bars:
        return None
    table, total = paper_tables()["cost"], results_table(PAPER_TASK)
    if what == "seconds" and total and any(s.task == PAPER_TASK and s.view.paper_arm(a) == "tgsr" for s, a in rows):
        whole = float(total.quoted("tgsr", "seconds").value)
        shares = {stage: 100.0 * float(table.row(stage)["seconds"]) / whole for stage in STAGES if stage != MAIN}
        bars.append(
            Bar("the paper, smooth task", None, {**shares, MAIN: 100.0 - sum(shares.values())}, f"{whole:.0f} s")
        )
    told = {bar.name: f"{100.0 - bar.shares[MAIN]:.3g} % of {bar.whole}" for bar in bars}
    title = f"{what.capitalize()} by stage"
    return Panel(title, f"Before main training: {listed(told)}.", partial(_bars, bars, what),
                 (4.3, max(2.2, 1.2 + 0.25 * len(bars))))  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """A run's stages in percent of the whole."""

    name: str
    number: int | None  # of the arm; None is the paper
    shares: Mapping[str, float]
    whole: str


def _bars(bars: Sequence[Bar], what: str, ax: Axes) -> None:
    for place, bar in enumerate(bars):
        start = 0.0
        for stage, share in bar.shares.items():
            colour, hatch = STAGES[stage]
            look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.4}
            if bar.number is None:
                look = {"color": "none", "hatch": hatch, "edgecolor": FAINT, "linewidth": 1.0}
            (drawn,) = ax.barh([place], [share], left=start, height=0.62, label=None if place else stage, **look)
            if bar.number is not None:
                mark(drawn, bar.number, f"{bar.name}, {stage}: {share:.3g} % of {bar.whole}")
            start += share
        ax.text(1.02, place, bar.whole, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL)
    ax.set_yticks(range(len(bars)), [bar.name for bar in bars], fontsize=SMALL)
    ax.set_ylim(len(bars) - 0.45, -0.55)
    ax.set_xlim(0, 100)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.set_xlabel(f"share of the {what} of a run (%)")
    below(ax, columns=4)


def _memory(rows: Sequence[tuple[Scene, str]]) -> Panel | None:
    """The peak at the end of every stage of the method itself, all tasks together."""
    table, out = paper_tables()["cost"], []
    scene, arm = next(((s, a) for s, a in rows if a == s.leading), rows[0])
    for number, stage in enumerate((*STAGES,)):
        peaks = [(s, a, seed, run.stages[stage]["memory"] / 1e6) for s, a in rows if a == arm
                 for seed, run in s.view.runs(a).items()
                 if run.ok and run.stages.get(stage, {}).get("memory", 0.0) > 0]  # fmt: skip
        if peaks:
            colour = STAGES[stage][0] if stage != MAIN else FAINT
            style = ArmStyle(stage, scene.styles[arm].number, colour, "-", "o")
            words = tuple(f"{s.task}, seed {seed}: {peak:.0f} MB" for s, _, seed, peak in peaks)
            theirs = table.row(stage).get("memory", math.nan) if scene.view.paper_arm(arm) == "tgsr" else math.nan
            own = summarise(peak for *_, peak in peaks)
            values, paper = tuple(peak for *_, peak in peaks), float(theirs) if number < 2 else math.nan
            out.append(Row(style, values, words, f"{own.median:.0f}", own.median, own.median_low, own.median_high,
                           math.nan, paper))  # fmt: skip
    if not out:
        return None
    top = 1.08 * max(max(row.values) for row in out)
    top = max([top, *(1.05 * row.paper for row in out if math.isfinite(row.paper))])
    told = {row.style.arm: row.behind for row in out}
    scale = Scale("peak of the process (MB)", "linear", 0.0, top, heading="MB", paper="the paper")
    return rows_panel(f"Memory of {short(arm)}", f"Median peak in MB: {listed(told)}.", out, scale)


def _extra_time(scenes: Sequence[Scene]) -> Panel | None:
    """Seconds of the method over those of full fine-tuning at the same seed; where the stages come on top."""
    rows, extra = [], facts()["overhead"].values
    for scene in scenes:
        if scene.results.budget != "paper" or "full" not in scene.arms or scene.leading == "full":
            continue
        ours, theirs = scene.view.runs(scene.leading), scene.view.runs("full")
        both = [s for s in ours if s in theirs and ours[s].ok and theirs[s].ok and theirs[s].seconds > 0]
        values = {s: 100.0 * (ours[s].seconds / theirs[s].seconds - 1.0) for s in both}
        values = {s: v for s, v in values.items() if math.isfinite(v)}
        if values:
            own, lead = summarise(values.values()), scene.styles[scene.leading]
            style = ArmStyle(scene.task, lead.number, lead.colour, "-", "o")
            words = tuple(f"{scene.task}, seed {s}: {v:+.1f} %" for s, v in values.items())
            rows.append(Row(style, tuple(values.values()), words, f"{own.median:+.0f} %", own.median, own.median_low,
                            own.median_high, own.mean, float(extra.get(scene.task, math.nan))))  # fmt: skip
    if not rows:
        return None
    shown = [v for row in rows for v in (*row.values, row.paper, 0.0) if math.isfinite(v)]
    margin = 0.08 * (max(shown) - min(shown) or 1.0)
    told = {row.style.arm: row.behind for row in rows}
    scale = Scale("seconds more than full fine-tuning (%)", "linear", min(shown) - margin, max(shown) + margin,
                  guide=(0.0, ""), paper="the paper")  # fmt: skip
    return rows_panel("Extra time over full", f"Medians: {listed(told)}.", rows, scale)
