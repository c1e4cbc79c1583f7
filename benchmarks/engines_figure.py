"""The figure of the engine's page, and the page itself: what `engines.py` writes into the documentation."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

from engines_report import HEADING, OURS, PRECISIONS, Results, drawable, found, label_of, section
from rivals.competitors import COMPETITORS

from tgsr.report._style import INK, PALETTE, house_style
from tgsr.storage import read_bytes, write_bytes

COLOURS = {"native": PALETTE[0], "jax": PALETTE[1], "pytorch": PALETTE[3]}
STYLES = {"float32": ("-", "o"), "float64": ((0, (5, 2)), "s")}


def publish(results: Results, docs: Path) -> None:
    """Put section and figure into the documentation."""
    page = docs / "engine.md"
    text = read_bytes(page).decode()
    write_bytes(page, (text[: text.index(HEADING)] + section(results)).encode())
    if drawable(results):
        write_bytes(docs / "assets" / "engine.svg", figure(results))


def figure(results: Results) -> bytes:
    """An SVG with time by points on the left and ratios on the right."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with house_style():
        drawn = Figure(figsize=(9.4, 4.2), layout="constrained")
        left, right = drawn.subplots(1, 2)
        _times(left, found(results, "scaling"))
        _ratios(right, found(results, "rivals"))
        stream = io.BytesIO()
        FigureCanvasSVG(drawn).print_svg(stream, metadata={"Date": None})
    return stream.getvalue()


def _times(axes: Any, scaling: Results) -> None:
    """Milliseconds by points."""
    cases = sorted((int(points), case) for points, case in scaling.items())
    for (name, colour), precision in itertools.product(COLOURS.items(), PRECISIONS):
        line = [(n, case[precision]["ms"][name]) for n, case in cases if name in case[precision]["ms"]]
        (dash, marker), who = STYLES[precision], "PyTorch" if name == "pytorch" else name
        x, y = zip(*line, strict=True)
        axes.loglog(x, y, color=colour, linestyle=dash, marker=marker, markersize=4, label=f"{who}, {precision}")
    axes.set(title="Time of a closure", xlabel="interior points", ylabel="milliseconds, two threads")
    axes.legend()


def _ratios(axes: Any, rivals: Results) -> None:
    """How many times as fast as each library."""
    names = [name for name in COMPETITORS if name not in OURS]
    bars = list(itertools.product(("native", "jax"), PRECISIONS))
    for (place, name), (number, (engine, precision)) in itertools.product(enumerate(names), enumerate(bars)):
        value, at = rivals[precision]["ms"][name] / rivals[precision]["ms"][engine], place + 0.2 * (number - 1.5)
        alpha, words = (1.0 if precision == "float32" else 0.55), None if place else f"{engine}, {precision}"
        axes.barh(at, value, height=0.18, color=COLOURS[engine], alpha=alpha, label=words)
        axes.text(value, at, f" {value:.1f}", va="center", fontsize=6.5, color=INK)
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(names)), [label_of(name, rivals["about"]) for name in names])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(title="How many times as fast", xlabel=f"time of the library / our time, {rivals['points']:,} points")
    axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.14), ncols=4, fontsize=7.5, columnspacing=1.0)
