"""What every optimiser is to the training loop: a start, and one compiled outer epoch of inner steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from tgsr.loss import Batch, Controls

State = Any  # a pytree of arrays: all that the next step needs, and nothing else

RUNNING, CONVERGED, STUCK, NON_FINITE = 0, 1, 2, 3


class Trace(NamedTuple):
    """What an outer epoch shows of its inner steps (never needed by the next one)."""

    loss: jax.Array  # (steps,)
    parts: jax.Array  # (steps, parts)
    raw: jax.Array  # (steps, unknowns)
    closures: jax.Array  # (steps,) evaluations of loss and gradient, or their equals
    status: jax.Array  # () one of the codes above


@dataclass(frozen=True)
class Program:
    """`start(theta, batch, controls)` and `epoch(state, batch, controls, settings)`; both compiled once.

    `settings` holds what may change between outer epochs: the optimiser's own number (a learning rate, say) and, where
    there is a budget, the closures that are left.
    """

    start: Callable[[jax.Array, Batch, Controls], State]
    epoch: Callable[[State, Batch, Controls, jax.Array], tuple[State, Trace]]
    theta: Callable[[State], jax.Array]
    steps: int  # inner steps per epoch
