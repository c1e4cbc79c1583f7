"""Axes, legends and words that the figures of a study share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr.report._marks import mark
from tgsr.report._style import FAINT, INK, label

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from tgsr.report._arms import ArmStyle

PAPER: dict[str, Any] = {
    "marker": "D", "linestyle": "none", "markersize": 5.5, "markerfacecolor": "none", "markeredgecolor": INK,
    "markeredgewidth": 1.1, "zorder": 8,
}  # fmt: skip
MEAN: dict[str, Any] = {**PAPER, "markerfacecolor": INK, "markersize": 4.5}
DASHED: dict[str, Any] = {"color": FAINT, "linewidth": 1.1, "linestyle": (0, (4, 2))}
PAPER_LABEL, MEAN_LABEL = "the paper's mean", "our mean"
MINUS = "\N{MINUS SIGN}"
SMALL = "small"  # relative sizes: a figure for print has smaller letters throughout
MOST_NAMED = 14


def logarithmic(axis: Axis) -> None:
    """A logarithmic axis whose numbers can be read: 0.01, 0.1, 1, and 2 and 5 between where there is room."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axis._set_axes_scale("log")  # type: ignore[attr-defined]  # the Axes' own set_xscale and set_yscale do this
    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if low > 0 and math.isfinite(high) else 9.0
    axis.set_major_locator(LogLocator(numticks=6))
    axis.set_major_formatter(FuncFormatter(_decade))
    if decades < 2.2:
        between = (1.5, 2.0, 3.0, 5.0, 7.0) if decades < 0.7 else (2.0, 5.0)
        axis.set_minor_locator(LogLocator(subs=between, numticks=40))
        axis.set_minor_formatter(FuncFormatter(lambda v, _: f"{v:.3g}"))
        axis.grid(True, which="minor")
    else:
        axis.set_minor_formatter(NullFormatter())
        if decades > 4:
            axis.set_minor_locator(NullLocator())


def _decade(value: float, _: object = None) -> str:
    if 1e-3 <= abs(value) < 1e4 or value == 0:
        return f"{value:.4g}".replace("-", MINUS)
    power = round(math.log10(abs(value)))
    return f"${'-' if value < 0 else ''}10^{{{power}}}$"


def signed_logarithmic(ax: Axes, linear: float, most: float) -> None:
    """An x axis to `most` both ways, linear between -`linear` and `linear` and logarithmic beyond."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ax.set_xscale("symlog", linthresh=linear, linscale=0.6)
    first, last = round(math.log10(linear)), math.floor(math.log10(most))
    step = max(1, -(-(last - first) // 3))
    decades = [10.0**power for power in range(last, first, -step)] or [linear]
    ax.xaxis.set_major_locator(FixedLocator([*(-d for d in decades), 0.0, *reversed(decades)]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(_decade))


def below(ax: Axes, handles: Sequence[Artist] | None = None, columns: int = 3, extra_lines: float = 0.0) -> None:
    """The legend under the axes, where it covers nothing; `extra_lines` where tick labels have more than one line."""
    given = (
        ax.get_legend_handles_labels() if handles is None else (list(handles), [str(h.get_label()) for h in handles])
    )
    if not given[0]:
        return
    import matplotlib as mpl
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    lines = extra_lines + (3.5 + 1.2 * ax.get_xlabel().count("\n") if ax.get_xlabel() else 1.9)
    down = ScaledTranslation(0.0, -lines * mpl.rcParams["font.size"] / 72, ax.figure.dpi_scale_trans)
    where = blended_transform_factory(ax.figure.transSubfigure, ax.transAxes + down)  # labels may shift the axes
    ax.legend(
        *given, loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=where, ncols=columns, fontsize=SMALL,
        handlelength=1.9, columnspacing=1.1, handletextpad=0.5, borderaxespad=0.0,
    )  # fmt: skip


def dot(ax: Axes, x: float, y: float, arm: int, words: str = "", **look: Any) -> None:
    """One marked point. It moves neither the limits nor the layout: many of them have to be cheap."""
    from matplotlib.lines import Line2D

    drawn = Line2D([x], [y], **{"linestyle": "none", **look})
    drawn.set_in_layout(False)
    ax.add_artist(drawn)
    drawn.set_clip_on(bool(look.get("clip_on", False)))
    mark(drawn, arm, words)


def arm_legend(ax: Axes, styles: Iterable[ArmStyle], kind: str = "dot", extra: Sequence[Artist] = ()) -> None:
    """The arms under the axes, each entry marked as its arm's; then `extra`."""
    from matplotlib.lines import Line2D

    listed = list(styles)
    looks = [s.dot if kind == "dot" else {**s.line, "marker": s.marker, "markersize": 4.5} for s in listed]
    handles = [Line2D([], [], **look, label=short(s.arm)) for s, look in zip(listed, looks, strict=True)]
    longest = max((len(str(h.get_label())) for h in handles), default=0)
    entries = len(handles) + len(extra)
    columns = 4 if longest <= 10 and (not extra or entries <= 4) else 3 if longest <= 14 else 2
    below(ax, [*handles, *extra], columns=min(columns, entries))
    legend = ax.get_legend()
    if legend is None:
        return
    for style, handle, text in zip(listed, legend.legend_handles, legend.get_texts(), strict=False):
        for artist in (handle, text):
            if artist is not None:
                mark(artist, style.number)


def short(arm: str, most: int = 22) -> str:
    """An arm's label as pictures show it."""
    return label(arm, most=most)


def listed(values: Mapping[str, str], most: int = MOST_NAMED) -> str:
    """ "scratch 0.3 %, full 0.2 %": the first `most`, and how many there are beyond."""
    shown = [f"{name} {value}" for name, value in list(values.items())[:most]]
    more = len(values) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def outside_words(outside: Sequence[float], unit: str = " %") -> str:
    """Values that a picture leaves out: "120 % to 4e+14 % and 1 failed"."""
    finite = [f"{value:.3g}{unit}" for value in sorted(outside) if math.isfinite(value)]
    failed = len(outside) - len(finite)
    told = [finite[0] if len(finite) == 1 else f"{finite[0]} to {finite[-1]}"] if finite else []
    return " and ".join([*told, *([f"{failed} failed"] if failed else [])])


def positive(values: Iterable[float]) -> np.ndarray:
    """Those that a logarithmic axis can show."""
    found = np.asarray(list(values), dtype=float)
    return found[np.isfinite(found) & (found > 0)]


def guide(ax: Axes, at: float, words: str = "", *, vertical: bool = True) -> None:
    """A dashed line, with its name for the legend."""
    (ax.axvline if vertical else ax.axhline)(at, **DASHED, zorder=1, label=words or None)
