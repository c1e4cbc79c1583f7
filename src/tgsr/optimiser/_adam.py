"""Adam (Kingma & Ba 2015): the gradient's running mean over the root of its running mean square."""

from __future__ import annotations

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._inner import Row, all_finite, closures_left, moved, no_row, run_steps
from tgsr.optimiser._program import NON_FINITE, RUNNING, Program, Trace


class AdamState(NamedTuple):
    """Everything the next step needs."""

    theta: jax.Array
    moments: optax.ScaleByAdamState


def adam(objective: Objective, steps: int, learning_rate: float) -> Program:
    """The program of an Adam phase: `steps` steps per outer epoch, one evaluation each.

    `settings[0]` is the learning rate of the epoch; empty settings stand for `learning_rate`. Rows of the trace stand
    for the point before the step: the loss after the last one is the next epoch's first.
    """
    rule = optax.scale_by_adam()  # optax.adam without its rate, which here changes without a new program

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> AdamState:
        return AdamState(theta, cast(optax.ScaleByAdamState, rule.init(theta)))

    @jax.jit
    def epoch(state: AdamState, batch: Batch, controls: Controls, settings: jax.Array) -> tuple[AdamState, Trace]:
        rate = settings[0] if settings.size else learning_rate

        def one_step(state: AdamState, _: jax.Array) -> tuple[AdamState, Row, jax.Array]:
            (loss, parts), gradient = objective.closure(state.theta, batch, controls)
            ruled = rule.update(gradient, state.moments)
            update, moments = cast(tuple[jax.Array, optax.ScaleByAdamState], ruled)
            new = AdamState(moved(state.theta, -rate * update, controls.mask), moments)
            usable = all_finite(loss, gradient)
            new = jax.tree.map(lambda a, b: jnp.where(usable, a, b), new, state)
            row = Row(loss, parts, objective.surrogate.raw(state.theta), jnp.ones((), dtype=int))
            return new, row, jnp.where(usable, RUNNING, NON_FINITE)

        return run_steps(one_step, state, no_row(objective, state.theta), RUNNING, steps, closures_left(settings))

    return Program(start, epoch, lambda state: state.theta, steps)
