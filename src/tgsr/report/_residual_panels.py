"""Panels of what the fit left over: residuals as a histogram, and against every coordinate."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._panel import Panel
from tgsr.report._readings import Readings
from tgsr.report._style import FAINT, INK, PALETTE, label
from tgsr.report._words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RASTER = 300  # markers from which a picture is smaller than as many shapes
BANDS = 2.0  # residuals beyond so many sigma should be about one in twenty


def residual_panels(readings: Readings) -> list[Panel]:
    """A histogram, then one scatter per coordinate."""
    z = readings.residuals / readings.unit
    beyond = 100.0 * float(np.mean(np.abs(z) > BANDS)) if z.size else 0.0
    whose = "stated sigma" if readings.sigma else "their own spread (no noise was stated)"
    words = (
        f"{z.size} residuals of {readings.field}, in units of {whose} {number(readings.unit)}: mean "
        f"{number(float(np.mean(z)), 2)}, spread {number(readings.spread / readings.unit, 3)}, "
        f"{number(beyond, 3)} % beyond 2 sigma (4.6 % expected)."
    )
    panels = [Panel(label(f"{readings.field}: residuals"), words, partial(_histogram, z))]
    for name, column in readings.points.items():
        trend = _trend(column, z)
        words = f"Residuals of {readings.field} against {name}, with a band of 2 sigma. {trend}"
        panels.append(
            Panel(label(f"{readings.field}: residuals against {name}"), words, partial(_scatter, column, z, name))
        )
    return panels


def _histogram(z: np.ndarray, ax: Axes) -> None:
    edge = float(np.clip(np.max(np.abs(z), initial=4.0), 4.0, 8.0))
    bins = np.linspace(-edge, edge, int(np.clip(np.sqrt(z.size) * 1.5, 12, 48)) + 1)
    ax.hist(np.clip(z, -edge, edge), bins=bins.tolist(), density=True, color=PALETTE[4], alpha=0.75, label="residuals")
    grid = np.linspace(-edge, edge, 200)
    ax.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), color=INK, lw=1.3, ls=(0, (5, 2)), label="normal")
    ax.set_xlabel("(reading - fit) / sigma")
    ax.set_ylabel("density")
    ax.legend(loc="upper right")


def _scatter(column: np.ndarray, z: np.ndarray, name: str, ax: Axes) -> None:
    ax.axhspan(-BANDS, BANDS, color=PALETTE[0], alpha=0.12, lw=0)
    ax.axhline(0.0, color=FAINT, lw=1.0)
    ax.plot(column, z, "o", ms=2.6, mew=0, alpha=0.6, color=PALETTE[0], rasterized=z.size > RASTER)
    ax.set_xlabel(label(name))
    ax.set_ylabel("(reading - fit) / sigma")


def _trend(column: np.ndarray, z: np.ndarray) -> str:
    """Whether ten slices along the coordinate have means that noise would give."""
    if z.size < 30 or np.ptp(column) == 0:
        return ""
    order = np.array_split(np.argsort(column), 10)
    means = np.array([np.mean(z[part]) * np.sqrt(len(part)) for part in order])
    worst = float(np.max(np.abs(means)))
    return (
        f"No trend: the mean of every tenth of the range is within {worst:.1f} of its own standard errors of zero."
        if worst < 3.5
        else f"A trend: the mean of one tenth of the range is {worst:.1f} of its standard errors away from zero."
    )
