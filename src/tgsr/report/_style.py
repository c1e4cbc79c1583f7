"""How every picture looks: colours that colour-blind readers can tell apart, line styles that say the same again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr._errors import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, GRID, PAPER = "#20242a", "#5b6470", "#d5d9df", "#ffffff"
# After Okabe and Ito (2008), whose palette stays distinct for all common kinds of colour vision; yellow is left out
# because it cannot be read on white.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
FIELD_MAP = "viridis"  # equal steps of the value look like equal steps
# What takes the place of each colour on a dark page.
DARK = {
    INK: "#e6e9ed",
    FAINT: "#a7b0bb",
    GRID: "#3a414b",
    PAPER: "#15181d",
    "#0072b2": "#4ea3e0",
    "#d55e00": "#f08a4b",
    "#009e73": "#2fbf95",
    "#cc79a7": "#dd9dc0",
    "#56b4e9": "#7cc7f2",
    "#e69f00": "#f0b63c",
}
MOST_POINTS = 500  # of a curve: more cannot be seen, and every one is bytes on the page

_SETTINGS: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-3, 4),
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "path",
    "svg.hashsalt": "tgsr",  # the same picture gives the same bytes
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in here: the settings hold inside only."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def label(text: str, unit: str = "", most: int = 60) -> str:
    """A name with its unit as matplotlib should show it: short, and `$` is a dollar, never mathematics."""
    short = f"{plain(text, most)} [{plain(unit, 24)}]" if unit else plain(text, most)
    return short.replace("$", r"\$")


def line_style(number: int) -> dict[str, Any]:
    """Colour and dash of the line of that number; both change, so that neither alone has to be seen."""
    return {"color": PALETTE[number % len(PALETTE)], "linestyle": DASHES[number % len(DASHES)]}


def thinned(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """Indices of at most `most` of `count` points, evenly spread, with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)) if count else np.zeros(0, int)


def nothing_to_draw(ax: Axes, why: str) -> None:
    """Say in place of a picture why there is none."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, why, ha="center", va="center", transform=ax.transAxes, color=FAINT, wrap=True)
