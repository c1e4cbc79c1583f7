"""Every figure of a study's report, and the same figures as files ready for a paper."""

from __future__ import annotations

import io
import math
import string
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError, plain
from tgsr.report._arms import arm_styles
from tgsr.report._figures_ablations import ablations
from tgsr.report._figures_controls import controls, estimates, harm
from tgsr.report._figures_cost import cost, overhead
from tgsr.report._figures_errors import bounds, distributions, joint, pairs
from tgsr.report._figures_fields import fields
from tgsr.report._figures_history import convergence, stages
from tgsr.report._figures_layers import gate_check, layers, switching
from tgsr.report._figures_sweeps import sweeps
from tgsr.report._study_curves import Runs
from tgsr.report._study_figure import Scene
from tgsr.report._study_figure import StudyFigure as StudyFigure
from tgsr.report._style import house_style
from tgsr.report._svg import SIZE
from tgsr.report._task_view import views
from tgsr.storage import write_bytes
from tgsr.study._results import StudyResults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABLATIONS: tuple[Callable[[Scene], list[StudyFigure]], ...] = (ablations, sweeps, layers, gate_check)
MAIN: tuple[Callable[[Scene], list[StudyFigure]], ...] = (
    distributions, joint, pairs, harm, bounds, controls, estimates, convergence, stages, fields, cost,
)  # fmt: skip
FORMATS = ("pdf", "png", "svg")
PRINT_WIDTH, SCALE = 7.2, 0.81  # inches across two columns of a paper; of a panel on paper to one on a page
DPI = 300
# No date and no version of the program that drew them: the same study gives the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None}, "png": {"Software": None}, "svg": {"Date": None},
}  # fmt: skip


def study_figures(results: StudyResults) -> tuple[StudyFigure, ...]:
    """The figures that the study has the runs for, task by task, an ablation's own first. Drawing waits until asked."""
    styles, runs = arm_styles(results), Runs(results)
    scenes = [Scene(results, view, styles, runs) for view in views(results)]
    found = [figure for scene in scenes for make in (*MAIN, *ABLATIONS) for figure in make(scene)]
    found += [*switching(scenes), *overhead(scenes)]
    own = [figure for figure in found if figure.section == results.name]
    return tuple([*own, *(figure for figure in found if figure.section != results.name)])


def save_figures(results: StudyResults, folder: str | Path, formats: Sequence[str] = FORMATS) -> tuple[Path, ...]:
    """Write every figure under `folder`, named after its key: in its size on paper, with the fonts it needs inside."""
    for name in formats:
        if name not in FORMATS:
            raise InputError(f"figures cannot be written as {plain(name, 20)!r}", field="formats",
                             remedy=f"The formats are {', '.join(FORMATS)}")  # fmt: skip
    root, written = Path(folder), []
    for figure in study_figures(results):
        drawn = draw_figure(figure)
        for name in formats:
            root.mkdir(parents=True, exist_ok=True)
            target = root / f"{figure.key}.{name}"
            write_bytes(target, figure_bytes(drawn, name))
            written.append(target)
    return tuple(written)


def figure_bytes(drawn: Figure, name: str) -> bytes:
    """A drawn figure as a file of that format; the same bytes every time."""
    stream = io.BytesIO()
    with print_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # it is drawn as a box
        drawn.savefig(stream, format=name, dpi=DPI, metadata=_METADATA[name])
    return stream.getvalue()


def draw_figure(figure: StudyFigure) -> Figure:
    """All panels of a figure on one sheet, as wide as two columns of a paper or as one."""
    from matplotlib.figure import Figure

    sizes = [panel.size or SIZE for panel in figure.panels]
    width = SCALE * max(across for across, _ in sizes)
    columns = max(1, min(figure.columns, len(sizes), math.floor(PRINT_WIDTH / width + 0.1)))
    rows = [sizes[i : i + columns] for i in range(0, len(sizes), columns)]
    heights = [SCALE * max(up for _, up in row) + 0.12 for row in rows]
    with print_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn = Figure(figsize=(width * columns, sum(heights)), layout="constrained")
        parts = drawn.subfigures(len(rows), columns, squeeze=False, height_ratios=heights, wspace=0.02, hspace=0.02)
        for place, panel in enumerate(figure.panels):
            part = parts[place // columns, place % columns]
            letter = f"({string.ascii_lowercase[place % 26]}) " if len(sizes) > 1 else ""
            part.suptitle(f"{letter}{panel.title}", x=0.01, ha="left", fontsize="medium", fontweight="bold")
            panel.draw(part.add_subplot())
    return drawn


@contextmanager
def print_style() -> Iterator[None]:
    """The house's style with the letters and lines of print."""
    import matplotlib as mpl

    with house_style():
        smaller = {key: SCALE * value for key, value in mpl.rcParams.items()
                   if key.endswith(("size", "linewidth")) and isinstance(value, float)}  # fmt: skip
        settings: Any = {**smaller, "pdf.fonttype": 42}
        with mpl.rc_context(settings):
            yield
