"""Geodesic acceleration of a damped Gauss-Newton step (Transtrum & Sethna 2012).

The rows of a network bend: along the step d they are r + t J d + t^2 / 2 r'', with r'' their second derivative in the
direction of d. The same damped equations with r'' in place of r give the acceleration a of the path that d begins, and
theta + d + a / 2 follows the curved valley where theta + d leaves it. It needs no further factorisation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from tgsr.loss import Batch, Controls, Objective, weighted_rows
from tgsr.optimiser._linearised import Damped, Linearised

REACH = 0.1  # of the step, to either side, over which the rows' bending is seen
MOST = 0.75  # of the step's length that its acceleration may have: beyond, the series means nothing


def bending(
    objective: Objective, theta: jax.Array, step: jax.Array, batch: Batch, controls: Controls, backward: bool
) -> jax.Array:
    """The second derivative r'' of all rows along a step; `backward`: J^T r'' instead, block by block.

    By central differences: the step is long enough that rounding does not matter, an error of a percent in a
    correction does not either, and two more evaluations compile in a fraction of the time of a second derivative.
    """

    def block_bending(block: Batch) -> jax.Array:
        def rows(theta: jax.Array) -> jax.Array:
            return weighted_rows(objective, theta, block, controls)

        ahead, behind = jax.lax.map(lambda share: rows(theta + share * step), jnp.asarray([REACH, -REACH]))
        here, pull_back = jax.vjp(rows, theta) if backward else (rows(theta), None)
        bent = (ahead - 2.0 * here + behind) / REACH**2
        return bent if pull_back is None else pull_back(bent)[0]

    if not backward:
        return jax.lax.scan(lambda c, block: (c, block_bending(block)), None, batch)[1].reshape(-1)
    total, _ = jax.lax.scan(lambda t, block: (t + block_bending(block), None), jnp.zeros_like(theta), batch)
    return total * controls.mask


def accelerated(
    objective: Objective,
    linear: Linearised,
    damped: Damped,
    theta: jax.Array,
    step: jax.Array,
    batch: Batch,
    controls: Controls,
) -> jax.Array:
    """The step with half its acceleration; as it was where that is too long."""
    if linear.jacobian is None:
        back = bending(objective, theta, step, batch, controls, backward=True)
        acceleration = -cho_solve((damped.factor, True), back)
    else:
        bent = bending(objective, theta, step, batch, controls, backward=False)
        acceleration = -(linear.jacobian.T @ cho_solve((damped.factor, True), bent)) / damped.diagonal
    small = jnp.linalg.norm(acceleration) <= MOST * jnp.linalg.norm(step)  # false for NaN
    return jnp.where(small, step + 0.5 * acceleration, step)
