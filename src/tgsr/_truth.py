"""The truth of a benchmark, kept apart from the problem: nothing that trains, stops or selects can reach it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tgsr._errors import InputError
from tgsr._result import Result

GRID = 50  # points per axis of the evaluation grid, time included


@dataclass(frozen=True, eq=False)
class Truth:
    """True values of unknowns, and a function of the coordinates that gives the true field, or a dict of fields."""

    unknowns: Mapping[str, float] = field(default_factory=dict)
    field: Callable[..., Any] | None = None
    up_to_constant: tuple[str, ...] = ()  # fields compared after removing their mean, as a pressure is


@dataclass(frozen=True)
class Errors:
    """How far a result is from the truth: percent for parameters (each and mean) and for each field (relative L2)."""

    parameters: dict[str, float]
    parameter: float
    fields: dict[str, float]

    def __str__(self) -> str:
        each = ", ".join(f"{name} {value:.3g} %" for name, value in self.parameters.items())
        fields = ", ".join(f"{name} {value:.3g} %" for name, value in self.fields.items())
        parameter = f"parameter error {self.parameter:.3g} % ({each}); " if self.parameters else ""
        return f"{parameter}field error {fields or 'not known'}"


def evaluate(result: Result, truth: Truth, *, ranges: Mapping[str, tuple[float, float]] | None = None) -> Errors:
    """Errors of a result against the truth: the only function that reads one. Not finite counts as infinite."""
    parameters = {}
    for name, value in truth.unknowns.items():
        if name not in result.unknowns:
            raise InputError(f"the truth names {name!r}, which is no unknown of the result", field=name)
        error = 100.0 * abs(result.unknowns[name].value - value) / (abs(value) or 1.0)
        parameters[name] = error if np.isfinite(error) else np.inf
    fields = {} if truth.field is None else _field_errors(result, truth, truth.field, ranges)
    mean = float(np.mean(list(parameters.values()))) if parameters else float("nan")
    return Errors(parameters, mean, fields)


def _field_errors(
    result: Result, stated: Truth, truth: Callable[..., Any], ranges: Mapping[str, tuple[float, float]] | None
) -> dict[str, float]:
    boxes = ranges or box_of(result)
    axes = [np.linspace(*boxes[name], GRID) for name in result.network.coordinates]
    mesh = np.meshgrid(*axes, indexing="ij")
    coordinates = dict(zip(result.network.coordinates, (m.reshape(-1) for m in mesh), strict=True))
    asked = inspect.signature(truth).parameters
    exact = truth(**{name: value for name, value in coordinates.items() if name in asked})
    exact = exact if isinstance(exact, Mapping) else {result.network.fields[0]: exact}
    ours = result.predict(**coordinates)
    out = {}
    for name, values in exact.items():
        values = np.broadcast_to(np.asarray(values, dtype=float), ours[name].shape)
        if name in stated.up_to_constant:
            values, ours[name] = values - values.mean(), ours[name] - ours[name].mean()
        error = 100.0 * float(np.linalg.norm(ours[name] - values) / (np.linalg.norm(values) or 1.0))
        out[name] = error if np.isfinite(error) else float("inf")
    return out


def box_of(result: Result) -> dict[str, tuple[float, float]]:
    """The coordinate box of a result's problem."""
    if result.inputs is None:
        raise InputError("the box of this result is not known", field="ranges", remedy="Give ranges={...}")
    boxes = result.inputs[0]["problem"]["coordinates"]
    return {name: (float(low), float(high)) for name, (low, high) in boxes.items()}
