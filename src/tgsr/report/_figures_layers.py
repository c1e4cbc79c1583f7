"""Figures of what runs recorded about their layers: decay and protection, when the mixture opens, the gate check."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr.report._audits import audits_of, probes_of
from tgsr.report._figures_axes import MINUS, PAPER, SMALL, arm_legend, below, dot, listed, logarithmic
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._study_variants import changed, full_arms, variants
from tgsr.report._style import FAINT, PALETTE
from tgsr.study._layers import LayerAudit, Switching, mean_decay, switching_audit
from tgsr.study._probes import Probes
from tgsr.study._statistics import summarise
from tgsr.study.paper import fact, paper_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (4.3, 3.2)
BARE_LAYERS = 12  # from which counting open gates says anything
FACTORS = {"depth": "{:g} layers", "bic_threshold": "BIC above {:g}", "low_weight_cap": "cap {:.2f}"}


def layers(scene: Scene) -> list[StudyFigure]:
    """Mean decay and protection of every layer; for the kinds of protection where the study has them."""
    arms = list(variants(scene, "protection").values()) or [a for a in scene.arms if not changed(scene.view.first(a))]
    known = {
        arm: [one for one in audits_of(scene.results) if one.task == scene.task and one.arm == arm] for arm in arms
    }
    known = {arm: own for arm, own in known.items() if own}
    if not known:
        return []
    told = {arm: f"{summarise(mean_decay(own).values()).mean:.3g}" for arm, own in known.items()}
    paper = {arm: float(q.value) for arm in known if (q := paper_tables()["layer_ablation"].quoted(arm, "decay")).known
             and paper_tables()["layer_ablation"].task == scene.task}  # fmt: skip
    words = f"Mean of 1 {MINUS} gamma over all neurons: {listed(told)}."
    words += f" The paper: {listed({arm: f'{value:g}' for arm, value in paper.items()})} (hollow)." if paper else ""
    shown = {arm: f"{own[0].eta:.2g} to {own[-1].eta:.2g}" for arm, own in known.items()}
    panels = [
        Panel("Decay by layer", words, partial(_by_layer, scene, known, "decay", paper), SIZE),
        Panel("Protection by layer", f"Eta from the first hidden layer to the last: {listed(shown)}.",
              partial(_by_layer, scene, known, "eta", {}), SIZE),
    ]  # fmt: skip
    about = (
        "How strongly each hidden layer was softened (the mean of 1 minus the decay factor; mean and standard "
        "deviation over the runs), and the share eta of its signal that protection lets through."
    )
    return scene.ablation("layers", "Layer diagnosis", about, panels)


def _by_layer(
    scene: Scene, known: Mapping[str, Sequence[LayerAudit]], what: str, paper: Mapping[str, float], ax: Axes
) -> None:
    from matplotlib.lines import Line2D

    deepest = max(one.layers for own in known.values() for one in own)
    for place, (arm, own) in enumerate(known.items()):
        style, shift = scene.styles[arm], 0.08 * (place - (len(known) - 1) / 2)
        by_layer: dict[int, list[float]] = {}
        for one in own:
            by_layer.setdefault(one.layer, []).append(float(getattr(one, what)))
        x = [number + shift for number in sorted(by_layer)]
        stats = [summarise(by_layer[number]) for number in sorted(by_layer)]
        (line,) = ax.plot(x, [s.mean for s in stats], **style.line, marker=style.marker,
                          markersize=8 if style.stands_out else 5)  # fmt: skip
        mark(line, style.number, arm)
        for at, s in zip(x, stats, strict=True):
            if s.sd > 0:
                (bar,) = ax.plot([at, at], [max(s.mean - s.sd, 0.0), s.mean + s.sd], color=style.colour, linewidth=1.0)
                mark(bar, style.number)
        if arm in paper:
            ax.plot([deepest + 0.75], [paper[arm]], **{**PAPER, "markeredgecolor": style.colour})
    ticks = list(range(1, deepest + 1))
    ax.set_xticks([*ticks, *([deepest + 0.75] if paper else [])], [*map(str, ticks), *(["mean"] if paper else [])])
    ax.set_xlim(0.6, deepest + (1.1 if paper else 0.4))
    ax.set_ylim(0.0, None if what == "decay" else 1.08)
    ax.set_xlabel("hidden layer")
    ax.set_ylabel(f"mean of 1 {MINUS} gamma" if what == "decay" else "protection eta")
    hollow = [Line2D([], [], **PAPER, label="the paper, all layers")] if paper else []
    arm_legend(ax, (scene.styles[arm] for arm in known), kind="line", extra=hollow)


def switching(scenes: Sequence[Scene]) -> list[StudyFigure]:
    """In how many of the recorded layers the mixture branch opens, by depth, threshold and cap."""
    if not scenes:
        return []
    own = {
        (s.task, arm) for s in scenes for arm, run in full_arms(s).items() if run.method == "tgsr" and not changed(run)
    }
    audits = [one for one in audits_of(scenes[0].results) if (one.task, one.arm) in own and one.fitted]
    every = [one for one in audits_of(scenes[0].results) if (one.task, one.arm) in own]
    if len(audits) < BARE_LAYERS or len({one.layers for one in every}) < 2:
        return []
    counted = switching_audit(every)
    table = paper_tables()["gmm_switch_sensitivity"]
    theirs = {(row[0], float(row[1])): 100.0 * row[2] / row[3] for row in table.rows}
    told = {_setting(one): f"{one.open} of {one.layers}" for one in counted}
    size = (4.3, 1.1 + 0.25 * (len(counted) + 1))
    panel = Panel("Open mixture gates", f"Open: {listed(told)}.", partial(_switching, counted, theirs), size)
    words = (
        "An audit of recorded layers: the share in which the mixture branch opens at the paper's constants for "
        "networks of each depth, then at other thresholds and caps, over all depths. Nothing was trained again."
    )
    return scenes[0].ablation("switching", "When the mixture branch opens", words, [panel], columns=1)


def _setting(one: Switching) -> str:
    return FACTORS[one.factor].format(one.setting)


def _switching(counted: Sequence[Switching], theirs: Mapping[tuple[str, float], float], ax: Axes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(one.factor for one in counted))
    quoted = False
    for place, one in enumerate(counted):
        which = names.index(one.factor)
        share = 100.0 * one.open / one.layers if one.layers else 0.0
        ax.barh([place], [share], height=0.6, color=PALETTE[(0, 4, 5)[which]], hatch=("", "////", "xxxx")[which],
                edgecolor="white", linewidth=0.4)  # fmt: skip
        paper = theirs.get((one.factor, one.setting))
        if paper is not None:
            ax.plot([paper], [place], **PAPER, clip_on=False)
            quoted = True
        ax.text(
            1.02, place, f"{one.open}/{one.layers}", transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL
        )
        if place and counted[place - 1].factor != one.factor:
            ax.axhline(place - 0.5, color=FAINT, linewidth=0.8)
    ax.set_yticks(range(len(counted)), [_setting(one) for one in counted])
    ax.set_ylim(len(counted) - 0.45, -0.55)
    ax.set_xlim(0, 100)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.set_xlabel("layers whose gate is open (%)")
    kinds = {"depth": "by depth", "bic_threshold": "by threshold", "low_weight_cap": "by cap"}
    looks: list[dict[str, Any]] = [
        {"facecolor": PALETTE[(0, 4, 5)[i]], "hatch": ("", "////", "xxxx")[i]} for i in range(len(names))
    ]
    handles = [Patch(**look, edgecolor="white", label=kinds[name]) for look, name in zip(looks, names, strict=True)]
    below(ax, [*handles, *([Line2D([], [], **PAPER, label="the paper")] if quoted else [])], columns=4)


def gate_check(scene: Scene) -> list[StudyFigure]:
    """Does a neuron's score say what damping it does? One point per probed neuron."""
    if scene.results.name != "gate-check":  # a check takes up to a minute a run
        return []
    probes = [one for one in probes_of(scene.results) if one.task == scene.task]
    if not probes:
        return []
    pooled, arm = Probes.pooled(probes), scene.styles[probes[0].arm].number
    quoted = scene.task == "smooth-advection-diffusion"
    panels = []
    for title, pair, axes, found, key in (
        ("Score and change of the loss", ("score", "loss"), ("score", "|change of the loss|"), pooled.score_correlation,
         "score"),
        ("Predicted and seen change", ("gradient_predicted", "gradient"),
         ("first-order prediction", "|change of the gradient|"), pooled.gradient_correlation, "gradient"),
    ):  # fmt: skip
        theirs = f" (the paper: {fact('gate-check', key):g})" if quoted else ""
        told = "not known" if math.isnan(found) else f"{found:.3f}"
        words = f"Spearman's rank correlation over {pooled.count} probes: {told}{theirs}."
        panels.append(
            Panel(title, words, partial(_probes, probes, arm, pair, axes, f"Spearman {told}{theirs}"), (4.3, 3.4))
        )
    words = (
        "In the adapted state one pre-activation at a time is scaled by 0.9 and nothing is trained. Left: a neuron's "
        "score against the change of the loss. Right: the change of the parameters' gradient against its first-order "
        "prediction."
    )
    return scene.ablation("gate-check", "Scores and what damping a neuron does", words, panels)


def _probes(
    probes: Sequence[Probes], arm: int, pair: tuple[str, str], axes: tuple[str, str], said: str, ax: Axes
) -> None:
    deepest = int(max(one["layer"].max() for one in probes))
    columns = [np.concatenate([one[name] for one in probes]) for name in (*pair, "layer")]
    words = [f"seed {one.seed}, layer {int(row[0])}, neuron {int(row[1])}" for one in probes for row in one.rows]
    markers = ("o", "s", "^", "D", "v", "P", "X", "*")
    for number in range(1, deepest + 1):
        for x, y, layer, told in zip(*columns, words, strict=True):
            if int(layer) == number and x > 0 and y > 0:
                dot(ax, x, y, arm, told, marker=markers[(number - 1) % len(markers)], markersize=4.8,
                    color=(*PALETTE, FAINT)[(number - 1) % 7], markeredgewidth=0.0)  # fmt: skip
        ax.plot([], [], marker=markers[(number - 1) % len(markers)], linestyle="none", markersize=4.8,
                color=(*PALETTE, FAINT)[(number - 1) % 7], label=f"layer {number}")  # fmt: skip
    for axis, values in ((ax.xaxis, columns[0]), (ax.yaxis, columns[1])):
        seen, limit = values[values > 0], ax.set_xlim if axis is ax.xaxis else ax.set_ylim
        if len(seen):
            limit(seen.min() / 1.4, seen.max() * 1.4)
            logarithmic(axis)
    ax.set_title(said, loc="right", fontsize=SMALL, fontweight="normal")
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    below(ax, columns=4)
