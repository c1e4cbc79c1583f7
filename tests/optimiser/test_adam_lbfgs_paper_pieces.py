"""The line search keeps its promises, and the compact direction is that of the two-loop recursion."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._jax import computing
from tgsr.optimiser._lbfgs import empty_memory, quasi_newton, remember
from tgsr.optimiser._linesearch import EVALUATIONS, Point, Search, cubic_minimum, strong_wolfe, wolfe
from tgsr.optimiser._paper import paper_rates


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


LINES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "parabola": lambda t: (t - 3.0) ** 2,
    "far": lambda t: (t - 3e4) ** 2,
    "near": lambda t: (t - 1e-6) ** 2,
    "quartic": lambda t: (t - 2.0) ** 4 - t,
    "waves": lambda t: -jnp.sin(3.0 * t) - 0.2 * t + 0.02 * t**2,
    "kink": lambda t: jnp.sqrt(1e-8 + (t - 0.7) ** 2),
    "rational": lambda t: -t / (t**2 + 2.0),  # Moré & Thuente 1994, function 1
    "steep": lambda t: (t + 0.004) ** 5 - 2.0 * (t + 0.004) ** 4,  # function 2
    "barrier": lambda t: -2.0 * t - jnp.log(1.0 - t),  # not a number beyond 1
    "cliff": lambda t: jnp.where(t > 0.6, jnp.inf, -t + t**2 / 2.0),
    "late overflow": lambda t: jnp.exp(jnp.exp(t)) - 20.0 * t,
    "endless": lambda t: -t,
    "nothing": lambda t: jnp.where(t > 0, jnp.nan, -t),
}


@jax.jit
def search_line(number: jax.Array, first: jax.Array) -> tuple[Point, Search]:
    def line(t: jax.Array) -> jax.Array:
        return jax.lax.switch(number, list(LINES.values()), t)

    def evaluate(t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        return *jax.value_and_grad(line)(t), 2.0 * t

    start = Point(jnp.zeros(()), *evaluate(jnp.zeros(()))[:2])
    return start, strong_wolfe(evaluate, start, jnp.zeros(()), first)


@pytest.mark.parametrize("name", list(LINES)[:-2])
def test_accepted_steps_meet_both_strong_wolfe_conditions(name: str) -> None:
    line, number = LINES[name], list(LINES).index(name)
    for first in (1e-3, 0.1, 1.0, 10.0):
        start, found = jax.tree.map(np.asarray, search_line(number, first))
        assert found.accepted, first
        assert all(wolfe(start, found.low)), first
        t = found.low.step
        assert line(t) <= start.value + 1e-4 * t * start.slope
        assert abs(found.low.slope) <= 0.9 * abs(start.slope)
        difference = (line(t + 1e-6) - line(t - 1e-6)) / 2e-6
        np.testing.assert_allclose(found.low.slope, difference, rtol=1e-3, atol=1e-4)
        assert found.extra == 2.0 * t  # what belongs to the accepted step comes with it
        assert 1 <= found.evaluations <= 14, first


def test_a_search_without_an_acceptable_step_returns_the_lowest_point() -> None:
    _, endless = search_line(list(LINES).index("endless"), 1.0)  # no step is flat enough
    assert not endless.accepted
    assert endless.evaluations == EVALUATIONS
    assert endless.low.value == -endless.low.step < 0
    _, nothing = search_line(list(LINES).index("nothing"), 1.0)
    assert not nothing.accepted
    assert nothing.low.step == 0
    assert nothing.extra == 0


def test_the_interpolation_finds_the_minimum_of_a_cubic() -> None:
    def cubic(t: float) -> float:
        return t**3 / 3 - 2.5 * t**2 + 4 * t  # minimum at 4

    points = [Point(*map(jnp.asarray, (t, cubic(t), t**2 - 5 * t + 4))) for t in (2.0, 7.0)]
    np.testing.assert_allclose(cubic_minimum(*points), 4.0, rtol=1e-14)
    np.testing.assert_allclose(cubic_minimum(*points[::-1]), 4.0, rtol=1e-14)


def two_loop(pairs: list[tuple[np.ndarray, np.ndarray]], gradient: np.ndarray) -> np.ndarray:
    """Nocedal & Wright, algorithm 7.4, negated."""
    q, shares = gradient.copy(), []
    for s, y in reversed(pairs):
        shares.append(s @ q / (s @ y))
        q -= shares[-1] * y
    if pairs:
        s, y = pairs[-1]
        q *= s @ y / (y @ y)
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        q += s * (share - y @ q / (s @ y))
    return -q


def test_the_compact_direction_is_that_of_the_two_loop_recursion() -> None:
    rng, history, size = np.random.default_rng(0), 7, 40
    hessian = np.diag(np.geomspace(0.1, 100.0, size))
    memory, kept = empty_memory(history, size), []
    direct, store = jax.jit(quasi_newton), jax.jit(remember)
    for number in range(25):  # empty, filling, full, and turned over several times
        gradient = rng.normal(size=size)
        direction, memory = direct(memory, jnp.asarray(gradient))
        wanted = two_loop(kept[-history:], gradient)
        assert np.linalg.norm(direction - wanted) <= 1e-10 * np.linalg.norm(wanted), number
        again, same = direct(memory, jnp.asarray(gradient))
        assert np.asarray(again).tobytes() == np.asarray(direction).tobytes()
        assert all(np.array_equal(a, b) for a, b in zip(memory, same, strict=True))
        s = rng.normal(size=size) * 10.0 ** rng.uniform(-4, 0)
        y, keep = hessian @ s, number % 5 != 3
        memory = store(memory, jnp.asarray(s), jnp.asarray(y), jnp.asarray(keep))
        if keep:
            kept.append((s, y))
        if number == 17:  # forgotten: as good as new
            memory, kept = memory._replace(kept=jnp.zeros_like(memory.kept)), []


def test_exact_line_searches_end_a_quadratic_in_as_many_steps_as_it_has_dimensions() -> None:
    rng, size = np.random.default_rng(1), 9
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    hessian = basis * np.geomspace(1.0, 300.0, size) @ basis.T
    x, memory = rng.normal(size=size), empty_memory(size + 2, size)
    direct, store = jax.jit(quasi_newton), jax.jit(remember)
    start = np.linalg.norm(hessian @ x)
    for _ in range(size + 2):
        gradient = hessian @ x
        direction, memory = direct(memory, jnp.asarray(gradient))
        direction = np.asarray(direction)
        step = -(gradient @ direction) / (direction @ hessian @ direction) * direction
        x = x + step
        memory = store(memory, jnp.asarray(step), jnp.asarray(hessian @ step), jnp.asarray(True))
        if np.linalg.norm(hessian @ x) <= 1e-9 * start:
            break
    assert np.linalg.norm(hessian @ x) <= 1e-9 * start


def test_rates_fall_along_a_cosine() -> None:
    rates = paper_rates(300)
    assert rates.shape == (300,)
    assert rates[0] == 0.1
    np.testing.assert_allclose(rates[150], 0.0505, rtol=1e-14)
    assert np.all(np.diff(rates) < 0)
    assert rates[-1] > 0.001
    np.testing.assert_allclose(paper_rates(2, 1.0, 0.0), [1.0, 0.5], rtol=1e-15)
