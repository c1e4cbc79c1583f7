"""Figures of ablations: a few arms that differ in one choice, each a bar of its mean with every run as a dot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tgsr.report._figures_axes import PAPER, PAPER_LABEL, SMALL, below, dot, listed, short
from tgsr.report._figures_errors import p_words
from tgsr.report._figures_rows import hover
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._study_variants import group, paper_method, paper_variant, variants
from tgsr.report._style import FAINT, INK, label
from tgsr.study._limits import common_range
from tgsr.study._statistics import Summary, summarise
from tgsr.study.paper import PaperTable, Quoted, paper_tables

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

SIZE = (4.3, 3.3)
CHOICES = {
    "mapping": ("Map from signal to decay factor", "The map from a neuron's protected signal to its decay factor."),
    "protection": ("Layer protection", "Shallow layers softened less (depth), all alike (none), and all by the mean of "
                   "depth (matched)."),
    "branch": ("Mixture and rank", "Signals from the mixture with rank as its fallback, from either alone."),
}  # fmt: skip
GROUPS = {
    "mechanism": (
        ("adapt-only", "random-reset", "tgsr"), "ablation_early", "Adaptation, reset, decay",
        "Adaptation alone, the softened neurons drawn anew, and softening.",
    ),
    "counterfactual": (
        ("tgsr", "random-decay", "score-shuffled"), "ablation_counterfactual", "Which neurons are softened",
        "The same decay with random scores, and with the right scores on the wrong neurons of a layer.",
    ),
}  # fmt: skip
HOW = (
    " Bars are means with one standard deviation over the runs that ended, dots the runs; below each arm p and wins of "
    "the reference in pairs."
)


@dataclass(frozen=True)
class Column:
    """A bar: its name, its arm, and what the paper has."""

    name: str
    arm: str
    paper: Quoted


def ablations(scene: Scene) -> list[StudyFigure]:
    """Every choice and every group of controls that the study has the arms for."""
    out = []
    for choice, (title, words) in CHOICES.items():
        found = variants(scene, choice)

        def chosen(kind: str, choice: str = choice, found: Mapping[Any, str] = found) -> list[Column]:
            return [Column(str(v), arm, paper_variant(scene, choice, v, kind)) for v, arm in found.items()]

        panels = [_panel(scene, chosen(kind), kind) for kind in _kinds(scene)] if found else []
        out += scene.ablation(choice, title, words + HOW, panels, columns=3)
    for key, (methods, name, title, words) in GROUPS.items():
        own, table = group(scene, methods), paper_tables()[name]

        def grouped(kind: str, own: Mapping[str, str] = own, table: PaperTable = table) -> list[Column]:
            return [Column(m, arm, paper_method(scene, table, m, kind)) for m, arm in own.items()]

        panels = [_panel(scene, grouped(kind), kind) for kind in _kinds(scene)] if own else []
        out += scene.ablation(key, title, words + HOW, panels, columns=3)
    return out


def _kinds(scene: Scene) -> tuple[str, ...]:
    """Which errors: the first of several unknowns is the hard one."""
    first = scene.view.unknowns[:1] if len(scene.view.unknowns) > 1 else ()
    return ("parameter", *first, "field")


def _panel(scene: Scene, columns: Sequence[Column], kind: str) -> Panel | None:
    samples = {column.arm: scene.view.errors(column.arm, kind) for column in columns}
    columns = [column for column in columns if samples[column.arm]]
    upper = common_range({arm: list(sample.values()) for arm, sample in samples.items()})
    if len(columns) < 2 or not math.isfinite(upper):
        return None
    stats = {column.name: summarise(samples[column.arm].values()) for column in columns}
    reference = next((c.arm for c in columns if c.arm == scene.leading), columns[0].arm)
    tests = {pair.other: pair for pair in scene.view.pairs(kind, reference)}
    below_it = {c.arm: f"{p_words(tests[c.arm].test.p)}, {tests[c.arm].tally.wins}/{tests[c.arm].n}"
                for c in columns if c.arm in tests}  # fmt: skip
    told = {name: f"{s.finite_mean:.3g} %" + (f" ({s.failed} of {s.n} failed)" if s.failed else "")
            for name, s in stats.items()}  # fmt: skip
    words = f"Means of the {kind} error: {listed(told)}."
    paired = {c.name: below_it[c.arm] for c in columns if c.arm in below_it}
    words += f" p and wins of {reference} against {listed(paired)}." if paired else ""
    title = {"parameter": "Parameter error", "field": "Field error"}.get(kind, f"Error of {short(kind)}")
    return Panel(title, words, partial(_draw, scene, columns, kind, stats, below_it, upper), SIZE)


def _draw(
    scene: Scene, columns: Sequence[Column], kind: str, stats: dict[str, Summary], tests: dict[str, str], upper: float,
    ax: Axes,
) -> None:  # fmt: skip
    from matplotlib.lines import Line2D

    top = 1.12 * max([upper, *(s.finite_mean for s in stats.values() if math.isfinite(s.finite_mean)),
                      *(float(c.paper.value) for c in columns if c.paper.known)])  # fmt: skip
    kinds: set[str] = set()
    for place, column in enumerate(columns):
        style, s = scene.styles[column.arm], stats[column.name]
        if math.isfinite(s.finite_mean):
            (bar,) = ax.bar([place - 0.08], [min(s.finite_mean, top)], width=0.55, color=style.colour, alpha=0.32)
            bar.set_edgecolor(style.colour)
            mark(bar, style.number, f"{column.name}: mean {s.finite_mean:.4g} %, sd {s.finite_sd:.3g}")
            if math.isfinite(s.finite_sd):
                ends = max(s.finite_mean - s.finite_sd, 0.0), min(s.finite_mean + s.finite_sd, top)
                ax.plot([place - 0.08] * 2, ends, color=INK, linewidth=1.4, zorder=5)
        for i, (seed, value) in enumerate(scene.view.errors(column.arm, kind).items()):
            which = "run" if value <= top else "outside" if math.isfinite(value) else "failed"
            look = {"run": ("o", 3.8, 0.0), "outside": ("^", 4.8, 0.0), "failed": ("x", 4.4, 1.3)}[which]
            x = place - 0.08 + 0.4 * ((i * 0.618034) % 1.0 - 0.5)
            dot(ax, x, min(value, top), style.number, hover(column.name, seed, value), marker=look[0],
                markersize=look[1], markeredgewidth=look[2], color=style.colour, zorder=4)  # fmt: skip
            kinds.add(which)
        if column.paper.known:
            if math.isfinite(column.paper.sd):
                ends = max(column.paper.value - column.paper.sd, 0.0), min(column.paper.value + column.paper.sd, top)
                ax.plot([place + 0.33] * 2, ends, color=FAINT, linewidth=0.9, linestyle=(0, (2, 1.5)))
            ax.plot([place + 0.33], [column.paper.value], **PAPER)
            kinds.add("paper")
    names = [f"{short(c.name, 16)}\n{_test_words(tests.get(c.arm, ''))}" for c in columns]
    ax.set_xticks(range(len(columns)), names, fontsize=SMALL)
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")
    ax.set_xlim(-0.55, len(columns) - 0.4)
    ax.set_ylim(0.0, top)
    ax.set_ylabel(f"{label(kind)} error (%)")
    bare: dict[str, Any] = {"linestyle": "none", "color": FAINT}
    entries: dict[str, Artist] = {
        "run": Line2D([], [], **bare, marker="o", markersize=3.8, label="one run"),
        "outside": Line2D([], [], **bare, marker="^", markersize=4.8, label="run above"),
        "failed": Line2D([], [], **bare, marker="x", markersize=4.4, label="failed run"),
        "paper": Line2D([], [], **PAPER, label=PAPER_LABEL),
    }
    below(ax, [entry for name, entry in entries.items() if name in kinds], columns=4, extra_lines=2.1)


def _test_words(told: str) -> str:
    """Two lines below an arm's name."""
    p, _, wins = told.partition(", ")
    return f"p = {p}\n{wins}" if wins else "reference\n"
