"""Levenberg-Marquardt: exact where the problem is linear, the same step in both spaces, codes, frozen columns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tgsr.problem as tp
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective, build_objective, weighted_jacobian
from tgsr.network._propagate import MLP
from tgsr.optimiser import NON_FINITE, RUNNING, STUCK, levenberg, row_count
from tgsr.optimiser._acceleration import accelerated
from tgsr.optimiser._linearised import factorised, linearise, solve_step

T = np.linspace(0.0, 1.0, 9)
Y = 0.3 + 0.7 * T + 0.05 * np.random.default_rng(2).normal(size=T.size)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def step(objective: Objective, residual_space: bool) -> Callable[..., jax.Array]:
    def one(theta: jax.Array, batch: Batch, damping: jax.Array, controls: Controls) -> jax.Array:
        linear = linearise(objective, theta, batch, controls, residual_space)
        return solve_step(linear, factorised(linear, damping, controls), theta, controls)

    return fast(one)


@functools.cache
def rows_of(objective: Objective) -> Callable[..., tuple[jax.Array, jax.Array]]:
    return fast(functools.partial(weighted_jacobian, objective))


def ramp() -> tuple[Objective, Batch]:
    """x' = a: linear in the last layer and a."""
    problem = tp.Problem(
        coordinates={"t": (0.0, 1.0)},
        fields=["x"],
        unknowns=[tp.Unknown("a", guess=1.0)],
        residuals=[lambda x, a: x.t - a],
        data=[tp.Data({"t": T}, {"x": Y}, noise=0.05)],
    )
    with computing():
        objective = build_objective(problem, MLP((5,)), tp.Points(interior=10), blocks=2)
        return objective, objective.draw(0)


@pytest.fixture(scope="module")
def linear() -> tuple[Objective, Batch]:
    return ramp()


def controls_of(objective: Objective, mask: np.ndarray, pull: float = 0.0) -> Controls:
    size, rng = objective.surrogate.size, np.random.default_rng(1)
    return Controls(
        jnp.asarray([40.0, 1.0][: len(objective.parts)] + [1.0] * (len(objective.parts) - 2)),
        jnp.full(1, 0.05),
        jnp.asarray(mask),
        jnp.asarray(rng.normal(size=size)),
        jnp.asarray(pull * rng.uniform(0.5, 2.0, size)),
    )


def last_layer(objective: Objective) -> np.ndarray:
    """1 for the last layer and the unknown."""
    mask = np.zeros(objective.surrogate.size)
    mask[10:] = 1.0
    return mask


def start_of(objective: Objective) -> jax.Array:
    return objective.surrogate.initial(stream(0, "init"))


@pytest.mark.parametrize("damping", [1e-6, 1e-1, 10.0])
@pytest.mark.parametrize("pull", [0.0, 0.3])
def test_both_spaces_give_the_same_step(linear: tuple[Objective, Batch], damping: float, pull: float) -> None:
    objective, batch = linear
    mask = (np.random.default_rng(4).random(objective.surrogate.size) > 0.3).astype(float)
    theta, controls = start_of(objective), controls_of(objective, mask, pull)

    ours, other = (
        np.asarray(step(objective, space)(theta, batch, jnp.asarray(damping), controls)) for space in (False, True)
    )
    np.testing.assert_allclose(ours, other, rtol=1e-8, atol=1e-8 * np.abs(ours).max())
    assert not np.any(ours[mask == 0])
    assert not np.any(other[mask == 0])
    # and it is the one of the dense normal equations, from the rows themselves
    blocks = [jax.tree.map(lambda a, i=i: a[i], batch) for i in range(objective.blocks)]
    seen = [rows_of(objective)(theta, block, controls) for block in blocks]
    rows, jacobian = map(np.concatenate, zip(*seen, strict=True))
    strength = np.asarray(controls.pull) * mask
    matrix = jacobian.T @ jacobian + np.diag(damping + strength)
    wanted = -np.linalg.solve(matrix, jacobian.T @ rows + strength * (np.asarray(theta) - np.asarray(controls.anchor)))
    np.testing.assert_allclose(ours, wanted, rtol=1e-7, atol=1e-8 * np.abs(ours).max())


def test_one_undamped_step_solves_linear_least_squares(linear: tuple[Objective, Batch]) -> None:
    objective, batch = linear
    theta, controls = start_of(objective), controls_of(objective, last_layer(objective), 0.01)
    closure = fast(objective.closure)
    end = theta + step(objective, True)(theta, batch, jnp.asarray(1e-10), controls)
    (before, _), slope = closure(theta, batch, controls)
    (after, _), flat = closure(end, batch, controls)
    assert after < before
    assert float(jnp.abs(flat).max()) < 1e-8 * float(jnp.abs(slope).max())


@pytest.mark.parametrize("residual_space", [False, True])
def test_acceleration_takes_the_bend_out_of_what_the_weights_can_reach(residual_space: bool) -> None:
    """Along theta + t d + t^2 a / 2, with a undamped, J^T of the rows has no second derivative."""
    problem = tp.Problem(
        coordinates={"t": (0.0, 1.0)},
        fields=["x"],
        unknowns=[tp.Unknown("a", guess=1.0)],
        residuals=[lambda x, a: x.t - a * x],
        data=[tp.Data({"t": T}, {"x": Y}, noise=0.05)],
    )
    objective = build_objective(problem, MLP((5,)), tp.Points(interior=10), blocks=2)
    batch, theta = objective.draw(0), start_of(objective)
    mask = np.zeros(objective.surrogate.size)
    mask[[3, 7, 9, 12, -1]] = 1.0
    controls = controls_of(objective, mask)
    direction = jnp.asarray(1e-3 * mask * np.random.default_rng(5).normal(size=mask.size))

    @fast
    def path() -> tuple[jax.Array, ...]:
        linear = linearise(objective, theta, batch, controls, residual_space)
        end = accelerated(
            objective, linear, factorised(linear, jnp.asarray(1e-11), controls), theta, direction, batch, controls
        )
        bend = end - direction  # a / 2
        flat = linearise(objective, theta, batch, controls, residual_space=True)

        def rows(move: jax.Array) -> jax.Array:
            return linearise(objective, theta + move, batch, controls, residual_space=True).rows

        h = 0.5
        curved = rows(h * direction + h**2 * bend) - 2.0 * rows(jnp.zeros_like(theta))
        curved += rows(-h * direction + h**2 * bend)
        straight = rows(h * direction) - 2.0 * rows(jnp.zeros_like(theta)) + rows(-h * direction)
        return flat.jacobian.T @ curved, flat.jacobian.T @ straight, end

    curved, straight, end = map(np.asarray, path())
    assert np.abs(curved).max() < 1e-3 * np.abs(straight).max()
    assert not np.any(end[mask == 0])


def test_a_bend_too_sharp_to_follow_is_left_out(linear: tuple[Objective, Batch]) -> None:
    objective, batch = linear
    theta, controls = start_of(objective), controls_of(objective, np.ones(objective.surrogate.size))

    @fast
    def ends(length: jax.Array) -> tuple[jax.Array, jax.Array]:
        equations = linearise(objective, theta, batch, controls, residual_space=False)
        damped = factorised(equations, jnp.asarray(1e-3), controls)
        direction = length * solve_step(equations, damped, theta, controls)
        return direction, accelerated(objective, equations, damped, theta, direction, batch, controls)

    short, bent = ends(jnp.asarray(1e-3))
    assert np.any(np.asarray(short) != np.asarray(bent))
    long, same = ends(jnp.asarray(1e3))  # the bend grows with the square of the length
    np.testing.assert_array_equal(long, same)


@pytest.mark.parametrize("accelerate", [False, True])
def test_descends_freezes_and_says_when_it_is_stuck(linear: tuple[Objective, Batch], accelerate: bool) -> None:
    objective, batch = linear
    mask = last_layer(objective)
    theta = np.array(start_of(objective))
    theta[3] = -0.0
    own = levenberg(objective, row_count(objective, batch), 8, 0.0, accelerate=accelerate)
    controls = controls_of(objective, mask)
    state, losses, codes = own.start(jnp.asarray(theta), batch, controls), [], []
    for _ in range(4):
        state, trace = own.epoch(state, batch, controls, jnp.zeros(1))
        losses += np.asarray(trace.loss).tolist()
        codes.append(int(trace.status))
        if codes[-1] == STUCK:
            break
    assert np.all(np.diff(losses) <= 0)
    assert codes[0] in (RUNNING, STUCK)
    assert codes[-1] == STUCK  # at the minimum no step goes down
    end = np.asarray(own.theta(state))
    assert end[mask == 0].tobytes() == theta[mask == 0].tobytes()
    assert np.count_nonzero(end != theta) == 6  # the neuron whose input weight is zero says nothing
    idle = np.asarray(trace.closures) == 0
    assert np.all(np.asarray(trace.loss)[idle] == losses[-1])

    broken = jnp.asarray(theta).at[12].set(jnp.nan)
    state = own.start(broken, batch, controls)
    state, trace = own.epoch(state, batch, controls, jnp.zeros(1))
    assert int(trace.status) == NON_FINITE
    np.testing.assert_array_equal(own.theta(state), broken)


@pytest.mark.parametrize(("accelerate", "most"), [(False, 40), (True, 15)])
def test_a_curved_valley_in_a_few_steps(accelerate: bool, most: int) -> None:
    """Rosenbrock's function as the residual of an equation for two unknowns."""
    problem = tp.Problem(
        coordinates={"t": (0.0, 1.0)},
        fields=["x"],
        unknowns=[tp.Unknown("p", guess=-1.2), tp.Unknown("q", guess=1.0)],
        residuals=[lambda x, p, q: (10.0 * (q - p**2) + 0.0 * x, 1.0 - p + 0.0 * x)],
        data=[tp.Data({"t": T}, {"x": Y}, noise=0.05)],
        scale="none",
    )
    objective = build_objective(problem, MLP((2,)), tp.Points(interior=3))
    batch, mask = objective.draw(0), np.zeros(objective.surrogate.size)
    mask[-2:] = 1.0
    own, theta = levenberg(objective, row_count(objective, batch), 40, 0.0, (), accelerate), start_of(objective)
    controls = controls_of(objective, mask)
    state, trace = own.epoch(own.start(theta, batch, controls), batch, controls, jnp.zeros(1))
    np.testing.assert_allclose(
        [float(v) for v in objective.surrogate.unknowns(own.theta(state)).values()], 1.0, atol=1e-7
    )
    assert np.all(np.diff(np.asarray(trace.loss)) <= 0)
    assert int(np.argmax(np.abs(np.asarray(trace.raw)[:, 0] * objective.problem.unknowns[0].size - 1.0) < 1e-5)) < most
