"""The inner steps of one outer epoch: they end early when nothing is left to do; each is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from tgsr.loss import Objective
from tgsr.optimiser._program import RUNNING, Trace

PAUSED = -1  # this epoch is over, the next one goes on
UNLIMITED = 2**53  # closures: more than any run takes, and exact as a float

Carry = TypeVar("Carry")


class Row(NamedTuple):
    """One row of the trace: loss, parts and raw unknowns at one and the same theta, and the step's cost."""

    loss: jax.Array
    parts: jax.Array
    raw: jax.Array
    closures: jax.Array


def run_steps(
    step: Callable[[Carry, jax.Array], tuple[Carry, Row, jax.Array]],
    carry: Carry,
    opening: Row,
    status: jax.Array | int,
    steps: int,
    left: jax.Array,
) -> tuple[Carry, Trace]:
    """At most `steps` times `step`, while the status is RUNNING and closures are left (`step` is told how many).

    Steps that are not taken repeat the last row (or the opening one) and cost nothing; the first row includes
    the cost of the opening.
    """
    unpaid = opening._replace(closures=jnp.zeros((), dtype=int))
    rows = jax.tree.map(lambda a: jnp.broadcast_to(a, (steps, *a.shape)), unpaid)

    def go(
        loop: tuple[Carry, Row, jax.Array, jax.Array, jax.Array],
    ) -> tuple[Carry, Row, jax.Array, jax.Array, jax.Array]:
        carry, rows, _, taken, left = loop
        carry, row, status = step(carry, left)
        rows = jax.tree.map(lambda old, new: old.at[taken].set(new), rows, row)
        return carry, rows, status, taken + 1, left - row.closures

    carry, rows, status, taken, _ = jax.lax.while_loop(
        lambda loop: (loop[2] == RUNNING) & (loop[3] < steps) & (loop[4] > 0),
        go,
        (carry, rows, jnp.asarray(status, dtype=int), jnp.zeros((), dtype=int), left - opening.closures),
    )
    number = jnp.arange(steps)
    last = jnp.minimum(number, jnp.maximum(taken - 1, 0))
    closures = jnp.where(number < taken, rows.closures, 0).at[0].add(opening.closures)
    seen = Trace(rows.loss[last], rows.parts[last], rows.raw[last], closures, jnp.maximum(status, RUNNING))
    return carry, seen


def closures_left(settings: jax.Array) -> jax.Array:
    """What `settings` leaves of the budget; without a budget, no limit."""
    return settings[1].astype(int) if settings.size > 1 else jnp.full((), UNLIMITED, dtype=int)


def no_row(objective: Objective, theta: jax.Array) -> Row:
    """The opening of an epoch that evaluates nothing before its first step."""
    parts, raw = jnp.zeros(len(objective.parts)), objective.surrogate.raw(theta)
    return Row(jnp.zeros(()), parts, raw, jnp.zeros((), dtype=int))


def all_finite(loss: jax.Array, gradient: jax.Array) -> jax.Array:
    """Whether an evaluation can be used."""
    return jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradient))


def moved(theta: jax.Array, step: jax.Array, mask: jax.Array) -> jax.Array:
    """theta + step; entries that are not trained keep their bits, whatever the step says."""
    return jnp.where(mask == 0, theta, theta + step)
