"""The rows near theta, as normal equations in weight space or residual space, and the damped step they give."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from tgsr.loss import Batch, Controls, Objective, weighted_jacobian


class Linearised(NamedTuple):
    """The rows near theta: what a step at any damping needs."""

    gradient: jax.Array  # J^T r + pull term, half the gradient of the loss
    gram: jax.Array  # J^T J, or J J^T
    jacobian: jax.Array | None  # kept in residual space only
    rows: jax.Array | None


def lower_gram(columns: jax.Array, strips: int = 4) -> jax.Array:
    """The lower triangle of columns^T columns, in strips: XLA has no symmetric product, and half of it is enough."""
    size = columns.shape[1]
    if size < 128:
        return columns.T @ columns
    edges = [round(size * i / strips) for i in range(strips + 1)]
    rows = [
        jnp.pad(columns[:, start:end].T @ columns[:, :end], ((0, 0), (0, size - end)))
        for start, end in itertools.pairwise(edges)
    ]
    return jnp.concatenate(rows)


def linearise(
    objective: Objective, theta: jax.Array, batch: Batch, controls: Controls, residual_space: bool
) -> Linearised:
    """J^T r and the smaller Gram matrix, block by block."""
    size = objective.surrogate.size
    if residual_space:
        _, (rows, jacobian) = jax.lax.scan(
            lambda c, block: (c, weighted_jacobian(objective, theta, block, controls)), None, batch
        )
        rows, jacobian = rows.reshape(-1), jacobian.reshape(-1, size)
        return Linearised(jacobian.T @ rows, jacobian, jacobian, rows)  # the Gram matrix depends on pull and damping

    def add(total: tuple[jax.Array, jax.Array], block: Batch) -> tuple[tuple[jax.Array, jax.Array], None]:
        rows, jacobian = weighted_jacobian(objective, theta, block, controls)
        return (total[0] + jacobian.T @ rows, total[1] + lower_gram(jacobian)), None

    (gradient, gram), _ = jax.lax.scan(add, (jnp.zeros(size), jnp.zeros((size, size))), batch)
    return Linearised(gradient, gram, None, None)


class Damped(NamedTuple):
    """The normal equations at one damping, factorised."""

    factor: jax.Array  # of J^T J + D, or of 1 + J D^-1 J^T
    diagonal: jax.Array  # D


def factorised(linear: Linearised, damping: jax.Array, controls: Controls) -> Damped:
    """What every solution at one damping shares."""
    diagonal = damping + controls.pull * controls.mask
    if linear.jacobian is None:
        gram = linear.gram + jnp.diag(diagonal)
    else:
        gram = lower_gram((linear.jacobian / jnp.sqrt(diagonal)).T) + jnp.eye(len(linear.jacobian))
    return Damped(jnp.linalg.cholesky(gram, symmetrize_input=False), diagonal)


def solve_step(linear: Linearised, damped: Damped, theta: jax.Array, controls: Controls) -> jax.Array:
    """The step at one damping."""
    drawn = controls.pull * controls.mask * (theta - controls.anchor)
    if linear.jacobian is None or linear.rows is None:
        return -cho_solve((damped.factor, True), linear.gradient + drawn)
    y = cho_solve((damped.factor, True), linear.rows - (linear.jacobian / damped.diagonal) @ drawn)
    return -(linear.jacobian.T @ y + drawn) / damped.diagonal
