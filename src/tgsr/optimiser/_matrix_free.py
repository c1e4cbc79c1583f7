"""Levenberg-Marquardt for networks whose Jacobian does not fit: only its products with vectors are formed.

(J^T J + D) d = -J^T r, with D the damping and the pull, is solved by conjugate gradients to a modest accuracy (inexact
Newton: Dembo, Eisenstat & Steihaug 1982). J v and J^T u pass through the objective in its blocks of points, so memory
stays flat in their number. Spectra of such losses span many decades and fall fast, so that plain conjugate gradients
crawl; what they need to be told is the leading subspace. It is read off a sample S of the rows, spread over all terms
and moving on with each step, whose Jacobian J_S is formed and weighed up to stand for all rows (row subsampling, as in
Roosta-Khorasani & Mahoney 2019). With M = J_S^T J_S + mu, by Woodbury's identity,

    M^-1 v = (v - J_S^T (mu + J_S J_S^T)^-1 J_S v) / mu,

which costs one small factorisation per damping. With all rows in the sample a single iteration is exact: this is then
Levenberg-Marquardt in residual space.

A step costs a closure for loss and gradient and one for J_S, two for each iteration (a J v and a J^T u), and one for
the loss at each trial. By count of operations, a pair of products is 1.66 closures and a loss 0.33, for 6x100 as for
4x32 networks.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from tgsr.loss import Batch, Controls, Objective, TermBatch, weighted_jacobian, weighted_rows
from tgsr.optimiser._damping import Prepared, Solver, Tried, damped
from tgsr.optimiser._inner import moved
from tgsr.optimiser._linearised import lower_gram
from tgsr.optimiser._program import Program

PAIR = 2  # closures of an iteration: J v and J^T u
ENOUGH = 0.1  # of the residual, in the norm of M^-1, that an inexact step may leave


class _Model(NamedTuple):
    half_gradient: jax.Array
    sample: jax.Array  # J_S, (rows, P)
    gram: jax.Array  # J_S J_S^T, lower triangle


class _Search(NamedTuple):
    """Conjugate gradients under way."""

    step: jax.Array
    residual: jax.Array
    direction: jax.Array
    size: jax.Array  # residual . M^-1 residual
    iterations: jax.Array


def sampled(batch: Batch, stride: int, offset: jax.Array) -> Batch:
    """One block of every `stride`-th point of every term, from `offset` on, weighed up to stand for all."""
    out = []
    for term in batch:
        total = term.share.size
        count = max(1, total // stride)
        index = jnp.minimum(offset % stride + stride * jnp.arange(count), total - 1)
        x, share, stored = jax.tree.map(lambda a, i=index: a.reshape(-1, *a.shape[2:])[i], tuple(term))
        out.append(TermBatch(x, share * (total / count), stored))
    return tuple(out)


def gauss_newton_product(
    objective: Objective, theta: jax.Array, batch: Batch, controls: Controls, vector: jax.Array
) -> jax.Array:
    """J^T J v over all points, block by block."""
    vector = vector * controls.mask

    def add(total: jax.Array, block: Batch) -> tuple[jax.Array, None]:
        _, forward = jax.linearize(lambda t: weighted_rows(objective, t, block, controls), theta)
        (back,) = jax.linear_transpose(forward, theta)(forward(vector))
        return total + back, None

    product, _ = jax.lax.scan(add, jnp.zeros_like(theta), batch)
    return product * controls.mask


def matrix_free(
    objective: Objective, rows: int, steps: int, sample: int, iterations: int, tolerance: float = 0.0
) -> Program:
    """The program of a matrix-free Levenberg-Marquardt phase: `steps` steps per outer epoch on `rows` rows.

    About `sample` rows make the preconditioner; a linear system gets at most `iterations` iterations. `settings[0]` is
    for how many steps from the start the unknowns are held (or until nothing else can be gained).
    """
    stride = max(1, -(-rows // sample))

    def prepare(theta: jax.Array, steps: jax.Array, batch: Batch, controls: Controls) -> Prepared:
        _, gradient = objective.closure(theta, batch, controls)
        _, jacobian = weighted_jacobian(objective, theta, sampled(batch, stride, steps), controls)
        gram = lower_gram(jacobian.T)
        return Prepared(_Model(gradient / 2.0, jacobian, gram), jnp.trace(gram) / theta.size, 2)

    def attempt(
        model: _Model, theta: jax.Array, damping: jax.Array, batch: Batch, controls: Controls, left: jax.Array
    ) -> Tried:
        gram = model.gram / damping + jnp.eye(len(model.gram))
        factor = jnp.linalg.cholesky(gram, symmetrize_input=False)
        diagonal = damping + controls.pull * controls.mask

        def precondition(v: jax.Array) -> jax.Array:
            y = cho_solve((factor, True), model.sample @ v)
            return (v - (y @ model.sample) / damping) / damping

        def iterate(s: _Search) -> _Search:
            product = gauss_newton_product(objective, theta, batch, controls, s.direction) + diagonal * s.direction
            length = s.size / (s.direction @ product)
            residual = s.residual - length * product
            better = precondition(residual)
            size = residual @ better
            direction = better + (size / s.size) * s.direction
            return _Search(s.step + length * s.direction, residual, direction, size, s.iterations + 1)

        opening = precondition(-model.half_gradient)
        size = -model.half_gradient @ opening
        begin = _Search(jnp.zeros_like(theta), -model.half_gradient, opening, size, jnp.zeros((), dtype=int))
        most = jnp.minimum(iterations, (left - 1) // PAIR)
        last = jax.lax.while_loop(lambda s: (s.iterations < most) & (s.size > ENOUGH**2 * size), iterate, begin)
        step = last.step * controls.mask
        # exact for the step that was reached: (J^T J + D) step = -half_gradient - residual
        predicted = step @ (damping * step - model.half_gradient + last.residual)
        end = moved(theta, step, controls.mask)
        return Tried(end, *objective.value(end, batch, controls), predicted, 1 + PAIR * last.iterations)

    return damped(objective, Solver(prepare, attempt, least=2, least_attempt=1 + PAIR), steps, tolerance)
