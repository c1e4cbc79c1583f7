"""Panels of the fields: curves over one coordinate, images over two, three slices in time over more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr.report._panel import Panel
from tgsr.report._readings import Readings
from tgsr.report._style import FIELD_MAP, PALETTE, label
from tgsr.report._words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tgsr._result import Result

FINE, COARSE = 400, 140  # points along a curve, and per axis of an image
TIMES = ("t", "time")
NEAR = 1 / 12  # readings of a slice: those within this share of the range
RASTER = 300
MOST_FIELDS = 8

Box = Mapping[str, tuple[float, float]]


def field_panels(result: Result, readings: Sequence[Readings]) -> list[Panel]:
    """The fields over the box of the problem, drawn as their number of coordinates allows."""
    box, units = box_of(result, readings), units_of(result)
    panels: list[Panel] = []
    for name in result.fields[:MOST_FIELDS]:
        mine = [r for r in readings if r.field == name]
        unknown = result.unknown_fields.get(name)
        axes = unknown[0].coordinates if unknown else result.network.coordinates
        heading = label(name, units.get(name, "")), label(name) + (" (recovered)" if unknown else "")
        if len(axes) == 1:
            panels.append(_curve_panel(result, name, axes[0], box, mine, heading))
        elif len(axes) == 2:
            fixed = {c: sum(box[c]) / 2 for c in box if c not in axes}
            panels.append(_image_panel(result, name, axes, box, fixed, mine, heading, None))
        else:
            panels += _slices(result, name, axes, box, mine, heading)
    return panels


def box_of(result: Result, readings: Sequence[Readings] = ()) -> Box:
    """The range of every coordinate: the problem's, else the one for which the network was scaled."""
    if result.inputs is not None and (boxes := result.inputs[0].get("problem", {}).get("coordinates")):
        return {name: (float(low), float(high)) for name, (low, high) in boxes.items()}
    net = result.network
    ends = zip(net.coordinates, net.centre - net.half_width, net.centre + net.half_width, strict=True)
    return {name: (float(low), float(high)) for name, low, high in ends}


def units_of(result: Result) -> dict[str, str]:
    """The unit of every field that has one."""
    listed: list[dict[str, Any]] = result.inputs[0].get("problem", {}).get("fields", []) if result.inputs else []
    return {str(f["name"]): str(f.get("unit", "")) for f in listed}


def _curve_panel(
    result: Result, name: str, axis: str, box: Box, readings: Sequence[Readings], heading: tuple[str, str]
) -> Panel:
    fixed = {c: sum(ends) / 2 for c, ends in box.items() if c != axis}
    x = np.linspace(*box[axis], FINE)
    u = result.predict(**{axis: x}, **fixed)[name]
    counted = sum(r.values.size for r in readings)
    words = f"{name} over {axis}, from {number(float(u.min()))} to {number(float(u.max()))}, {_with(counted)}."

    def draw(ax: Axes) -> None:
        for r in readings:
            ax.plot(r.points[axis], r.values, "o", ms=3, mew=0, alpha=0.55, color=PALETTE[1], label="readings",
                    rasterized=r.values.size > RASTER)  # fmt: skip
        ax.plot(x, u, color=PALETTE[0], label="fit")
        ax.set_xlabel(label(axis))
        ax.set_ylabel(heading[0])
        if readings:
            ax.legend(loc="best")

    return Panel(heading[1], words, draw)


def _slices(
    result: Result, name: str, axes: Sequence[str], box: Box, readings: Sequence[Readings], heading: tuple[str, str]
) -> list[Panel]:
    """Images over the first two coordinates at the start, middle and end of the time (or the last coordinate)."""
    time = next((a for a in axes if a in TIMES), axes[-1])
    others = [a for a in axes if a != time]
    middle = {c: sum(ends) / 2 for c, ends in box.items() if c not in (time, *others[:2])}
    panels = []
    low, high = box[time]
    moments = [low, (low + high) / 2, high]
    grids = [_grid(result, name, others[:2], box, {**middle, time: at}) for at in moments]
    shared = min(float(g.min()) for g in grids), max(float(g.max()) for g in grids)
    for at in moments:
        near = [_near(r, time, at, NEAR * (high - low)) for r in readings]
        told = ", ".join(f"{c} = {number(v)}" for c, v in {time: at, **middle}.items())
        title = heading[0], f"{heading[1]} at {label(told)}"
        panels.append(_image_panel(result, name, others[:2], box, {**middle, time: at}, near, title, shared))
    return panels


def _grid(result: Result, name: str, axes: Sequence[str], box: Box, fixed: Mapping[str, float]) -> np.ndarray:
    across, up = (np.linspace(*box[a], COARSE) for a in axes)
    return result.predict(**{axes[0]: across[None, :], axes[1]: up[:, None]}, **fixed)[name]


def _image_panel(
    result: Result,
    name: str,
    axes: Sequence[str],
    box: Box,
    fixed: Mapping[str, float],
    readings: Sequence[Readings],
    heading: tuple[str, str],
    limits: tuple[float, float] | None,
) -> Panel:
    values = _grid(result, name, axes, box, fixed)
    counted = sum(r.values.size for r in readings)
    words = (
        f"{name} over {axes[0]} and {axes[1]}{''.join(f', {c} = {number(v)}' for c, v in fixed.items())}: from "
        f"{number(float(values.min()))} to {number(float(values.max()))}, {_with(counted)}."
    )
    return Panel(heading[1], words, partial(_image, values, axes, box, readings, heading[0], limits))


def _image(
    values: np.ndarray,
    axes: Sequence[str],
    box: Box,
    readings: Sequence[Readings],
    what: str,
    limits: tuple[float, float] | None,
    ax: Axes,
) -> None:
    low, high = limits or (None, None)
    picture = ax.imshow(
        values,
        origin="lower",
        extent=(*box[axes[0]], *box[axes[1]]),
        aspect="auto",
        cmap=FIELD_MAP,
        vmin=low,
        vmax=high,
    )
    for r in readings:
        ax.plot(r.points[axes[0]], r.points[axes[1]], "o", ms=2.2, mew=0.3, mfc="white", mec="black", alpha=0.55,
                rasterized=r.values.size > RASTER)  # fmt: skip
    ax.set_xlim(*box[axes[0]])
    ax.set_ylim(*box[axes[1]])
    ax.grid(False)
    ax.set_xlabel(label(axes[0]))
    ax.set_ylabel(label(axes[1]))
    figure = ax.figure
    bar = figure.colorbar(picture, ax=ax, pad=0.02)
    bar.set_label(what)
    bar.outline.set_visible(False)


def _near(readings: Readings, time: str, at: float, within: float) -> Readings:
    keep = np.abs(readings.points[time] - at) <= within
    points = {name: column[keep] for name, column in readings.points.items()}
    return Readings(readings.name, readings.field, points, readings.values[keep], readings.fitted[keep], readings.sigma)


def _with(count: int) -> str:
    return f"with {count} readings" if count else "without readings"
