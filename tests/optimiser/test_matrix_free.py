"""Matrix-free Levenberg-Marquardt: its products, its sample, the dense step where the sample is whole, its count."""

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
from tgsr.loss import Batch, Controls, Objective, build_objective, weighted_jacobian, weighted_rows
from tgsr.network._propagate import MLP
from tgsr.optimiser import RUNNING, levenberg, matrix_free, row_count
from tgsr.optimiser._matrix_free import gauss_newton_product, sampled

X = np.linspace(0.0, 1.0, 11)
FREE = jnp.asarray([0.0, 1e9])  # held for no step, closures without end


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


@functools.cache
def made() -> tuple[Objective, Batch, jax.Array, Controls]:
    """Three kinds of terms in blocks with padding; some weights frozen, some pulled."""
    problem = tp.Problem(
        coordinates={"x": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tp.Unknown("k", guess=1.0, positive=True)],
        residuals=[lambda u, k: u.xx + k * u * u.x],
        conditions=[tp.Dirichlet("u", at="x=0", value=1.0)],
        data=[tp.Data({"x": X}, {"u": np.exp(-2.0 * X)}, noise=0.05)],
    )
    objective = build_objective(problem, MLP((6, 6)), tp.Points(interior=40), blocks=3)
    theta = objective.surrogate.initial(stream(0, "init"))
    rng = np.random.default_rng(2)
    mask = (rng.random(theta.size) > 0.1).astype(float)
    mask[-1] = 1.0
    pull = 1e-3 * rng.uniform(0.5, 2.0, theta.size)
    controls = Controls(
        jnp.asarray([9.0, 3.0, 1.0]), jnp.full(1, 0.05), jnp.asarray(mask), jnp.zeros(theta.size), jnp.asarray(pull)
    )
    return objective, objective.draw(0), theta, controls


def blocks_of(objective: Objective, batch: Batch) -> list[Batch]:
    return [jax.tree.map(lambda a, i=i: a[i], batch) for i in range(objective.blocks)]


def test_the_product_is_that_of_the_formed_jacobian() -> None:
    objective, batch, theta, controls = made()
    jacobian = fast(lambda block: weighted_jacobian(objective, theta, block, controls)[1])
    whole = np.concatenate([jacobian(block) for block in blocks_of(objective, batch)])
    vector = np.random.default_rng(0).normal(size=theta.size)
    product = fast(lambda v: gauss_newton_product(objective, theta, batch, controls, v))(jnp.asarray(vector))
    np.testing.assert_allclose(product, whole.T @ (whole @ vector), rtol=1e-10, atol=1e-11)
    assert not np.any(np.asarray(product)[np.asarray(controls.mask) == 0])


def test_a_sample_stands_for_all_rows_and_walks_through_them() -> None:
    objective, batch, theta, controls = made()
    rows = fast(lambda block: weighted_rows(objective, theta, block, controls))
    whole = np.concatenate([rows(block) for block in blocks_of(objective, batch)])
    everything = sampled(batch, 1, jnp.asarray(5))
    np.testing.assert_allclose(np.sort(rows(everything)), np.sort(whole), rtol=1e-12)
    for term, one in zip(batch, everything, strict=True):
        assert one.share.shape == (term.share.size,)
    squares = [float(jnp.sum(rows(sampled(batch, 3, jnp.asarray(offset)))[:42] ** 2)) for offset in range(3)]
    interior = batch[0].share.size
    assert interior == 42
    sizes = [len(rows(sampled(batch, 3, jnp.asarray(offset)))) for offset in range(3)]
    assert len(set(sizes)) == 1
    assert sizes[0] < len(whole) / 2
    assert len({round(s, 12) for s in squares}) == 3
    shares = [np.asarray(sampled(batch, 3, jnp.asarray(offset))[0].share).sum() for offset in range(3)]
    np.testing.assert_allclose(np.mean(shares), 1.0, rtol=1e-12)  # the weight of the term, as in the loss


def test_with_all_rows_in_the_sample_the_steps_are_the_dense_ones() -> None:
    objective, batch, theta, controls = made()
    controls = controls._replace(pull=jnp.zeros(theta.size))  # the preconditioner leaves the pull to the iteration
    rows = row_count(objective, batch)
    ours, dense = matrix_free(objective, rows, 6, rows, 5), levenberg(objective, rows, 6, 0.0)
    state, trace = ours.epoch(ours.start(theta, batch, controls), batch, controls, FREE)
    wanted, known = dense.epoch(dense.start(theta, batch, controls), batch, controls, FREE)
    np.testing.assert_allclose(trace.loss, known.loss, rtol=1e-5)
    np.testing.assert_allclose(state.theta, wanted.theta, rtol=1e-4, atol=1e-5)
    tries = np.asarray(known.closures) - 1
    np.testing.assert_array_equal(trace.closures, 2 + 3 * tries)  # one iteration each


def test_a_small_sample_goes_down_too_keeps_frozen_bits_and_its_budget() -> None:
    objective, batch, theta, controls = made()
    theta = theta.at[int(np.flatnonzero(np.asarray(controls.mask) == 0)[0])].set(-0.0)
    own = matrix_free(objective, row_count(objective, batch), 25, 8, 6)
    begin = own.start(theta, batch, controls)
    state, trace = own.epoch(begin, batch, controls, jnp.asarray([4.0, 1e9]))
    loss, closures = np.asarray(trace.loss), np.asarray(trace.closures)
    assert int(trace.status) == RUNNING
    assert np.all(np.diff(loss) <= 0)
    assert loss[-1] < 0.1 * loss[0]
    raw = np.asarray(trace.raw)[:, 0]
    assert np.all(raw[:4] == theta[-1])  # held
    assert raw[4] != raw[3]
    assert closures.min() >= 5
    assert closures.max() > 5
    frozen = np.asarray(controls.mask) == 0
    assert np.asarray(own.theta(state))[frozen].tobytes() == np.asarray(theta)[frozen].tobytes()
    final, _ = fast(objective.value)(own.theta(state), batch, controls)
    np.testing.assert_allclose(loss[-1], final, rtol=1e-9)

    for budget in (3, 5, 6, 12, 31):
        _, trace = own.epoch(begin, batch, controls, jnp.asarray([4.0, budget], dtype=float))
        assert int(trace.status) == RUNNING
        assert budget - 5 < int(trace.closures.sum()) <= budget
