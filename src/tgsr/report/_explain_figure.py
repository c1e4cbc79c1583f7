"""The figure of `explain`: one row per hidden layer, with its scores, their mixture and the decay factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._style import FAINT, FIELD_MAP, INK, PALETTE, house_style, label, nothing_to_draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tgsr.report._explain import Explanation, Layer

MOST_LAYERS = 8
PANEL = (4.4, 2.7)  # inches
BINS = 24


def draw_explanation(explanation: Explanation) -> Figure:
    """Scores in order (coloured by decay factor), compressed scores with the fitted groups, and every decay factor."""
    from matplotlib.figure import Figure

    layers = explanation.layers[:MOST_LAYERS]
    with house_style():
        rows = max(len(layers), 1)
        figure = Figure(figsize=(3 * PANEL[0], PANEL[1] * rows + 0.5), layout="constrained")
        soft, total = sum(int(one.softened.sum()) for one in layers), sum(len(one.gamma) for one in layers)
        told = f": {soft} of {total} neurons softened" if layers else ""
        figure.suptitle(label(f"{explanation.name} ({explanation.method}){told}"), x=0.01, ha="left", fontsize=11)
        if not layers:
            nothing_to_draw(figure.add_subplot(), "No neuron was scored or softened in this run.")
            return figure
        least = min(float(one.gamma.min()) for one in layers)
        limits = (min(least, 0.98), 1.0)
        for row, one in enumerate(layers):
            axes = [figure.add_subplot(rows, 3, 3 * row + column) for column in (1, 2, 3)]
            _scores(axes[0], one, limits)
            _mixture(axes[1], one)
            _decay(axes[2], one, min(least, 0.4))
    return figure


def _scores(ax: Axes, one: Layer, limits: tuple[float, float]) -> None:
    order = np.argsort(one.score, kind="stable")
    positive = one.score[one.score > 0]
    ax.set_title(f"Layer {one.number}: scores, {one.at_floor} at the floor")
    if positive.size and positive.max() > 30 * positive.min():
        ax.set_yscale("log")
    rank, look = np.arange(1, len(order) + 1), {"s": 20, "edgecolors": INK, "linewidths": 0.3, "zorder": 2}
    colours = {"c": one.gamma[order], "cmap": FIELD_MAP, "vmin": limits[0], "vmax": limits[1]}
    dots = ax.scatter(rank, one.score[order], **colours, **look)
    ax.set_xlabel("rank among the layer's neurons")
    ax.set_ylabel("score")
    bar = ax.figure.colorbar(dots, ax=ax, pad=0.02)
    bar.set_label("decay factor")
    bar.outline.set_visible(False)


def _mixture(ax: Axes, one: Layer) -> None:
    titles = {"gmm": "mixture used", "rank": "rank used", "closed": "no signal", "degenerate": "no signal"}
    ax.set_title(f"Compressed scores: {titles.get(one.branch, one.branch)}")
    counts, edges, _ = ax.hist(one.chi, bins=BINS, color=PALETTE[4], edgecolor="white", linewidth=0.4)
    ax.set_xlabel("log(1 + score / median)")
    ax.set_ylabel("neurons")
    if one.mixture is None or one.mixture[1] == one.mixture[2]:
        return
    weight, low, high, sd_low, sd_high, _ = one.mixture
    x = np.linspace(edges[0], edges[-1], 600)
    size = len(one.chi) * (edges[1] - edges[0])
    used = one.branch == "gmm"
    for share, mean, sd, colour, dash, name in (
        (weight, low, sd_low, PALETTE[1], "-", "low group"),
        (1 - weight, high, sd_high, PALETTE[0], (0, (6, 2)), "high group"),
    ):
        density = size * share * np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        ax.plot(
            x,
            density,
            color=colour,
            linestyle=dash,
            alpha=1.0 if used else 0.45,
            label=name + ("" if used else ", not used"),
        )
    ax.set_ylim(0, 1.25 * float(np.max(counts)))  # a narrow group would dwarf the counts
    ax.legend(loc="upper right")


def _decay(ax: Axes, one: Layer, lowest: float) -> None:
    ax.set_title(f"Decay factors: {int(one.softened.sum())} of {len(one.gamma)} softened")
    at = np.arange(1, len(one.gamma) + 1)
    ax.vlines(at, one.gamma, 1.0, color=PALETTE[1], linewidth=1.2)
    for which, face, name in ((one.softened, PALETTE[1], "softened"), (~one.softened, "white", "as it was, or nearly")):
        if which.any():
            ax.plot(at[which], one.gamma[which], "o", ms=4, mfc=face, mec=PALETTE[1], mew=0.8, label=name, zorder=3)
    ax.axhline(one.eta, color=FAINT, linestyle=(0, (2, 1.5)), linewidth=1.2, label=f"protection eta = {one.eta:.2f}")
    ax.set_ylim(min(lowest, one.eta) - 0.05, 1.05)
    ax.set_xlabel("neuron")
    ax.set_ylabel("decay factor")
    ax.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none")
