"""The optimiser of the paper: L-BFGS of fixed step length, without a line search, as PyTorch does it.

Published results used `torch.optim.LBFGS`, its rate annealed over the outer epochs. Memory, last direction
and last gradient persist from one outer epoch to the next: the first pair of an epoch spans both batches.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._inner import PAUSED, Row, all_finite, closures_left, moved, no_row, run_steps
from tgsr.optimiser._lbfgs import Memory, empty_memory, first_length, quasi_newton, remember
from tgsr.optimiser._program import CONVERGED, NON_FINITE, RUNNING, Program, Trace

LEAST_CURVATURE = 1e-10  # y.s of a pair that is kept
SMALL_GRADIENT = 1e-7
SMALL_CHANGE = 1e-9  # of the loss, of theta, and of the slope


class PaperState(NamedTuple):
    """What PyTorch keeps between two calls of `step`."""

    theta: jax.Array
    memory: Memory
    direction: jax.Array
    length: jax.Array
    gradient: jax.Array  # where the last direction was taken
    iterations: jax.Array


class _Here(NamedTuple):
    """Where the inner steps are."""

    state: PaperState
    loss: jax.Array  # of the iteration before, in this epoch


def paper_rates(epochs: int, first: float = 0.1, last: float = 0.001) -> np.ndarray:
    """Cosine annealing: outer epoch e has the rate last + (first - last) (1 + cos(pi e / epochs)) / 2."""
    return last + (first - last) * (1.0 + np.cos(np.pi * np.arange(epochs) / epochs)) / 2.0


def paper_lbfgs(objective: Objective, steps: int = 20, history: int = 100) -> Program:
    """The program of the paper's L-BFGS: `steps` steps per outer epoch, one evaluation each.

    `settings[0]` is the learning rate of the epoch. The very first step has the length `rate *
    min(1, 1 / |g|_1)`, every other `rate`. An epoch ends early, and the next one goes on, when the loss
    changes by less than 1e-9, or no weight by more, or the slope exceeds -1e-9; a gradient up to 1e-7 is
    CONVERGED. Rows of the trace stand for the point before the step: the loss after the last one is the
    next epoch's first.
    """

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> PaperState:
        zero = jnp.zeros_like(theta)
        return PaperState(theta, empty_memory(history, theta.size), zero, jnp.zeros(()), zero, jnp.zeros((), int))

    @jax.jit
    def epoch(state: PaperState, batch: Batch, controls: Controls, settings: jax.Array) -> tuple[PaperState, Trace]:
        rate = settings[0]

        def one_step(here: _Here, _: jax.Array) -> tuple[_Here, Row, jax.Array]:
            old = here.state
            (loss, parts), gradient = objective.closure(old.theta, batch, controls)
            s = old.length * old.direction
            y = gradient - old.gradient
            usable = all_finite(loss, gradient)
            small = jnp.max(jnp.abs(gradient)) <= SMALL_GRADIENT
            first = jnp.isinf(here.loss)  # no step was taken in this epoch yet
            stalled = ~first & ((jnp.max(jnp.abs(s)) <= SMALL_CHANGE) | (jnp.abs(loss - here.loss) < SMALL_CHANGE))
            go = usable & ~small & ~stalled

            memory = remember(old.memory, s, y, go & (s @ y > LEAST_CURVATURE))
            direction, memory = quasi_newton(memory, gradient)
            direction = jnp.where(controls.mask == 0, 0.0, direction)
            length = rate * jnp.where(old.iterations == 0, first_length(gradient), 1.0)
            flat = gradient @ direction > -SMALL_CHANGE
            theta = jnp.where(go & ~flat, moved(old.theta, length * direction, controls.mask), old.theta)
            rest = (direction, length, gradient, old.iterations + 1)
            kept = (jnp.where(go, a, b) for a, b in zip(rest, old[2:], strict=True))
            status = jnp.where(go & ~flat, RUNNING, jnp.where(small, CONVERGED, PAUSED))
            status = jnp.where(usable, status, NON_FINITE)
            row = Row(loss, parts, objective.surrogate.raw(old.theta), jnp.ones((), dtype=int))
            return _Here(PaperState(theta, memory, *kept), loss), row, status

        begin = _Here(state, jnp.full((), jnp.inf))
        here, trace = run_steps(
            one_step, begin, no_row(objective, state.theta), RUNNING, steps, closures_left(settings)
        )
        return here.state, trace

    return Program(start, epoch, lambda state: state.theta, steps)
