"""Figures that ask whether a result is what it seems: without readings, against a random start, without a truth."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from tgsr.report._arms import paper_number
from tgsr.report._figures_axes import PAPER, SMALL, below, listed, short
from tgsr.report._figures_rows import LEAST, PITCH, REST, Row, hover, log_scale, rows_panel
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._style import FAINT, GRID, INK, PALETTE, label
from tgsr.study._limits import common_range
from tgsr.study._negative_transfer import BASE, NegativeTransfer
from tgsr.study._statistics import summarise
from tgsr.study.paper import paper_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_UNKNOWNS = 6


def controls(scene: Scene) -> list[StudyFigure]:
    """The same methods with their readings and with none."""
    found = scene.view.controls
    upper = common_range({arm: list(scene.view.errors(arm).values())
                          for one in found for arm in (one.paired.arm, one.paired.other)})  # fmt: skip
    if not found or not math.isfinite(upper):
        return []
    rows, gains = [], {}
    for one in found:
        for arm in (one.paired.arm, one.paired.other):
            sample = scene.view.errors(arm)
            s = summarise(sample.values())
            gain = (
                f"\N{MULTIPLICATION SIGN} {one.gain:.2g}" if arm == one.paired.other and math.isfinite(one.gain) else ""
            )
            rows.append(
                Row(scene.styles[arm], tuple(sample.values()), tuple(hover(arm, k, v) for k, v in sample.items()), gain,
                    s.median, s.median_low, s.median_high)
            )  # fmt: skip
        gains[one.method] = f"{one.gain:.2g}"
    words = (
        "The same method with its readings and, below, with none: the conditions, the source term and the source "
        "network then have to do. Behind the row: how many times larger the median error is without readings. "
        "Near 1 the readings contributed nothing."
    )
    panel = rows_panel("With readings and without", f"Times larger without readings: {listed(gains)}.", rows,
                       log_scale("parameter error (%)", rows, upper, heading="without"))  # fmt: skip
    return scene.figure("control", "What the readings contribute", words, [panel])


def harm(scene: Scene) -> list[StudyFigure]:
    """Pairs against the random start: better, equal, worse, and worse behind a field that is not."""
    found = [one for one in scene.view.negative_transfer if one.arm in scene.arms]
    if not found:
        return []
    told = {one.arm: f"{one.events} of {one.n}" for one in found}
    masked = {one.arm: f"{one.masked}" for one in found if one.masked}
    words = f"Worse than from scratch: {listed(told)}."
    words += f" Behind a field that is no worse: {listed(masked)}." if masked else ""
    size = (4.3, max(LEAST, REST + PITCH * len(found)))
    panel = Panel("Negative transfer", words, partial(_harm, scene, found), size)
    about = (
        f"Every method against {BASE}, a random start, at the same seed: did starting from the source make the "
        "parameters worse? Hatched: the field is no worse and hides it. Failures count."
    )
    return scene.figure("harm", "Did transfer hurt?", about, [panel])


def _harm(scene: Scene, found: list[NegativeTransfer], ax: Axes) -> None:
    from matplotlib.lines import Line2D

    table, hollow = paper_tables()["negative_transfer_frequency"], False
    for place, one in enumerate(found):
        parts = {
            "worse, field no worse": ((one.masked or 0), PALETTE[1], "////"),
            "worse": (one.events - (one.masked or 0), PALETTE[1], ""),
            "equal": (one.ties, GRID, ""),
            "better": (one.wins, PALETTE[4], ""),
        }
        start = 0.0
        for name, (count, colour, hatch) in parts.items():
            share = 100.0 * count / one.n
            (bar,) = ax.barh([place], [share], left=start, height=0.6, color=colour, hatch=hatch, edgecolor="white",
                             linewidth=0.5, label=None if place else name)  # fmt: skip
            mark(bar, scene.styles[one.arm].number, f"{one.arm}: {name} in {count} of {one.n}")
            start += share
        quoted = table.quoted(scene.view.paper_arm(one.arm), "events", scene.task)
        if quoted.known and not math.isnan(paper_number(scene.results, scene.task, one.arm, "parameter").value):
            ax.plot([100.0 * quoted.value / table.n], [place], **PAPER, clip_on=False)
            hollow = True
        ax.text(1.02, place, f"{one.events}/{one.n}", transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL)
    ax.annotate("worse", (1.02, 1.0), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points",
                fontsize=SMALL, color=FAINT)  # fmt: skip
    ax.set_ylim(len(found) - 0.45, -0.55)
    ax.set_yticks(range(len(found)), [short(one.arm) for one in found])
    for one, text in zip(found, ax.get_yticklabels(), strict=True):
        mark(text, scene.styles[one.arm].number)
        text.set_fontweight("bold" if scene.styles[one.arm].stands_out else "normal")
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.set_xlim(0, 100)
    ax.set_xlabel(f"share of the pairs with {BASE} (%)")
    handles, _ = ax.get_legend_handles_labels()
    below(ax, handles + ([Line2D([], [], **PAPER, label="the paper: worse")] if hollow else []), columns=3)


def estimates(scene: Scene) -> list[StudyFigure]:
    """Where no truth is known: every run's estimate with its 95 % interval."""
    if scene.view.has_truth:
        return []
    panels = [_estimates(scene, unknown) for unknown in scene.view.unknowns[:MOST_UNKNOWNS]]
    words = (
        "Every run's estimate, with the 95 % interval that the run itself states. The truth is not known: runs that "
        "agree with each other and within their intervals are what there is to trust."
    )
    return scene.figure("estimates", "Estimates of every run", words, panels)


def _estimates(scene: Scene, unknown: str) -> Panel | None:
    runs = [(arm, seed, run.unknowns[unknown]) for arm in scene.arms for seed, run in scene.view.runs(arm).items()
            if run.ok and unknown in run.unknowns and math.isfinite(run.unknowns[unknown].value)]  # fmt: skip
    if not runs:
        return None
    medians = {arm: f"{summarise(f.value for a, _, f in runs if a == arm).median:.4g}" for arm, _, _ in runs}
    open_ones = sum(not found.identifiable for _, _, found in runs)
    words = f"Medians of {unknown}: {listed(medians)}."
    words += f" Not identifiable from the data in {open_ones} of {len(runs)} runs." if open_ones else ""

    def draw(ax: Axes) -> None:
        at, ticks = 0.0, []
        for arm in dict.fromkeys(arm for arm, _, _ in runs):
            own, style = [(seed, f) for a, seed, f in runs if a == arm], scene.styles[arm]
            ticks.append((at + (len(own) - 1) / 2, arm))
            for seed, f in own:
                whole = f.identifiable and math.isfinite(f.low) and math.isfinite(f.high)
                look: dict[str, Any] = {"color": style.colour, "markersize": 4.5, "marker": style.marker}
                if not f.identifiable:
                    look |= {"markerfacecolor": "none"}
                (shown,) = ax.plot([f.value], [at], linestyle="none", zorder=4, **look)
                mark(shown, style.number, f"{arm}, seed {seed}: {f.value:.5g} {f.unit}")
                if whole:
                    ax.plot([f.low, f.high], [at, at], color=style.colour, linewidth=1.2)
                at += 1.0
            at += 0.8
        ax.set_yticks([y for y, _ in ticks], [short(arm) for _, arm in ticks])
        ax.set_ylim(at - 1.2, -0.8)
        ax.tick_params(axis="y", length=0)
        ax.grid(False, axis="y")
        ax.set_xlabel(label(unknown, runs[0][2].unit))
        if open_ones:
            ax.set_title("hollow: not identifiable", fontsize=SMALL, loc="right", color=INK, fontweight="normal")

    height = max(LEAST, 0.9 + 0.13 * len(runs))
    return Panel(short(unknown), words, draw, (4.3, min(height, 6.0)))
