"""Panels of what training went through: the loss and its parts, and every unknown, against closures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._panel import Panel
from tgsr.report._style import FAINT, INK, PALETTE, label, line_style, nothing_to_draw, thinned
from tgsr.report._words import estimate_words, method_labels, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tgsr._result import Result

CLOSURES = "closures (loss and gradient)"
MOST_PARTS = 6
MOST_UNKNOWNS = 24
THIN = 0.08  # of the height of the axis
DECADES = 2.0  # a positive unknown that moves over more is drawn on a logarithmic axis


def history_panels(result: Result) -> list[Panel]:
    """The loss, then one panel per unknown."""
    loss = result.history.columns["loss"]
    ends = f" from {number(loss[0])} to {number(loss[-1])}" if len(loss) else ""
    parts = ", ".join(result.history.parts)
    panels = [
        Panel(
            "Loss", f"Total loss{ends}, and its parts before weighting ({parts}), logarithmic.", partial(_loss, result)
        )
    ]
    for name in list(result.unknowns)[:MOST_UNKNOWNS]:
        estimate = result.unknowns[name]
        words = f"{name} during training; first guess {number(estimate.guess)}, final {estimate_words(estimate)}."
        panels.append(Panel(label(name, estimate.unit), words, partial(_unknown, result, name)))
    return panels


def comparison_panels(results: Sequence[Result]) -> list[Panel]:
    """The loss and every shared unknown of several results, one line each."""
    labels = method_labels(results)
    panels = [
        Panel("Total loss", f"Total loss of {', '.join(labels)}, logarithmic.", partial(_losses, results, labels))
    ]
    for name in list(results[0].unknowns)[:MOST_UNKNOWNS]:
        having = [(r, text) for r, text in zip(results, labels, strict=True) if name in r.unknowns]
        finals = "; ".join(f"{text}: {estimate_words(r.unknowns[name])}" for r, text in having)
        panels.append(
            Panel(label(name, results[0].unknowns[name].unit), f"{name} during training. {finals}.",
                  partial(_shared_unknown, having, name))
        )  # fmt: skip
    return panels


def closures_of(result: Result) -> np.ndarray:
    """Closures spent at every step, with what the method spent before its main training."""
    return result.history.columns["closures"] + (result.closures - result.history.closures)


def _loss(result: Result, ax: Axes) -> None:
    history, x = result.history, closures_of(result)
    some = thinned(len(x))
    if not some.size:
        return nothing_to_draw(ax, "No training step was taken.")
    terms = history.columns["terms"]
    last = np.nan_to_num(terms[-1], nan=-1.0)
    shown = sorted(np.argsort(-last)[:MOST_PARTS])
    for line, column in enumerate(shown):
        ax.plot(x[some], _positive(terms[some, column]), label=label(history.parts[column]), lw=1.2, **line_style(line))
    ax.plot(x[some], _positive(history.columns["loss"][some]), color=INK, lw=2.2, label="total")
    _phases(result, ax)
    hidden = len(history.parts) - len(shown)
    _logarithmic(ax, f"loss; parts unweighted ({hidden} small ones not drawn)" if hidden else "loss; parts unweighted")
    bottom, top = ax.get_ylim()
    if ax.get_yscale() == "log":  # room for the legend above the curves
        ax.set_ylim(bottom, top * (top / bottom) ** 0.45)
    ax.legend(loc="upper right", ncols=2, columnspacing=1.2)


def _losses(results: Sequence[Result], labels: Sequence[str], ax: Axes) -> None:
    for line, (result, text) in enumerate(zip(results, labels, strict=True)):
        some = thinned(len(result.history))
        ax.plot(closures_of(result)[some], _positive(result.history.columns["loss"][some]),
                label=label(text), **line_style(line))  # fmt: skip
    _logarithmic(ax, "total loss")
    _legend(ax)


def _unknown(result: Result, name: str, ax: Axes) -> None:
    estimate, x = result.unknowns[name], closures_of(result)
    some = thinned(len(x))
    low, high = estimate.interval
    if estimate.identifiable and math.isfinite(low) and math.isfinite(high):
        ax.axhspan(low, high, color=PALETTE[0], alpha=0.22, lw=0, label="95 % band of the final value")
    if math.isfinite(estimate.guess):
        ax.axhline(estimate.guess, color=FAINT, lw=1.1, ls=(0, (2, 2)), label="first guess")
    if some.size and name in result.history.unknowns:
        ax.plot(x[some], result.history[name][some], color=PALETTE[0], label="estimate")
        ax.plot(x[-1:], [estimate.value], "o", color=PALETTE[0], ms=4)
    else:
        ax.axhline(estimate.value, color=PALETTE[0], label="estimate")
    _wide_range(ax, [result.history[name]] if name in result.history.unknowns else [], estimate.guess)
    _phases(result, ax)
    ax.set_xlabel(CLOSURES)
    ax.set_ylabel(label(name, estimate.unit))
    if not (estimate.identifiable and some.size and name in result.history.unknowns and _enlarged(result, name, ax)):
        _legend(ax, "" if estimate.identifiable else "not identifiable from this data")


def _enlarged(result: Result, name: str, ax: Axes) -> bool:
    """Where the band is too thin to see, an inset that shows it: the last half, six standard errors high each way."""
    estimate, x = result.unknowns[name], closures_of(result)
    (low, high), (bottom, top) = estimate.interval, ax.get_ylim()
    if not 0 < (high - low) < THIN * (top - bottom) or not math.isfinite(estimate.se) or ax.get_yscale() != "linear":
        return False
    below = estimate.value < (bottom + top) / 2  # the curve ends there, so there is room on the other side
    inset = ax.inset_axes((0.46, 0.5 if below else 0.14, 0.52, 0.38))
    late = np.flatnonzero(x >= x[-1] / 2)
    late = late[thinned(late.size)]
    inset.axhspan(low, high, color=PALETTE[0], alpha=0.22, lw=0)
    inset.plot(x[late], result.history[name][late], color=PALETTE[0], lw=1.3)
    inset.plot(x[-1:], [estimate.value], "o", color=PALETTE[0], ms=3.5)
    inset.set_ylim(estimate.value - 6 * estimate.se, estimate.value + 6 * estimate.se)
    inset.set_title("enlarged, with the 95 % band", fontsize=8, fontweight="normal")
    inset.tick_params(labelsize=7)
    inset.locator_params(nbins=4)
    inset.patch.set_alpha(0.0)
    if math.isfinite(estimate.guess):
        ax.annotate("first guess", (1.0, estimate.guess), xycoords=("axes fraction", "data"), xytext=(-3, 3),
                    textcoords="offset points", ha="right", fontsize=7.5, color=FAINT)  # fmt: skip
    return True


def _shared_unknown(having: Sequence[tuple[Result, str]], name: str, ax: Axes) -> None:
    columns = []
    for line, (result, text) in enumerate(having):
        style, estimate = line_style(line), result.unknowns[name]
        if name in result.history.unknowns:
            some = thinned(len(result.history))
            columns.append(result.history[name])
            ax.plot(closures_of(result)[some], result.history[name][some], label=label(text), **style)
        spread = 1.96 * estimate.se if math.isfinite(estimate.se) else 0.0
        ax.errorbar([result.closures], [estimate.value], [spread], fmt="o", ms=4, capsize=3, color=style["color"])
    guess = having[0][0].unknowns[name].guess
    if math.isfinite(guess):
        ax.axhline(guess, color=FAINT, lw=1.1, ls=(0, (2, 2)), label="first guess")
    _wide_range(ax, columns, guess)
    ax.set_xlabel(CLOSURES)
    ax.set_ylabel(label(name, having[0][0].unknowns[name].unit))
    _legend(ax)


def _phases(result: Result, ax: Axes) -> None:
    """A thin line wherever the optimiser changed."""
    x, phase = closures_of(result), result.history.columns["phase"]
    for start in np.flatnonzero(np.diff(phase)) + 1:
        ax.axvline(x[start], color=FAINT, lw=0.8)
        name = result.history.phases[phase[start]] if phase[start] < len(result.history.phases) else ""
        ax.annotate(label(name), (x[start], 1.0), xycoords=("data", "axes fraction"), xytext=(3, -3),
                    textcoords="offset points", va="top", fontsize=7.5, color=FAINT)  # fmt: skip


def _wide_range(ax: Axes, columns: Sequence[np.ndarray], guess: float) -> None:
    """A logarithmic axis where a positive unknown moved over decades."""
    values = np.concatenate([*columns, [guess]]) if columns else np.array([guess])
    values = values[np.isfinite(values)]
    if values.size and values.min() > 0 and math.log10(values.max() / values.min()) > DECADES:
        ax.set_yscale("log")


def _logarithmic(ax: Axes, what: str) -> None:
    if ax.lines and any(np.isfinite(line.get_ydata()).any() for line in ax.lines):
        ax.set_yscale("log")
    ax.set_xlabel(CLOSURES)
    ax.set_ylabel(what)


def _positive(values: np.ndarray) -> np.ndarray:
    """NaN where a logarithm has nothing to show."""
    return np.where(values > 0, values, np.nan)


def _legend(ax: Axes, title: str = "") -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best", title=title or None, title_fontproperties={"size": 8.5, "weight": "bold"})
