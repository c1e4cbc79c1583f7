"""Levenberg-Marquardt with a factorised matrix, in weight space or residual space, whichever is smaller.

With rows r and Jacobian J the step solves (J^T J + mu) d = -J^T r, or, with fewer rows than weights, the equivalent
(J J^T + mu) y = r, d = -J^T y.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._acceleration import accelerated
from tgsr.optimiser._damping import SHRINK, Prepared, Solver, Tried, damped
from tgsr.optimiser._elimination import eliminated, projected, settled
from tgsr.optimiser._linearised import Linearised, factorised, linearise, solve_step
from tgsr.optimiser._program import Program

TRIAL, ACCELERATION = 1, 2  # closures
# An accelerated step nearly always gains more than the linear model predicts, which says little about the next one.
CAUTIOUS_SHRINK = 1.0 / 3.0


class _Model(NamedTuple):
    linear: Linearised
    half_gradient: jax.Array
    chosen: jax.Array  # 1 per unknown that is eliminated


def row_count(objective: Objective, batch: Batch) -> int:
    """Rows of a batch, padding included."""
    return sum(b.share.size * len(p.term.parts) for b, p in zip(batch, objective.plans, strict=True))


def levenberg(
    objective: Objective,
    rows: int,
    steps: int,
    tolerance: float,
    affine: tuple[bool, ...] = (),
    accelerate: bool = False,
) -> Program:
    """The program of a Levenberg-Marquardt phase: `steps` steps per outer epoch on `rows` rows.

    A step costs a closure for the Jacobian and one for each trial; `accelerate` adds to each trial its acceleration
    (see `_acceleration`), as dear as two closures. `affine` marks unknowns to be eliminated (see `_elimination`): once
    they are no longer held, every trial has them at their best. `settings[0]` is for how many steps from the start the
    unknowns are held (or until nothing else can be gained).
    """
    residual_space = rows < objective.surrogate.size

    def prepare(theta: jax.Array, steps: jax.Array, batch: Batch, controls: Controls) -> Prepared:
        linear = linearise(objective, theta, batch, controls, residual_space)
        chosen = eliminated(affine, controls)
        if any(affine):
            linear = projected(linear, chosen)
        squares = linear.gram if linear.jacobian is None else None
        mean = (jnp.trace(squares) if squares is not None else jnp.sum(linear.gram**2)) / theta.size
        half_gradient = linear.gradient + controls.pull * controls.mask * (theta - controls.anchor)
        return Prepared(_Model(linear, half_gradient, chosen), mean, 1)

    def attempt(
        model: _Model, theta: jax.Array, damping: jax.Array, batch: Batch, controls: Controls, left: jax.Array
    ) -> Tried:
        damped_equations = factorised(model.linear, damping, controls)
        step = solve_step(model.linear, damped_equations, theta, controls)
        predicted = step @ (damping * step - model.half_gradient)
        if accelerate:
            step = accelerated(objective, model.linear, damped_equations, theta, step, batch, controls)
        if any(affine):
            return Tried(*settled(objective, theta + step, batch, controls, model.chosen), predicted, trial)
        return Tried(theta + step, *objective.value(theta + step, batch, controls), predicted, trial)

    trial, shrink = (TRIAL + ACCELERATION, CAUTIOUS_SHRINK) if accelerate else (TRIAL, SHRINK)
    return damped(objective, Solver(prepare, attempt, least=1, least_attempt=trial, shrink=shrink), steps, tolerance)
