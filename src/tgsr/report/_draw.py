"""One figure of a result: how the fit came about, what it found, and the fields."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tgsr.report._field_panels import field_panels
from tgsr.report._history_panels import history_panels
from tgsr.report._readings import readings_of
from tgsr.report._style import house_style, label
from tgsr.report._words import duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tgsr._result import Result

COLUMNS = 3
PANEL = (4.4, 3.3)  # inches


def draw_result(result: Result) -> Figure:
    """Loss parts and unknowns (with their 95 % bands) against closures, and the fields with the readings.

    Fields over one coordinate are curves, over two images, over three or more slices at three times. The figure is not
    tied to any display: `figure.savefig("result.png")` works anywhere.
    """
    from matplotlib.figure import Figure

    panels = [*history_panels(result), *field_panels(result, readings_of(result))]
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    with house_style():
        figure = Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows + 0.4), layout="constrained")
        cost = f"{result.closures} closures in {duration(result.seconds)}"
        title = f"{result.name} ({result.method}): {result.outcome} after {cost}"
        figure.suptitle(label(title, most=120), x=0.01, ha="left", fontsize=11)
        for place, panel in enumerate(panels):
            ax = figure.add_subplot(rows, columns, place + 1)
            ax.set_title(panel.title)
            panel.draw(ax)
    return figure
