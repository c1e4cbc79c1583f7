"""SOAP (Vyas et al. 2024): Adam in the eigenbasis of Shampoo's preconditioner (Gupta, Koren & Singer 2018).

For a weight matrix with gradient G, running means L of G G^T and R of G^T G have eigenvectors Q_L and Q_R, in which
the gradient is nearly decoupled. Adam's second moments are kept for Q_L^T G Q_R, its mean of the gradient is turned
into that basis, and the step is turned back. The basis follows L and R by one step of power iteration and a QR
factorisation every `every` steps; the second moments stay, as a basis moves slowly. Where Adam scales numbers one by
one, which is blind to how weights of a layer work together, this costs products of the layer's width and no closure.

Biases, unknowns and whatever is no matrix take plain Adam's step.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._inner import Row, all_finite, closures_left, moved, no_row, run_steps
from tgsr.optimiser._program import NON_FINITE, RUNNING, Program, Trace

FIRST, SECOND, BASIS = 0.95, 0.95, 0.95  # memories of the running means, as published
TINY = 1e-8  # added to the root of the second moment


class Basis(NamedTuple):
    """The running means of a matrix's gradients on both sides, and their eigenvectors."""

    left: jax.Array
    right: jax.Array
    q_left: jax.Array
    q_right: jax.Array


class SoapState(NamedTuple):
    """Everything the next step needs."""

    theta: jax.Array
    mean: jax.Array  # of the gradient
    square: jax.Array  # of the turned gradient
    bases: tuple[Basis, ...]
    steps: jax.Array


def matrices(objective: Objective) -> list[tuple[slice, tuple[int, int]]]:
    """Where the weight matrices stand in theta, and their shapes."""
    entries, found = objective.surrogate.entries(), []
    for number, net in enumerate(objective.surrogate.nets):
        found += [(entries[f"net{number}.{layer}.weight"], shape) for layer, shape in enumerate(net.shapes)]
    return found


def turned(
    vector: jax.Array, bases: tuple[Basis, ...], where: list[tuple[slice, tuple[int, int]]], *, back: bool = False
) -> jax.Array:
    """A vector with its matrices M as Q_L^T M Q_R, or turned back."""
    for (place, shape), basis in zip(where, bases, strict=True):
        matrix, left, right = vector[place].reshape(shape), basis.q_left, basis.q_right
        new = left @ matrix @ right.T if back else left.T @ matrix @ right
        vector = vector.at[place].set(new.reshape(-1))
    return vector


def eigenvectors(mean: jax.Array) -> jax.Array:
    """Of a symmetric matrix, the largest eigenvalue first."""
    return jnp.linalg.eigh(mean)[1][:, ::-1]


def followed(basis: Basis, squares: jax.Array) -> tuple[Basis, jax.Array]:
    """The basis after one power iteration on both sides; the second moments in its order."""

    def side(mean: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        order = jnp.argsort(-jnp.sum(q * (mean @ q), axis=0))  # by the estimated eigenvalue
        return jnp.linalg.qr(mean @ q[:, order])[0], order

    q_left, rows = side(basis.left, basis.q_left)
    q_right, columns = side(basis.right, basis.q_right)
    return Basis(basis.left, basis.right, q_left, q_right), squares[rows][:, columns]


def soap(objective: Objective, steps: int, learning_rate: float, every: int = 10) -> Program:
    """The program of a SOAP phase: `steps` steps per outer epoch, one evaluation each.

    `settings[0]` is the learning rate of the epoch; empty settings stand for `learning_rate`. The first gradient sets
    the basis and moves nothing. Rows of the trace stand for the point before the step.
    """
    where = matrices(objective)

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> SoapState:
        zero = jnp.zeros_like(theta)
        bases = tuple(Basis(*(jnp.zeros((n, n)) for n in shape), *(jnp.eye(n) for n in shape)) for _, shape in where)
        return SoapState(theta, zero, zero, bases, jnp.zeros((), dtype=int))

    def opened(state: SoapState, gradient: jax.Array) -> SoapState:
        bases = []
        for place, shape in where:
            g = gradient[place].reshape(shape)
            left, right = g @ g.T, g.T @ g
            bases.append(Basis(left, right, eigenvectors(left), eigenvectors(right)))
        return state._replace(bases=tuple(bases), steps=state.steps + 1)

    def stepped(state: SoapState, gradient: jax.Array, rate: jax.Array | float, mask: jax.Array) -> SoapState:
        count = state.steps  # the first gradient moved nothing
        mean = FIRST * state.mean + (1.0 - FIRST) * gradient
        square = SECOND * state.square + (1.0 - SECOND) * turned(gradient, state.bases, where) ** 2
        size = jnp.sqrt(square / (1.0 - SECOND**count)) + TINY
        step = turned(turned(mean / (1.0 - FIRST**count), state.bases, where) / size, state.bases, where, back=True)
        bases = []
        for (place, shape), basis in zip(where, state.bases, strict=True):
            g = gradient[place].reshape(shape)
            left = BASIS * basis.left + (1.0 - BASIS) * (g @ g.T)
            bases.append(basis._replace(left=left, right=BASIS * basis.right + (1.0 - BASIS) * (g.T @ g)))

        def follow(_: None) -> tuple[jax.Array, tuple[Basis, ...]]:
            moments, new = square, []
            for (place, shape), basis in zip(where, bases, strict=True):
                fresh, own = followed(basis, square[place].reshape(shape))
                moments = moments.at[place].set(own.reshape(-1))
                new.append(fresh)
            return moments, tuple(new)

        square, kept = jax.lax.cond(count % every == 0, follow, lambda _: (square, tuple(bases)), None)
        return SoapState(moved(state.theta, -rate * step, mask), mean, square, kept, count + 1)

    @jax.jit
    def epoch(state: SoapState, batch: Batch, controls: Controls, settings: jax.Array) -> tuple[SoapState, Trace]:
        rate = settings[0] if settings.size else learning_rate

        def one_step(state: SoapState, _: jax.Array) -> tuple[SoapState, Row, jax.Array]:
            (loss, parts), gradient = objective.closure(state.theta, batch, controls)
            usable = all_finite(loss, gradient)
            new = jax.lax.cond(
                state.steps == 0,
                lambda s: opened(s, gradient),
                lambda s: stepped(s, gradient, rate, controls.mask),
                state,
            )
            new = jax.tree.map(lambda a, b: jnp.where(usable, a, b), new, state)
            row = Row(loss, parts, objective.surrogate.raw(state.theta), jnp.ones((), dtype=int))
            return new, row, jnp.where(usable, RUNNING, NON_FINITE)

        return run_steps(one_step, state, no_row(objective, state.theta), RUNNING, steps, closures_left(settings))

    return Program(start, epoch, lambda state: state.theta, steps)
