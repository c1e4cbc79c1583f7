"""Figures of the fields: where on the domain every arm is wrong, on one scale for all of them.

Errors are averaged over the runs of an arm that ended. A cell of a map is one value: nothing is smoothed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr.network._evaluate import evaluate
from tgsr.network._saved import SavedNetwork
from tgsr.report._arms import in_groups
from tgsr.report._figures_axes import arm_legend, listed, logarithmic, positive, short
from tgsr.report._marks import mark
from tgsr.report._panel import Panel
from tgsr.report._study_curves import KnownTruth, truth_of
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._style import FIELD_MAP, INK, line_style
from tgsr.report._words import number
from tgsr.study._statistics import median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAYER, REACTION = "boundary-layer", "reaction-diffusion"
MAP_SIZE, PROFILE_SIZE = (3.0, 2.45), (4.3, 3.6)  # inches
ACROSS, UP = 101, 61  # cells of the boundary layer's maps: the layer is a hundredth wide
CELLS = 61  # per axis of a map at the end of time
FROM, NEAR = 0.8, 0.95  # where the profiles begin, and those of the error
FINE = 241
DECADES = 5.0  # of a logarithmic colour scale at most
FAR_ABOVE = 30.0, 5.0  # times the middle arm's largest error: a colour scale (logarithmic, linear) ends there
STEP = 1e-30  # of the complex-step derivative, which has no rounding error

Points = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class ErrorMap:
    """The mean absolute error of an arm on a grid, and of how many of its runs."""

    arm: str
    values: np.ndarray  # (up, across)
    used: int
    runs: int


def fields(scene: Scene) -> list[StudyFigure]:
    """The pictures of the fields of a task that has them."""
    if scene.task == LAYER:
        return [*exact_layer(scene), *layer_maps(scene), *profiles(scene)]
    return reaction_maps(scene) if scene.task == REACTION else []


def layer_maps(scene: Scene) -> list[StudyFigure]:
    """Mean absolute errors of the boundary layer on one logarithmic scale."""
    x, y = np.linspace(0.0, 1.0, ACROSS), np.linspace(0.0, 1.0, UP)
    maps = error_maps(scene, {"x": x[None, :], "y": y[:, None]})
    if not maps:
        return []
    tops = [float(one.values.max()) for one in maps]
    top = min(max(tops), FAR_ABOVE[0] * median(tops))
    low = max(float(np.percentile(np.concatenate([one.values.ravel() for one in maps]), 2)), top * 10.0**-DECADES)
    low, top = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(top))
    panels = [_map_panel(one, scene, ("x", "y"), (low, top), True) for one in maps]
    words = "Mean over the runs of the absolute error of the field, on one logarithmic scale for all methods."
    return scene.figure("maps", "Where the field is wrong", words, panels, columns=4)


def reaction_maps(scene: Scene) -> list[StudyFigure]:
    """Mean absolute errors at t = 1 on one linear scale, beside the exact field."""
    grid = np.linspace(0.0, 1.0, CELLS)
    at = {"x": grid[None, :], "y": grid[:, None], "t": np.array([[1.0]])}
    maps, truth = error_maps(scene, at), truth_of(scene.task)
    if not maps or truth is None:
        return []
    tops = [float(one.values.max()) for one in maps]
    top = min(max(tops), FAR_ABOVE[1] * median(tops))
    exact = np.asarray(truth.field(**dict(zip(at, np.broadcast_arrays(*at.values()), strict=True))))
    box = (0.0, 1.0, 0.0, 1.0)
    first = Panel("Exact field at t = 1", f"The exact field at t = 1, at most {number(float(exact.max()))}.",
                  partial(_image, exact, box, ("x", "y"), "u", (0.0, float(exact.max())), False), MAP_SIZE)  # fmt: skip
    panels = [first, *(_map_panel(one, scene, ("x", "y"), (0.0, top), False) for one in maps)]
    words = "Mean over the runs of the absolute error of the field at t = 1, on one linear scale for all methods."
    return scene.figure("maps", "Where the field is wrong at t = 1", words, panels, columns=4)


def error_maps(scene: Scene, points: Points) -> list[ErrorMap]:
    """Of every arm of which a network can be read."""
    truth = truth_of(scene.task)
    if truth is None:
        return []
    exact = _exact(truth, points)
    out = []
    for arm in scene.arms:
        runs = scene.view.runs(arm).values()
        with np.errstate(over="ignore", invalid="ignore"):
            errors = [
                np.abs(u - exact) for run in runs if (u := _predicted(scene.runs.network(run), points)) is not None
            ]
        errors = [error for error in errors if np.isfinite(error).all()]
        if errors:
            out.append(ErrorMap(arm, np.mean(errors, axis=0), len(errors), len(runs)))
    return out


def _exact(truth: KnownTruth, points: Points) -> np.ndarray:
    columns = np.broadcast_arrays(*points.values())
    return np.asarray(truth.field(**dict(zip(points, columns, strict=True))))


def _predicted(network: SavedNetwork | None, points: Points) -> np.ndarray | None:
    if network is None or set(network.coordinates) != set(points):
        return None
    columns = np.broadcast_arrays(*(points[name] for name in network.coordinates))
    flat = np.stack([column.reshape(-1) for column in columns], axis=1)
    return evaluate(network, flat)[network.fields[0]].reshape(columns[0].shape)


def _map_panel(one: ErrorMap, scene: Scene, axes: tuple[str, str], limits: tuple[float, float], log: bool) -> Panel:
    counted = f"{one.used} runs" if one.used == one.runs else f"{one.used} of {one.runs} runs"
    most, average = number(float(one.values.max()), 3), number(float(one.values.mean()), 3)
    words = f"Mean of {counted}: at most {most}, {average} on average."
    box = (0.0, 1.0, 0.0, 1.0)
    name = short(one.arm) + ("" if one.used == one.runs else f" ({one.used}/{one.runs})")
    return Panel(name, words, partial(_image, one.values, box, axes, "|error|", limits, log), MAP_SIZE)


def _image(
    values: np.ndarray, box: tuple[float, float, float, float], axes: tuple[str, str], what: str,
    limits: tuple[float, float], log: bool, ax: Axes,
) -> None:  # fmt: skip
    from matplotlib.colors import LogNorm, Normalize

    norm = (LogNorm if log else Normalize)(*limits, clip=False)
    shown = np.maximum(values, limits[0] * 1e-3) if log else values
    picture = ax.imshow(shown, origin="lower", extent=box, aspect="auto", cmap=FIELD_MAP, norm=norm,
                        interpolation="none")  # fmt: skip
    ax.grid(False)
    ax.set_xlabel(axes[0], labelpad=1)
    ax.set_ylabel(axes[1], labelpad=1)
    ax.locator_params(nbins=3)
    beyond = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    extend = beyond[log and float(values.min()) < limits[0], float(values.max()) > limits[1] * 1.0001]
    bar = ax.figure.colorbar(picture, ax=ax, pad=0.03, extend=extend, aspect=14)
    bar.set_label(what, labelpad=2)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="small")
    if not log:
        bar.locator = _few_ticks()
        bar.update_ticks()


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def exact_layer(scene: Scene) -> list[StudyFigure]:
    """Field, slope and outflow profiles of the source (Pe 5) and the target (Pe 100)."""
    systems = {}
    for role in ("source", "target"):
        truth = truth_of(scene.task, role)
        if truth is not None:
            systems[f"Pe = {1.0 / truth.constants['eps']:.0f}"] = truth
    grid = {"x": np.linspace(0.0, 1.0, ACROSS)[None, :], "y": np.linspace(0.0, 1.0, UP)[:, None]}
    box = (0.0, 1.0, 0.0, 1.0)
    maps = {name: (_exact(truth, grid), _slope(truth, grid)) for name, truth in systems.items()}
    top = max(float(slope.max()) for _, slope in maps.values())
    line = {"x": np.concatenate([np.linspace(0, 0.9, 91), np.linspace(0.9, 1.0, 201)[1:]]), "y": np.ones(1)}
    rows = []
    for which, what, limits, log in ((0, "u", (0.0, 1.0), False), (1, "|∂u/∂x|", (top * 1e-4, top), True)):
        for name, pair in maps.items():
            words = f"{what} at {name}: at most {number(float(pair[which].max()), 3)}."
            rows.append(Panel(f"{'Exact field' if which == 0 else '|∂u/∂x|'}, {name}", words,
                              partial(_image, pair[which], box, ("x", "y"), what, limits, log), MAP_SIZE))  # fmt: skip
        curves = {name: (_exact, _slope)[which](truth, line) for name, truth in systems.items()}
        told = listed({name: number(float(curve.max()), 3) for name, curve in curves.items()})
        title = "Outflow profile, y = 1" if which == 0 else "|∂u/∂x| at y = 1"
        rows.append(Panel(title, f"Largest {what} at y = 1: {told}.",
                          partial(_lines, line["x"], curves, what, log), MAP_SIZE))  # fmt: skip
    words = (
        "The exact solution at the Péclet number of the source and of the target: what is transferred comes from a "
        "field without the target's layer, which is a hundredth wide."
    )
    return scene.figure("exact", "Structure of the problem", words, rows, columns=3)


def _slope(truth: KnownTruth, points: Points) -> np.ndarray:
    """|u_x|, by a complex step."""
    columns = dict(zip(points, np.broadcast_arrays(*points.values()), strict=True))
    return np.abs(np.imag(truth.field(**{**columns, "x": columns["x"] + 1j * STEP})) / STEP)


def _lines(x: np.ndarray, curves: Mapping[str, np.ndarray], what: str, log: bool, ax: Axes) -> None:
    for place, (name, curve) in enumerate(curves.items()):
        ax.plot(x, curve, label=name, **line_style(place))
    if log:
        top = max(float(curve.max()) for curve in curves.values())
        ax.set_ylim(top * 1e-4, top * 2)
        logarithmic(ax.yaxis)
    ax.set_xlabel("x", labelpad=1)
    ax.set_ylabel(what, labelpad=1)
    ax.legend(loc="lower left" if not log else "upper left", fontsize="small")


def profiles(scene: Scene) -> list[StudyFigure]:
    """Outflow profiles at y = 1, and the absolute error in the layer, logarithmic: medians over the runs."""
    truth = truth_of(scene.task)
    if truth is None:
        return []
    x = np.concatenate([np.linspace(FROM, NEAR, 41)[:-1], np.linspace(NEAR, 1.0, FINE - 40)])
    points = {"x": x, "y": np.ones(1)}
    exact = _exact(truth, points)
    found = {}
    for arm in scene.arms:
        own = [
            u for run in scene.view.runs(arm).values() if (u := _predicted(scene.runs.network(run), points)) is not None
        ]
        if own:
            found[arm] = np.median(own, axis=0), np.median([np.abs(u - exact) for u in own], axis=0)
    if not found:
        return []
    groups, panels = in_groups(list(found), scene.leading), []
    for place, group in enumerate(groups):
        more = f" ({place + 1} of {len(groups)})" if len(groups) > 1 else ""
        own = {arm: found[arm] for arm in group}
        worst = {arm: number(float(error[x >= NEAR].max()), 2) for arm, (_, error) in own.items()}
        shown = {arm: u for arm, (u, _) in own.items()}, {arm: e for arm, (_, e) in own.items()}
        told = f"The field from x = {FROM:g}, with the exact one (grey)."
        panels.append(
            Panel(f"Profile at y = 1{more}", told, partial(_profile, scene, x, shown[0], exact), PROFILE_SIZE)
        )
        told = f"Largest for x ≥ {NEAR:g}: {listed(worst)}."
        panels.append(Panel(f"|error| at y = 1{more}", told, partial(_profile_error, scene, x, shown[1]), PROFILE_SIZE))
    words = "Along y = 1, where the layer is strongest: medians over the runs at every point."
    return scene.figure("profiles", "Outflow profiles", words, panels)


def _profile(scene: Scene, x: np.ndarray, curves: Mapping[str, np.ndarray], exact: np.ndarray, ax: Axes) -> None:
    from matplotlib.lines import Line2D

    wide: dict[str, Any] = {"color": INK, "linewidth": 5.0, "alpha": 0.22}
    ax.plot(x, exact, **wide)
    for arm, curve in curves.items():
        (line,) = ax.plot(x, curve, **scene.styles[arm].line)
        mark(line, scene.styles[arm].number, arm)
    span = float(np.ptp(exact))
    ax.set_ylim(float(exact.min()) - 0.25 * span, float(exact.max()) + 0.25 * span)
    ax.set_xlim(FROM, 1.0)
    ax.locator_params(axis="x", nbins=5)
    ax.set_xlabel("x")
    ax.set_ylabel("u at y = 1")
    arm_legend(ax, _ordered(scene, curves), kind="line", extra=[Line2D([], [], **wide, label="exact")])


def _profile_error(scene: Scene, x: np.ndarray, curves: Mapping[str, np.ndarray], ax: Axes) -> None:
    near = x >= NEAR - 1e-12
    for arm, curve in curves.items():
        (line,) = ax.plot(x[near], np.where(curve[near] > 0, curve[near], np.nan), **scene.styles[arm].line)
        mark(line, scene.styles[arm].number, f"{arm}: at most {number(float(curve[near].max()), 3)}")
    seen = positive(v for curve in curves.values() for v in curve[near])
    if len(seen):
        ax.set_ylim(max(float(np.percentile(seen, 1)) / 1.5, float(seen.max()) * 1e-5), float(seen.max()) * 1.5)
    logarithmic(ax.yaxis)
    ax.set_xlim(NEAR, 1.0)
    ax.set_xlabel("x")
    ax.set_ylabel("|error| at y = 1")
    arm_legend(ax, _ordered(scene, curves), kind="line")


def _ordered(scene: Scene, arms: Mapping[str, Any] | Sequence[str]) -> list[Any]:
    return sorted((scene.styles[arm] for arm in arms), key=lambda style: style.number)
