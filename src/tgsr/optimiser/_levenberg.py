"""Levenberg-Marquardt for sums of squares, in weight space or residual space, whichever is smaller.

With rows r and Jacobian J the step solves (J^T J + mu) d = -J^T r, or, with fewer rows than weights, the equivalent
(J J^T + mu) y = r, d = -J^T y. The damping mu follows Nielsen (1999): it shrinks smoothly as the linear model proves
right and grows ever faster while it proves wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._elimination import eliminated, projected, settled
from tgsr.optimiser._inner import closures_left
from tgsr.optimiser._linearised import linearise, solve_step
from tgsr.optimiser._program import CONVERGED, NON_FINITE, RUNNING, STUCK, Program, Trace

START_DAMPING = 1e-3  # of the mean diagonal of J^T J
SMALLEST_DAMPING = 1e-16
TRIALS = 12  # damping values tried before a step is given up
STEP_COST = 2  # closures of a step at the least: a Jacobian and a trial


class LevenbergState(NamedTuple):
    """Everything the next step needs."""

    theta: jax.Array
    damping: jax.Array
    growth: jax.Array
    steps: jax.Array  # taken so far


def row_count(objective: Objective, batch: Batch) -> int:
    """Rows of a batch, padding included."""
    return sum(b.share.size * len(p.term.parts) for b, p in zip(batch, objective.plans, strict=True))


def levenberg(objective: Objective, rows: int, steps: int, tolerance: float, affine: tuple[bool, ...] = ()) -> Program:
    """The program of a Levenberg-Marquardt phase: `steps` steps per outer epoch on `rows` rows.

    `affine` marks unknowns to be eliminated (see `_elimination`): once they are no longer held, every trial has them at
    their best. `settings[0]` is for how many steps from the start the unknowns are held (or until nothing else can be
    gained).
    """
    residual_space = rows < objective.surrogate.size
    is_unknown = jnp.arange(objective.surrogate.size) >= objective.surrogate.network_size

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> LevenbergState:
        return LevenbergState(theta, jnp.zeros(()), jnp.full((), 2.0), jnp.zeros((), dtype=int))

    def one_step(
        state: LevenbergState,
        loss: jax.Array,
        parts: jax.Array,
        batch: Batch,
        controls: Controls,
        hold: jax.Array,
        left: jax.Array,
    ) -> tuple[LevenbergState, jax.Array, jax.Array, jax.Array, jax.Array]:
        free = jnp.where(is_unknown & (state.steps < hold), 0.0, 1.0)
        controls = controls._replace(mask=controls.mask * free)
        linear = linearise(objective, state.theta, batch, controls, residual_space)
        chosen = eliminated(affine, controls)
        if any(affine):
            linear = projected(linear, chosen)
        squares = linear.gram if linear.jacobian is None else None
        mean = (jnp.trace(squares) if squares is not None else jnp.sum(linear.gram**2)) / state.theta.size
        half_gradient = linear.gradient + controls.pull * controls.mask * (state.theta - controls.anchor)

        class Trial(NamedTuple):
            damping: jax.Array
            growth: jax.Array
            theta: jax.Array
            loss: jax.Array
            parts: jax.Array
            tries: jax.Array
            done: jax.Array

        def attempt(t: Trial) -> Trial:
            step = solve_step(linear, state.theta, t.damping, controls)
            theta = state.theta + step
            if any(affine):
                theta, new_loss, new_parts = settled(objective, theta, batch, controls, chosen)
            else:
                new_loss, new_parts = objective.value(theta, batch, controls)
            predicted = step @ (t.damping * step - half_gradient)  # decrease of the linear model
            gain = (loss - new_loss) / predicted
            good = (new_loss < loss) & jnp.isfinite(new_loss) & (predicted > 0)
            shrink = jnp.maximum(1.0 / 9.0, 1.0 - (2.0 * gain - 1.0) ** 3)
            return Trial(
                jnp.where(good, jnp.maximum(t.damping * shrink, SMALLEST_DAMPING * mean), t.damping * t.growth),
                jnp.where(good, 2.0, 2.0 * t.growth),
                jnp.where(good, theta, t.theta),
                jnp.where(good, new_loss, t.loss),
                jnp.where(good, new_parts, t.parts),
                t.tries + 1,
                good,
            )

        first = Trial(
            jnp.where(state.steps > 0, state.damping, START_DAMPING * mean),
            state.growth,
            state.theta,
            loss,
            parts,
            jnp.zeros((), dtype=int),
            jnp.zeros((), dtype=bool),
        )
        last = jax.lax.while_loop(lambda t: ~t.done & (t.tries < jnp.minimum(TRIALS, left - 1)), attempt, first)
        holding = state.steps < hold
        cut = ~last.done & (last.tries >= left - 1)  # by the budget: nothing is known of what lies ahead
        steps = jnp.where(holding & ~last.done, hold, state.steps + 1)  # nothing to gain: let the unknowns go
        damping = jnp.where(last.done | ~holding, last.damping, first.damping)
        growth = jnp.where(last.done | ~holding, last.growth, 2.0)
        new = LevenbergState(last.theta, damping, growth, steps)
        return new, last.loss, last.parts, last.tries, last.done | holding | cut

    @jax.jit
    def epoch(
        state: LevenbergState, batch: Batch, controls: Controls, settings: jax.Array
    ) -> tuple[LevenbergState, Trace]:
        loss, parts = objective.value(state.theta, batch, controls)

        def body(carry, _):
            state, loss, parts, status, left = carry

            def go(_):
                new, new_loss, new_parts, tries, done = one_step(
                    state, loss, parts, batch, controls, settings[0].astype(int), left
                )
                code = jnp.where(done, RUNNING, STUCK)
                settled = (loss - new_loss <= tolerance * new_loss) & (new.steps > settings[0])
                code = jnp.where(done & settled, CONVERGED, code)
                return new, new_loss, new_parts, code, tries + 1

            def stay(_):
                return state, loss, parts, status, jnp.zeros((), dtype=int)

            state, loss, parts, status, closures = jax.lax.cond(
                (status == RUNNING) & (left >= STEP_COST), go, stay, None
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
