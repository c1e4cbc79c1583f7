"""Variable projection: what counts as affine, the projected step against dense algebra, the best unknowns, ranges."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tgsr
import tgsr.problem as tp
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective, affine_unknowns, build_objective, weighted_jacobian
from tgsr.network._propagate import MLP
from tgsr.optimiser import RUNNING, levenberg, row_count
from tgsr.optimiser._elimination import best_change, projected, settled
from tgsr.optimiser._linearised import factorised, linearise, solve_step
from tgsr.problem._unknowns import Transform

X = np.linspace(0.0, 1.0, 11)
A, B = tp.Unknown("a", guess=1.5, positive=True), tp.Unknown("b", guess=0.4, bounds=(-1.0, 2.0))
LINEAR = lambda u, a, b: u.x + a * u - b  # noqa: E731


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def problem(residual: Callable[..., Any], noise: Any = 0.05, value: Any = 1.0, unknowns: Any = (A, B)) -> tp.Problem:
    return tp.Problem(
        coordinates={"x": (0.0, 1.0)},
        fields=["u"],
        unknowns=list(unknowns),
        residuals=[residual],
        conditions=[tp.Dirichlet("u", at="x=0", value=value)],
        data=[tp.Data({"x": X}, {"u": np.exp(-2.0 * X)}, noise=noise)],
    )


@functools.cache
def made(width: int = 4) -> tuple[Objective, Batch, jax.Array]:
    objective = build_objective(problem(LINEAR), MLP((width,)), tp.Points(interior=14), blocks=2)
    return objective, objective.draw(0), objective.surrogate.initial(stream(0, "init"))


def controls_of(objective: Objective, frozen: Any = (), pull: float = 0.0) -> Controls:
    size, rng = objective.surrogate.size, np.random.default_rng(1)
    mask = np.ones(size)
    mask[list(frozen)] = 0.0
    pulls = pull * rng.uniform(0.5, 2.0, size)
    pulls[-2:] = 0.0
    weights = jnp.asarray([40.0, 7.0, 1.0])
    return Controls(weights, jnp.full(1, 0.05), jnp.asarray(mask), jnp.zeros(size), jnp.asarray(pulls))


CASES: dict[str, tuple[Callable[..., Any], Any, Any, tuple[bool, bool]]] = {
    "both": (LINEAR, 0.05, 1.0, (True, True)),
    "a product": (lambda u, a, b: a * b * u.x + u, 0.05, 1.0, (True, False)),
    "a square": (lambda u, a, b: a**2 * u.x + b * u, 0.05, 1.0, (False, True)),
    "a quotient": (lambda u, a, b: u.xx / a + b, 0.05, 1.0, (False, True)),
    "times a function of the field": (lambda u, a, b: a * jnp.sin(u.value) * u.x + b * u**3, 0.05, 1.0, (True, True)),
    "a step": (lambda u, a, b: u.x + jnp.where(a > 1.0, 1.0, 2.0) + b, 0.05, 1.0, (False, True)),
    "behind a stop": (lambda u, a, b: u.x + jax.lax.stop_gradient(a) * u + b, 0.05, 1.0, (False, True)),
    "in a condition": (LINEAR, 0.05, lambda b: jnp.exp(-b), (True, False)),
    "not in the equation": (lambda u, a: u.x + a * u, 0.05, lambda b: b, (True, True)),
    "wild readings, far from it": (LINEAR, tgsr.StudentT(0.1), 1.0, (True, True)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_affine_is_found_and_what_is_not_is_named(name: str) -> None:
    residual, noise, value, wanted = CASES[name]
    found = affine_unknowns(build_objective(problem(residual, noise, value), MLP((3,)), tp.Points(interior=5)))
    assert found.eliminated == wanted
    assert [u for u, _ in found.against] == [u for u, w in zip("ab", wanted, strict=True) if not w]
    assert all(f"{u} (" in found.sentence for u, _ in found.against)
    assert bool(found.sentence) == (not all(wanted))


def dense(objective: Objective, batch: Batch, theta: jax.Array, controls: Controls) -> tuple[np.ndarray, np.ndarray]:
    blocks = [jax.tree.map(lambda a, i=i: a[i], batch) for i in range(objective.blocks)]
    one = fast(functools.partial(weighted_jacobian, objective))
    seen = [one(theta, block, controls) for block in blocks]
    rows, jacobian = zip(*seen, strict=True)
    return np.concatenate(rows), np.concatenate(jacobian)


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


@pytest.mark.parametrize(("width", "pull"), [(4, 0.3), (50, 0.0)])  # fewer weights than rows; several strips of them
def test_the_projected_step_is_the_joint_one_without_damping_of_the_unknowns(width: int, pull: float) -> None:
    objective, batch, theta = made(width)
    controls = controls_of(objective, [1, 5], pull)
    rows, jacobian = dense(objective, batch, theta, controls)
    damping, strength = 0.02, np.asarray(controls.pull * controls.mask)
    diagonal = np.full(theta.size, damping)
    diagonal[-2:] = 0.0
    gradient = jacobian.T @ rows + strength * np.asarray(theta)
    joint = -np.linalg.solve(jacobian.T @ jacobian + np.diag(diagonal + strength), gradient)
    chosen = jnp.ones(2)
    for space in (False, True):

        def one_step(c: Controls, space: bool = space) -> jax.Array:
            linear = projected(linearise(objective, theta, batch, c, space), chosen)
            return solve_step(linear, factorised(linear, jnp.asarray(damping), c), theta, c)

        step = fast(one_step)(controls)
        np.testing.assert_allclose(step[:-2], joint[:-2], rtol=1e-6, atol=1e-7 * np.abs(joint[:-2]).max())
        assert not np.any(step[-2:])
        assert not np.any(step[jnp.asarray([1, 5])])


def test_settled_unknowns_are_the_best_ones_and_the_loss_is_theirs() -> None:
    objective, batch, theta = made()
    controls = controls_of(objective, pull=0.1)
    settle, closure = fast(functools.partial(settled, objective)), fast(objective.closure)
    new, loss, parts = settle(theta, batch, controls, jnp.ones(2))
    np.testing.assert_array_equal(new[:-2], theta[:-2])
    wanted, gradient = closure(new, batch, controls)
    np.testing.assert_allclose(loss, wanted[0], rtol=1e-10)
    np.testing.assert_allclose(parts, wanted[1], rtol=1e-9, atol=1e-12)
    values = objective.surrogate.unknowns(new)
    ends = {"a": (0.1 * 1.5, np.inf), "b": (-1 + 0.1 * 1.4, 2 - 0.1 * 1.6)}
    before = closure(theta, batch, controls)[1]
    for number, name in enumerate("ab"):
        at_an_end = np.isclose(float(values[name]), ends[name], rtol=1e-9).any()
        assert at_an_end or abs(gradient[-2 + number]) < 1e-8 * abs(before[-2 + number])
    same, loss, _ = settle(theta, batch, controls, jnp.zeros(2))
    assert np.asarray(same).tobytes() == np.asarray(theta).tobytes()
    np.testing.assert_allclose(loss, closure(theta, batch, controls)[0][0], rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_change_in_a_box_meets_the_conditions_of_optimality(seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3)) * 10.0 ** rng.uniform(-3, 3, (3, 1))
    gram, gradient = root @ root.T, root @ rng.normal(size=3)
    free = -np.linalg.solve(gram, gradient)
    low, high = -np.abs(free) * rng.uniform(0.3, 3, 3), np.abs(free) * rng.uniform(0.3, 3, 3)
    d = np.asarray(best_change(*map(jnp.asarray, (gram, gradient, low, high))))
    assert np.all((d >= low) & (d <= high))
    slope, scale = gram @ d + gradient, np.abs(gram) @ np.abs(free) + np.abs(gradient)
    at_low, at_high = np.isclose(d, low, rtol=1e-12), np.isclose(d, high, rtol=1e-12)
    assert np.all(np.where(at_low, slope >= 0, np.where(at_high, slope <= 0, np.abs(slope) < 1e-3 * scale)))


def test_an_unknown_without_influence_stays() -> None:
    change = best_change(jnp.diag(jnp.asarray([4.0, 0.0])), jnp.asarray([2.0, 0.0]), -jnp.ones(2), jnp.ones(2))
    np.testing.assert_allclose(change, [-0.5, 0.0], rtol=1e-11)


def test_steps_with_elimination_go_down_and_keep_frozen_bits_and_ranges() -> None:
    objective, batch, theta = made()
    controls = controls_of(objective, [2])
    own = levenberg(objective, row_count(objective, batch), 12, 0.0, (True, True))
    state, trace = own.epoch(own.start(theta, batch, controls), batch, controls, jnp.full(1, 3.0))
    assert int(trace.status) == RUNNING
    assert np.all(np.diff(np.asarray(trace.loss)) <= 0)
    raw = np.asarray(trace.raw)
    assert np.all(raw[:3] == np.asarray(theta[-2:]))  # held
    assert np.all(raw[3] != raw[2])
    values = [t.value(raw[:, i]) for i, t in enumerate(objective.surrogate.transforms)]
    assert np.all(values[0] > 0)
    assert np.all((values[1] > -1) & (values[1] < 2))
    assert np.asarray(own.theta(state))[2].tobytes() == np.asarray(theta)[2].tobytes()
    loss, _ = jax.jit(objective.value)(own.theta(state), batch, controls)
    np.testing.assert_allclose(trace.loss[-1], loss, rtol=1e-9)


@pytest.mark.parametrize(
    "unknown",
    [A, B, tp.Unknown("c", 2.0, log=True), tp.Unknown("k", 3.0, bounds=(1e-3, 50.0), log=True), tp.Unknown("m", 0.0)],
)
@pytest.mark.parametrize("scaled", [True, False])
def test_the_inverse_of_a_transform(unknown: tp.Unknown, scaled: bool) -> None:
    transform = Transform(unknown, scaled)
    raw = np.linspace(-3.0, 4.0, 9)
    np.testing.assert_allclose(transform.inverse(transform.value(raw)), raw, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.inverse(np.asarray(unknown.guess)), transform.start(), rtol=1e-12, atol=1e-15)


def test_a_result_names_what_could_not_be_eliminated_and_old_specs_keep_their_names() -> None:
    assert "eliminate" not in str(tgsr.Training(tgsr.LevenbergMarquardt()).spec())
    asked = tgsr.Training(tgsr.LevenbergMarquardt(1, 2, eliminate=True), tgsr.Points(interior=5))
    assert "eliminate" in str(asked.spec())
    result = tgsr.solve(problem(CASES["a square"][0]), network=tgsr.MLP((3,)), training=asked)
    assert any("a (" in warning and "not affine" in warning for warning in result.warnings)
    with pytest.raises(tgsr.InputError, match="True or False"):
        tgsr.LevenbergMarquardt(eliminate=1)  # type: ignore[arg-type]
