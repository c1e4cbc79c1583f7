"""Ranges of unknowns, and what each condition asks of a field that meets it exactly or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tgsr._errors import InputError
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss._rows import Place
from tgsr.loss._terms import build_terms
from tgsr.problem import Condition, Dirichlet, Initial, Neumann, Periodic, Points, Problem, Robin, Unknown
from tgsr.problem._unknowns import Transform

UNKNOWNS = {
    "free": Unknown("k", -3.0), "zero": Unknown("k", 0.0), "sized": Unknown("k", 1.0, scale=50.0),
    "positive": Unknown("k", 1e-9, positive=True), "far": Unknown("k", 1e9, positive=True, scale=1.0),
    "log": Unknown("k", 2e-11, log=True), "bounds": Unknown("k", 1.0, bounds=(0, 50)),
    "edge": Unknown("k", 1e-9, bounds=(0, 50)), "top": Unknown("k", 0.3 - 1e-9, bounds=(0.1, 0.3)),
    "both": Unknown("k", 3e-8, bounds=(1e-12, 1e-3), log=True), "wide": Unknown("k", 7.0, bounds=(-1e3, 1e3)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("kind", UNKNOWNS)
def test_transforms(kind: str, scaled: bool) -> None:
    unknown, transform = UNKNOWNS[kind], Transform(UNKNOWNS[kind], scaled)
    start = transform.start()
    size = max(map(abs, unknown.bounds)) if kind == "wide" and unknown.bounds else abs(unknown.guess)
    assert abs(float(transform.value(start)) - unknown.guess) <= 1e-14 * size
    assert float(transform.value(jnp.float64(start), jnp)) == pytest.approx(float(transform.value(start)), rel=1e-14)
    for raw in (start, start + 0.7, start - 1.3):
        value, slope = float(transform.value(raw)), transform.slope(raw)
        step = 1e-5 * max(1.0, abs(raw))
        assert slope == pytest.approx(
            float(transform.value(raw + step) - transform.value(raw - step)) / (2 * step), rel=1e-6
        )
        assert slope == pytest.approx(float(jax.grad(lambda r: transform.value(r, jnp))(raw)), rel=1e-12)
        assert slope > 0
        if unknown.bounds is None or unknown.bounds[0] < value < unknown.bounds[1]:
            again = transform.value(transform.raw(value))
            assert abs(float(again) - value) <= 1e-12 * max(abs(value), size)


@pytest.mark.parametrize("kind", ["positive", "bounds", "edge", "top", "both", "wide"])
def test_no_raw_number_leaves_the_range(kind: str) -> None:
    unknown, transform = UNKNOWNS[kind], Transform(UNKNOWNS[kind])
    low, high = unknown.bounds or (0.0, math.inf)
    for raw in (-1e6, -800.0, -700.0, -40.0, 40.0, 700.0, 800.0, 1e6):
        value, slope = jax.value_and_grad(lambda r: transform.value(r, jnp))(raw)
        assert low <= float(value) <= high
        assert low <= float(transform.value(raw)) <= high
        assert math.isfinite(float(slope))
        assert math.isfinite(transform.slope(raw))


@pytest.mark.parametrize(("kind", "value"), [("bounds", 50.0), ("bounds", -1.0), ("positive", 0.0), ("log", -1.0)])
def test_a_value_outside_the_range_has_no_raw_number(kind: str, value: float) -> None:
    with pytest.raises(InputError, match="outside the range"):
        Transform(UNKNOWNS[kind]).raw(value)


@given(low=st.floats(-1e12, 1e12), width=st.floats(1e-6, 1e12), share=st.floats(1e-9, 1 - 1e-9))
def test_bounds_round_trip(low: float, width: float, share: float) -> None:
    high, guess = low + width, low + share * width
    assume(low < guess < high)
    transform = Transform(Unknown("k", guess, bounds=(low, high)))
    assert abs(float(transform.value(transform.start())) - guess) <= 1e-14 * max(abs(low), abs(high))


def rows(condition: Any, k: float = 2.0) -> dict[str, np.ndarray]:
    """Rows of a condition for u = 3x + x t + 5 t^2 + y^3 at its own points."""
    problem = Problem(
        coordinates={"x": (0.0, 2.0), "y": (-1.0, 1.0), "t": (0.0, 1.0)}, fields=["u"],
        unknowns=[Unknown("k", 1.0)], residuals=[lambda u, k: u.t - k], conditions=[condition],
    )  # fmt: skip

    def getter(points: jax.Array) -> Callable[[str, tuple[int, ...]], jax.Array]:
        x, y, t = points.T
        known = {
            (): 3 * x + x * t + 5 * t**2 + y**3, (0,): 3 + t, (1,): 3 * y**2, (2,): x + 10 * t, (2, 2): 10 + 0 * t,
            (0, 0): 0 * x, (1, 1): 6 * y,
        }  # fmt: skip
        return lambda name, index: known[index]

    found = {}
    for term in build_terms(problem, Points(4, 12, 4))[1:]:
        points = [jnp.asarray(p) for p in term.draw(stream(0, "points"))]
        place = Place([getter(p) for p in points], points, {"k": jnp.float64(k)}, {}, jnp.ones(1))
        found |= {part.name: np.asarray(part.row(place)) for part in term.parts}
    return found


MET = {
    "initial": Initial("u", lambda x, y: 3 * x + y**3),
    "slope at the start": Initial("u", lambda x: x, order=1),
    "second derivative at the start": Initial("u", 10.0, order=2),
    "values": Dirichlet("u", at=["x=0", "x=high", "y=0.5"], value=lambda x, y, t: 3 * x + x * t + 5 * t**2 + y**3),
    "an unknown": Dirichlet("u", at={"x": [2.0], "y": 0.0, "t": 0.0}, value=lambda k: 3 * k),
    "low end": Neumann("u", at="x=low", value=lambda t: -3 - t),
    "high end": Neumann("u", at="x=2", value=lambda t: 3 + t),
    "faces of two coordinates": Neumann("u", at=["y=-1", "y=high", "t=high"], value=lambda x, y, t: jnp.where(
        (y == -1) & (t < 1), -3.0, jnp.where(t < 1, 3.0, x + 10.0))),
    "Robin": Robin("u", at="t=1", a=lambda k: k, b=3.0, value=lambda x, y, k: k * (4 * x + 5 + y**3) + 3 * (x + 10)),
    "own": Condition(lambda u, x, t, k: (u.t - x - 10 * t, k * u.y * 0.0), at=["t=0.5"], name="periodic of mine"),
    "periodic": Periodic("y", order=1, name="ends"),
}  # fmt: skip


@pytest.mark.parametrize("name", MET)
def test_a_condition_that_is_met(name: str) -> None:
    found = rows(MET[name])
    if name == "periodic":
        np.testing.assert_allclose(found["ends"], -2.0, rtol=1e-14)  # y^3 at -1 less y^3 at 1
        return
    assert found
    for part, row in found.items():
        np.testing.assert_allclose(row, 0.0, atol=1e-13, err_msg=part)


def test_points_are_shared_among_faces_and_parts_are_named_by_them() -> None:
    found = rows(Dirichlet("u", at=["x=0", "x=2", "t=1"], name="wall"))
    assert {name: len(row) for name, row in found.items()} == {"wall x=0": 4, "wall x=2": 4, "wall t=1": 4}
    assert list(rows(MET["own"])) == ["periodic of mine t=0.5[0]", "periodic of mine t=0.5[1]"]


def test_a_condition_that_is_not_met_says_by_how_much() -> None:
    np.testing.assert_allclose(
        rows(Dirichlet("u", at={"x": [1.0], "y": [0.0], "t": [1.0]}, value=1.0))["dirichlet u"], 8.0
    )
