"""Variable projection (Golub & Pereyra 1973) in the form of Kaufman (1975): unknowns c in which the rows
r(w, c) = A(w) c + b(w) are affine are not searched but solved for, at every network w that is tried.

With P the projection on what A cannot reach, P r is the residual at the best c, whatever c is, and P J_w its Jacobian
up to a term that Kaufman drops. Levenberg-Marquardt then steps in w alone, and the damping never holds c back.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from tgsr.loss import Batch, Controls, Objective, rows_and_slopes
from tgsr.optimiser._linearised import Linearised

KEPT = 0.1  # of an unknown's distance to the end of its range, in one step: the range is open
TINY = 1e-12  # relative to the diagonal: what cannot be told apart must not blow up
SWEEPS = 60  # of coordinate descent in the box of the unknowns; exact after one when no end is met


def inverse(gram: jax.Array) -> jax.Array:
    """The inverse of a small Gram matrix, independent of the columns' units; zero in a column that is zero."""
    diagonal = jnp.diag(gram)
    scale = jnp.where(diagonal > 0, 1.0 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)), 0.0)
    fair = scale[:, None] * gram * scale
    return scale[:, None] * jnp.linalg.inv(fair + jnp.diag(jnp.where(diagonal > 0, TINY, 1.0))) * scale


def eliminated(affine: tuple[bool, ...], controls: Controls) -> jax.Array:
    """1 per unknown that is eliminated: one that is trained, and drawn nowhere."""
    raw = slice(len(controls.mask) - len(affine), None)
    return jnp.where((controls.mask[raw] > 0) & (controls.pull[raw] == 0), jnp.asarray(affine, dtype=float), 0.0)


def projected(linear: Linearised, chosen: jax.Array) -> Linearised:
    """The rows near theta as a function of what is not eliminated; the eliminated columns are zero."""
    first = linear.gradient.size - chosen.size
    left = jnp.ones(linear.gradient.size).at[first:].set(1.0 - chosen)
    if linear.jacobian is None or linear.rows is None:
        across = chosen[:, None] * linear.gram[first:]  # the last strip of the lower triangle holds whole rows
        weights = inverse(across[:, first:] * chosen) @ across
        gram = (linear.gram - across.T @ weights) * left[:, None] * left
        return Linearised((linear.gradient - weights.T @ (chosen * linear.gradient[first:])) * left, gram, None, None)
    slopes = linear.jacobian[:, first:] * chosen
    weights = inverse(slopes.T @ slopes) @ slopes.T
    jacobian = (linear.jacobian - slopes @ (weights @ linear.jacobian)) * left
    rows = linear.rows - slopes @ (weights @ linear.rows)
    return Linearised(jacobian.T @ rows, jacobian, jacobian, rows)


def best_change(gram: jax.Array, gradient: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """The minimum of d.gram d / 2 + gradient.d with low <= d <= high, for a few d."""

    def sweep(_: int, change: jax.Array) -> jax.Array:
        for i in range(change.size):
            slope = gradient[i] + gram[i] @ change
            moved = change[i] - jnp.where(gram[i, i] > 0, slope / jnp.where(gram[i, i] > 0, gram[i, i], 1.0), 0.0)
            change = change.at[i].set(jnp.clip(moved, low[i], high[i]))
        return change

    free = -inverse(gram) @ gradient
    inside = jnp.all((free >= low) & (free <= high))
    return jnp.where(inside, free, jax.lax.fori_loop(0, SWEEPS, sweep, jnp.clip(free, low, high)))


def settled(
    objective: Objective, theta: jax.Array, batch: Batch, controls: Controls, chosen: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(theta with the chosen unknowns at their best, loss, parts): one pass over the points."""
    surrogate = objective.surrogate
    transforms = surrogate.transforms
    count, first = len(transforms), surrogate.network_size

    def add(total: tuple[jax.Array, ...], block: Batch) -> tuple[tuple[jax.Array, ...], None]:
        rows, slopes, share = rows_and_slopes(objective, theta, block, controls)
        new = [
            jnp.stack([jnp.sum(s * r * r) for r, s in zip(rows, share, strict=True)]),
            jnp.stack([(s * r) @ a for r, a, s in zip(rows, slopes, share, strict=True)]),
            jnp.stack([(s[:, None] * a).T @ a for a, s in zip(slopes, share, strict=True)]),
        ]
        return tuple(a + b for a, b in zip(total, new, strict=True)), None

    n = len(objective.parts)
    zero = (jnp.zeros(n), jnp.zeros((n, count)), jnp.zeros((n, count, count)))
    (parts, by_one, by_two), _ = jax.lax.scan(add, zero, batch)
    gradient = chosen * (controls.weights @ by_one)
    gram = chosen[:, None] * jnp.tensordot(controls.weights, by_two, 1) * chosen
    now = jnp.stack(list(surrogate.values(surrogate.raw(theta)).values()))
    low, high = (jnp.asarray(ends) for ends in zip(*(t.range for t in transforms), strict=True))
    size = jnp.asarray([t.size for t in transforms])

    def room(distance: jax.Array) -> jax.Array:
        return jnp.maximum(jnp.minimum((1.0 - KEPT) * distance, distance - TINY * size), 0.0)

    change = best_change(gram, gradient, -room(now - low), room(high - now))
    change = jnp.where(chosen > 0, change, 0.0)
    raw = jnp.stack([t.inverse(now[i] + change[i], jnp) for i, t in enumerate(transforms)])
    theta = theta.at[first:].set(jnp.where(change == 0, surrogate.raw(theta), raw))
    parts = parts + 2.0 * by_one @ change + jnp.einsum("pij,i,j->p", by_two, change, change)
    return theta, objective.total(theta, parts, controls), parts
