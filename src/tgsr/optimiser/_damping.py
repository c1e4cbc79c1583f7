"""Damped Gauss-Newton steps for a sum of squares, whichever way their linear systems are solved.

With rows r and Jacobian J a step d solves (J^T J + mu) d = -J^T r. The damping mu follows Nielsen (1999): it shrinks
smoothly as the linear model proves right and grows ever faster while it proves wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._inner import closures_left
from tgsr.optimiser._program import CONVERGED, NON_FINITE, RUNNING, STUCK, Program, Trace

START_DAMPING = 1e-3  # of the mean diagonal of J^T J
SMALLEST_DAMPING = 1e-16
SHRINK = 1.0 / 9.0  # the least factor on it after a success
TRIALS = 12  # damping values tried before a step is given up

Model = Any  # what a step at any damping needs of the rows near theta


class DampedState(NamedTuple):
    """Everything the next step needs."""

    theta: jax.Array
    damping: jax.Array
    growth: jax.Array
    steps: jax.Array  # taken so far


class Prepared(NamedTuple):
    """The rows near theta."""

    model: Model
    mean: jax.Array  # of the diagonal of J^T J
    closures: jax.Array | int


class Tried(NamedTuple):
    """Where a step at one damping leads."""

    theta: jax.Array
    loss: jax.Array
    parts: jax.Array
    predicted: jax.Array  # decrease of the loss by the linear model
    closures: jax.Array | int


@dataclass(frozen=True)
class Solver:
    """How the linear systems are made and solved; what either costs at the least."""

    prepare: Callable[[jax.Array, jax.Array, Batch, Controls], Prepared]  # theta, steps so far
    attempt: Callable[[Model, jax.Array, jax.Array, Batch, Controls, jax.Array], Tried]  # theta, damping; closures left
    least: int  # closures of `prepare`
    least_attempt: int
    shrink: float = SHRINK


class _Trial(NamedTuple):
    damping: jax.Array
    growth: jax.Array
    theta: jax.Array
    loss: jax.Array
    parts: jax.Array
    tries: jax.Array
    closures: jax.Array
    done: jax.Array


def damped(objective: Objective, solver: Solver, steps: int, tolerance: float) -> Program:
    """The program of a damped Gauss-Newton phase: `steps` steps per outer epoch.

    `settings[0]` is for how many steps from the start the unknowns are held (or until nothing else can be gained).
    """
    is_unknown = jnp.arange(objective.surrogate.size) >= objective.surrogate.network_size

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> DampedState:
        return DampedState(theta, jnp.zeros(()), jnp.full((), 2.0), jnp.zeros((), dtype=int))

    def one_step(
        state: DampedState,
        loss: jax.Array,
        parts: jax.Array,
        batch: Batch,
        controls: Controls,
        hold: jax.Array,
        left: jax.Array,
    ) -> tuple[DampedState, jax.Array, jax.Array, jax.Array, jax.Array]:
        free = jnp.where(is_unknown & (state.steps < hold), 0.0, 1.0)
        controls = controls._replace(mask=controls.mask * free)
        model, mean, closures = solver.prepare(state.theta, state.steps, batch, controls)

        def attempt(t: _Trial) -> _Trial:
            seen = solver.attempt(model, state.theta, t.damping, batch, controls, left - t.closures)
            gain = (loss - seen.loss) / seen.predicted
            good = (seen.loss < loss) & jnp.isfinite(seen.loss) & (seen.predicted > 0)
            shrink = jnp.maximum(solver.shrink, 1.0 - (2.0 * gain - 1.0) ** 3)
            return _Trial(
                jnp.where(good, jnp.maximum(t.damping * shrink, SMALLEST_DAMPING * mean), t.damping * t.growth),
                jnp.where(good, 2.0, 2.0 * t.growth),
                jnp.where(good, seen.theta, t.theta),
                jnp.where(good, seen.loss, t.loss),
                jnp.where(good, seen.parts, t.parts),
                t.tries + 1,
                t.closures + seen.closures,
                good,
            )

        def affordable(t: _Trial) -> jax.Array:
            return t.closures + solver.least_attempt <= left

        zero = jnp.zeros((), dtype=int)
        first = _Trial(
            jnp.where(state.steps > 0, state.damping, START_DAMPING * mean),
            state.growth,
            state.theta,
            loss,
            parts,
            zero,
            zero + closures,
            jnp.zeros((), dtype=bool),
        )
        last = jax.lax.while_loop(lambda t: ~t.done & (t.tries < TRIALS) & affordable(t), attempt, first)
        holding = state.steps < hold
        cut = ~last.done & ~affordable(last)  # by the budget: nothing is known of what lies ahead
        steps = jnp.where(holding & ~last.done, hold, state.steps + 1)  # nothing to gain: let the unknowns go
        damping = jnp.where(last.done | ~holding, last.damping, first.damping)
        growth = jnp.where(last.done | ~holding, last.growth, 2.0)
        new = DampedState(last.theta, damping, growth, steps)
        return new, last.loss, last.parts, last.closures, last.done | holding | cut

    @jax.jit
    def epoch(state: DampedState, batch: Batch, controls: Controls, settings: jax.Array) -> tuple[DampedState, Trace]:
        loss, parts = objective.value(state.theta, batch, controls)

        def body(carry, _):
            state, loss, parts, status, left = carry

            def go(_):
                new, new_loss, new_parts, closures, done = one_step(
                    state, loss, parts, batch, controls, settings[0].astype(int), left
                )
                code = jnp.where(done, RUNNING, STUCK)
                settled = (loss - new_loss <= tolerance * new_loss) & (new.steps > settings[0])
                code = jnp.where(done & settled, CONVERGED, code)
                return new, new_loss, new_parts, code, closures

            def stay(_):
                return state, loss, parts, status, jnp.zeros((), dtype=int)

            state, loss, parts, status, closures = jax.lax.cond(
                (status == RUNNING) & (left >= solver.least + solver.least_attempt), go, stay, None
            )
            return (state, loss, parts, status, left - closures), (
                loss,
                parts,
                objective.surrogate.raw(state.theta),
                closures,
            )

        begin = jnp.where(jnp.isfinite(loss), RUNNING, NON_FINITE)
        carry = (state, loss, parts, begin, closures_left(settings))
        (state, _, _, status, _), seen = jax.lax.scan(body, carry, None, length=steps)
        return state, Trace(*seen, status)

    return Program(start, epoch, lambda state: state.theta, steps)
