"""The examples: their data solve their equations (fast), and their truths are recovered (slow)."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import tgsr
from tgsr.problem._fields import FieldView

FOLDER = Path(__file__).parents[2] / "examples"
# name: (the function that gives the fields, step of the difference stencil, residual over its largest term)
SOLUTIONS = {
    "burgers": ("exact", 0.004, 1e-5),
    "kdv": ("waves", 0.015, 1e-4),
    "lorenz": ("orbit", 0.004, 1e-6),
    "flow": ("kovasznay", 0.02, 1e-8),
    "conductivity": ("bar", 0.01, 1e-4),
}
EXAMPLES = [*SOLUTIONS, "rod"]


@functools.cache
def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fields_of(module: ModuleType, name: str, **coordinates: np.ndarray) -> dict[str, np.ndarray]:
    """The generating solution as a dict of fields, unknown fields included."""
    answer = getattr(module, SOLUTIONS[name][0])(**coordinates)
    found = answer if isinstance(answer, dict) else {module.problem.fields[0]: answer}
    return found | ({"k": module.true_k(coordinates["x"])} if name == "conductivity" else {})


STENCIL = np.arange(-4, 5)


def derivative(module: ModuleType, name: str, field: str, index: tuple[int, ...], points: np.ndarray) -> np.ndarray:
    """A derivative of the generating solution by nine-point central differences, one coordinate after another."""
    axes, step = module.problem.domain.names, SOLUTIONS[name][1]
    shifts, weights = np.zeros((1, len(axes))), np.ones(1)
    for axis in sorted(set(index)):
        order = index.count(axis)
        powers = np.vander(STENCIL, increasing=True).T.astype(float)
        w = np.linalg.solve(powers, math.factorial(order) * (np.arange(9) == order)) / step**order
        unit = step * np.eye(len(axes))[axis]
        shifts = (shifts[:, None] + STENCIL[None, :, None] * unit).reshape(-1, len(axes))
        weights = (weights[:, None] * w).reshape(-1)
    at = points[:, None] + shifts
    columns = {axis: at[..., i].reshape(-1) for i, axis in enumerate(axes)}
    return fields_of(module, name, **columns)[field].reshape(len(points), -1) @ weights


def worst_residual(problem: tgsr.Problem, known: dict[str, Any]) -> float:
    """The largest absolute row of any equation when its arguments are these."""
    rows = []
    for residual in problem.residuals:
        answer = residual(**{argument: known[argument] for argument in inspect.signature(residual).parameters})
        rows += answer if isinstance(answer, tuple) else (answer,)
    return max(float(np.max(np.abs(row))) for row in rows)


def view_of_constant(name: str, axes: tuple[str, ...], value: float) -> FieldView:
    """A field that is the same everywhere."""
    return FieldView(name, axes, lambda index: np.asarray(0.0 if index else value))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_generating_solution_meets_the_equations_and_conditions(name: str) -> None:
    module = example(name)
    problem, bound = module.problem, SOLUTIONS[name][2]
    axes, low, high = problem.domain.names, problem.domain.low, problem.domain.high
    inside = np.random.default_rng(5).uniform(0.1, 0.9, (12, len(axes)))
    points = low + (high - low) * inside
    largest: list[float] = []

    def view(field: str) -> FieldView:
        @functools.cache
        def get(index: tuple[int, ...]) -> np.ndarray:
            values = derivative(module, name, field, index, points)
            largest.append(float(np.max(np.abs(values))) if index else 0.0)
            return values

        return FieldView(field, axes, get)  # type: ignore[arg-type]

    known = {field: view(field) for field in problem.all_fields} | dict(module.truth.unknowns)
    known |= {axis: points[:, i] for i, axis in enumerate(axes)}
    assert worst_residual(problem, known) < bound * max(largest)
    wrong = known | {u.name: u.guess for u in problem.unknowns}
    wrong |= {u.name: view_of_constant(u.name, axes, u.guess) for u in problem.unknown_fields}
    assert worst_residual(problem, wrong) > 100.0 * bound * max(largest)  # so the check above can fail
    start = {
        axis: np.full(9, low[i]) if axis == "t" else np.linspace(low[i], high[i], 9) for i, axis in enumerate(axes)
    }
    for condition in problem.conditions:
        if isinstance(condition, tgsr.Initial):
            imposed = condition.value(start["x"])  # type: ignore[operator]
            assert fields_of(module, name, **start)[condition.field] == pytest.approx(np.asarray(imposed), abs=1e-5)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_readings_scatter_about_the_solution_as_stated(name: str) -> None:
    module = example(name)
    (data,) = module.problem.data
    exact = fields_of(module, name, **data.points)
    for field, values in data.values.items():
        z = (values - exact[field]) / data.noise[field].scale
        assert np.mean(z**2) == pytest.approx(1.0, abs=4.0 * math.sqrt(2.0 / len(z)))


def rod_series(x: np.ndarray, t: np.ndarray, kappa: float, h: float, modes: int = 60) -> np.ndarray:
    """The rod's temperature as a series of its own modes sin(w x), where h sin w + kappa w cos w = 0."""
    total = np.full(np.shape(x), 20.0)
    fine, weights = np.polynomial.legendre.leggauss(400)
    fine, weights = (fine + 1.0) / 2.0, weights / 2.0
    for n in range(modes):
        w = scipy.optimize.brentq(lambda w: h * np.sin(w) + kappa * w * np.cos(w), (n + 0.5) * np.pi, (n + 1.0) * np.pi)
        mode = np.sin(w * fine)
        share = weights @ (60.0 * np.sin(np.pi * fine) * mode) / (weights @ mode**2)
        total += share * np.sin(w * x) * np.exp(-kappa * w**2 * t)
    return total


def test_the_rods_file_is_what_its_generator_makes_and_solves_the_heat_equation(tmp_path: Path) -> None:
    maker = example("make_rod")
    maker.write(tmp_path / "rod.csv")
    made, kept = (np.loadtxt(f / "rod.csv", delimiter=",", skiprows=1) for f in (tmp_path, FOLDER))
    assert made == pytest.approx(kept, abs=0.002)
    x, t, T = kept.T
    series = rod_series(x, t, maker.KAPPA, maker.H)
    late = t > 0.01  # before that, the series has not converged at the incompatible corner
    assert maker.temperature(x[late], t[late]) == pytest.approx(series[late], abs=0.005)
    assert np.std((T - series)[late]) == pytest.approx(maker.NOISE, rel=0.1)
    (data,) = example("rod").problem.data
    assert np.array_equal(data.values["T"], T)


def truth_of(name: str) -> dict[str, float]:
    if name == "rod":
        return {"kappa": example("make_rod").KAPPA, "h": example("make_rod").H}
    return dict(example(name).truth.unknowns)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_truth_is_recovered(name: str, seed: int) -> None:
    module = example(name)
    result = tgsr.solve(module.problem, seed=seed)
    assert result.outcome.ok, result
    for unknown, true in truth_of(name).items():
        estimate = result.unknowns[unknown]
        assert abs(estimate.value - true) < 3.0 * estimate.se, result
        assert estimate.value == pytest.approx(true, rel=0.02), result
    if name != "rod":
        errors = tgsr.evaluate(result, module.truth)
        assert all(error < 2.0 for error in errors.fields.values()), errors
