"""SOAP: Adam where the basis is the identity, a basis that converges to the eigenvectors, and the usual promises."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import tgsr.problem as tp
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective, build_objective
from tgsr.network._propagate import MLP
from tgsr.optimiser import NON_FINITE, RUNNING, Program, soap
from tgsr.optimiser._soap import Basis, followed, matrices, turned

X = np.linspace(0.0, 1.0, 11)
STEPS = 8


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


@functools.cache
def made() -> tuple[Objective, Batch, jax.Array, Controls, Program]:
    problem = tp.Problem(
        coordinates={"x": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tp.Unknown("k", guess=1.0, positive=True)],
        residuals=[lambda u, k: u.x + k * u],
        data=[tp.Data({"x": X}, {"u": np.exp(-2.0 * X)}, noise=0.05)],
    )
    objective = build_objective(problem, MLP((5, 4)), tp.Points(interior=20))
    theta = objective.surrogate.initial(stream(0, "init"))
    zero = jnp.zeros(theta.size)
    controls = Controls(jnp.asarray([9.0, 1.0]), jnp.full(1, 0.05), jnp.ones(theta.size), zero, zero)
    return objective, objective.draw(0), theta, controls, soap(objective, STEPS, 0.01, 3)


def rate(value: float) -> jax.Array:
    return jnp.full(1, value)


def test_turning_there_and_back_changes_nothing_but_the_matrices_in_between() -> None:
    objective, _, theta, _, _ = made()
    where, rng = matrices(objective), np.random.default_rng(0)
    assert [shape for _, shape in where] == [(1, 5), (5, 4), (4, 1)]

    def rotation(n: int) -> jax.Array:
        return jnp.asarray(np.linalg.qr(rng.normal(size=(n, n)))[0])

    bases = tuple(Basis(*map(jnp.eye, shape), *map(rotation, shape)) for _, shape in where)
    there = turned(theta, bases, where)
    np.testing.assert_allclose(turned(there, bases, where, back=True), theta, atol=1e-14)
    place, shape = where[1]
    wanted = bases[1].q_left.T @ theta[place].reshape(shape) @ bases[1].q_right
    np.testing.assert_allclose(there[place].reshape(shape), wanted, rtol=1e-12)
    same = np.ones(theta.size, bool)
    for place, _ in where:
        same[place] = False
    np.testing.assert_array_equal(there[same], theta[same])
    assert np.all(there[~same] != theta[~same])


def test_in_the_basis_of_the_identity_it_is_adam() -> None:
    objective, batch, theta, controls, _ = made()
    own = soap(objective, STEPS, 0.01, 10**9)
    state = own.start(theta, batch, controls)._replace(steps=jnp.asarray(1))  # its bases are the identity
    state, trace = own.epoch(state, batch, controls, rate(0.02))
    rule = optax.adam(0.02, b1=0.95, b2=0.95, eps=1e-8)
    x, moments, losses = theta, rule.init(theta), []
    step = jax.jit(lambda x, m: (objective.closure(x, batch, controls), m))
    for _ in range(STEPS):
        ((loss, _), gradient), _ = step(x, moments)
        update, moments = rule.update(gradient, moments)
        losses.append(float(loss))
        x = optax.apply_updates(x, update)
    np.testing.assert_allclose(trace.loss, losses, rtol=1e-9)
    np.testing.assert_allclose(state.theta, x, rtol=1e-8, atol=1e-11)


def test_the_basis_converges_to_the_eigenvectors_and_takes_the_moments_along() -> None:
    rng = np.random.default_rng(1)
    left, right = (np.diag(np.geomspace(1.0, 30.0, n)) for n in (4, 3))
    start = Basis(*map(jnp.asarray, (left, right, np.eye(4), np.eye(3))))
    squares = jnp.asarray(rng.random((4, 3)))
    basis, moved = followed(start, squares)
    np.testing.assert_allclose(moved, np.asarray(squares)[::-1, ::-1])  # the largest eigenvalue comes first
    np.testing.assert_allclose(np.abs(basis.q_left), np.eye(4)[::-1], atol=1e-12)
    roots = [rng.normal(size=(n, n)) for n in (4, 3)]
    basis = Basis(*(jnp.asarray(r @ r.T) for r in roots), jnp.eye(4), jnp.eye(3))
    for _ in range(200):
        basis, _ = followed(basis, squares)
    for mean, q in ((basis.left, basis.q_left), (basis.right, basis.q_right)):
        values, wanted = np.linalg.eigh(mean)
        np.testing.assert_allclose(np.abs(wanted[:, ::-1].T @ q), np.eye(len(values)), atol=1e-6)


def test_counts_frozen_bits_and_a_resume_to_the_same_bits() -> None:
    objective, batch, theta, controls, own = made()
    theta, mask = theta.at[6].set(-0.0), np.ones(theta.size)
    mask[[2, 6, 15]] = 0.0
    controls = controls._replace(mask=jnp.asarray(mask))
    state = own.start(theta, batch, controls)
    for number in range(4):
        half = jax.tree.map(np.asarray, state) if number == 2 else None
        state, trace = own.epoch(state, batch, controls, rate(0.02 / (1 + number)))
        assert int(trace.status) == RUNNING
        assert trace.closures.tolist() == [1] * STEPS
        if number == 0:
            assert trace.loss[0] == trace.loss[1]  # the first gradient only sets the basis
        again = state if half is None else jax.tree.map(jnp.asarray, half)
        if half is not None:
            again, _ = own.epoch(again, batch, controls, rate(0.02 / (1 + number)))
            for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(again), strict=True):
                assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    end = np.asarray(own.theta(state))
    assert end[mask == 0].tobytes() == np.asarray(theta)[mask == 0].tobytes()
    assert np.all(end[mask == 1] != np.asarray(theta)[mask == 1])
    loss, _ = jax.jit(objective.value)(own.theta(state), batch, controls)
    assert loss < 0.5 * objective.value(theta, batch, controls)[0]


def test_a_loss_that_is_not_finite_is_said_and_changes_nothing() -> None:
    _, batch, theta, controls, own = made()
    broken = theta.at[0].set(jnp.nan)
    state, trace = own.epoch(own.start(broken, batch, controls), batch, controls, rate(0.02))
    assert int(trace.status) == NON_FINITE
    np.testing.assert_array_equal(own.theta(state), broken)
    assert trace.closures.tolist() == [1] + [0] * (STEPS - 1)
