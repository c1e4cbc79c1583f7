"""Self-scaled quasi-Newton with a dense inverse Hessian H: SSBFGS and SSBroyden (Al-Baali 1998; Al-Baali, Spedicato &
Maggioni 2014), which Urbán, Stefanou & Pons (2025) found to train physics-informed networks far below plain BFGS.

With a step s, the change of gradient y and u = H y, a member phi of Broyden's family with scaling tau is

    H+ = (H - u u^T / y.u + phi (y.u) v v^T) / tau + s s^T / y.s,    v = s / y.s - u / y.u,

BFGS at phi = tau = 1. Scaling shrinks curvature that old pairs overestimate: with B = H^-1 and b = s.B s / y.s, SSBFGS
takes tau = min(1, 1 / b); SSBroyden chooses phi and tau together so that H stays well conditioned. L-BFGS forgets all
but its last pairs; on the long, curved valleys of these losses the pairs before them are what is missing.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._inner import Row, all_finite, closures_left, moved, run_steps
from tgsr.optimiser._lbfgs import LEAST_CURVATURE, ROUNDING, TINY_GRADIENT, first_length
from tgsr.optimiser._linesearch import Point, strong_wolfe
from tgsr.optimiser._program import CONVERGED, NON_FINITE, RUNNING, STUCK, Program, Trace

UPDATES = ("broyden", "bfgs")
LONGER = 1.5  # than the last step: scaling keeps H large, and the full step is nearly always too long


class Inverse(NamedTuple):
    """The inverse Hessian; while there is no pair it stands for the identity, whatever the matrix holds."""

    matrix: jax.Array  # (P, P)
    pairs: jax.Array  # how many since it was the identity


class SelfScaledState(NamedTuple):
    """Everything the next epoch needs. No gradient: the next batch may be another."""

    theta: jax.Array
    inverse: Inverse
    length: jax.Array  # of the last step, in units of the quasi-Newton one
    held: jax.Array  # 1 while the unknowns are


class _Here(NamedTuple):
    """Where the inner steps are."""

    theta: jax.Array
    loss: jax.Array
    parts: jax.Array
    gradient: jax.Array
    direction: jax.Array
    inverse: Inverse
    length: jax.Array


def bfgs_factors(b: jax.Array, h: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """(phi, tau) of SSBFGS."""
    return jnp.ones_like(b), jnp.minimum(1.0, 1.0 / b)


def broyden_factors(b: jax.Array, h: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """(phi, tau) of SSBroyden, from b = s.B s / y.s and h = y.H y / y.s; theta is phi's twin for B."""
    a = jnp.maximum(b * h - 1.0, 1e-12)  # at least 0 by Cauchy and Schwarz; 0 when y is along B s
    rho = jnp.minimum(1.0, h * (1.0 - jnp.sqrt(a / (1.0 + a))))
    theta = jnp.maximum((rho - 1.0) / a, jnp.minimum(1.0 / rho, (1.0 - b) / b))
    sigma = 1.0 + a * theta  # det(B+ without scaling) over that of BFGS
    shared = jnp.minimum(1.0, 1.0 / b) * jnp.abs(sigma) ** (-1.0 / max(size - 1, 1))
    tau = jnp.where(
        theta > 0, jnp.minimum(shared, jnp.minimum(1.0, 1.0 / b) / jnp.abs(theta)), jnp.minimum(shared, sigma)
    )
    return (1.0 - theta) / sigma, tau


FACTORS = {"broyden": broyden_factors, "bfgs": bfgs_factors}


def updated(
    inverse: Inverse, s: jax.Array, y: jax.Array, b_s: jax.Array, gradient: jax.Array, keep: jax.Array, update: str
) -> tuple[Inverse, jax.Array]:
    """(H+, -H+ gradient) after the pair (s, y), if `keep`; `b_s` = s.B s.

    Two passes over H and no more: one product with y and the gradient together, and one that writes H+. The direction
    follows from the product.
    """
    fresh, y_s = inverse.pairs == 0, s @ y
    guess = jnp.where(keep, y_s / (y @ y), 1.0)  # the curvature that the first pair shows, in place of the identity
    products = inverse.matrix @ jnp.stack([y, gradient], axis=1)
    u, h_g = (jnp.where(fresh, guess * v, p) for v, p in zip((y, gradient), products.T, strict=True))
    y_u = y @ u
    b_s = jnp.where(fresh, s @ s / guess, b_s)
    phi, tau = FACTORS[update](b_s / y_s, y_u / y_s, s.size)
    v = s / y_s - u / y_u
    # H+ = H / tau + s p^T + u q^T
    p = s / y_s + (phi * y_u / tau) * v / y_s
    q = -(u / y_u + phi * v) / tau
    diagonal = jnp.where(fresh, guess, 0.0) * jnp.eye(s.size)
    base = jnp.where(fresh, diagonal, inverse.matrix)
    matrix = jnp.where(keep, base / tau + s[:, None] * p + u[:, None] * q, inverse.matrix)
    new_direction = -(h_g / tau + s * (p @ gradient) + u * (q @ gradient))
    direction = jnp.where(keep, new_direction, -jnp.where(fresh, gradient, h_g))
    return Inverse(matrix, inverse.pairs + keep), direction


def self_scaled(objective: Objective, steps: int, update: str = "broyden", tolerance: float = 1e-12) -> Program:
    """The program of a self-scaled quasi-Newton phase: `steps` steps per outer epoch, with a strong Wolfe search.

    As in L-BFGS: H persists over outer epochs, an epoch starts with a fresh evaluation, no pair spans two batches. When
    no decrease is found H is forgotten and the next step follows the gradient; STUCK when that fails too. CONVERGED
    when the gradient vanishes, the predicted decrease drowns in rounding errors, or an epoch lowers the loss by less
    than `tolerance` of it. Rows of the trace stand for the point after the step. `settings[0]` is 1 in an epoch that
    holds the unknowns; H knows nothing of them then, and is forgotten when they are let go.
    """
    is_unknown = jnp.arange(objective.surrogate.size) >= objective.surrogate.network_size

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> SelfScaledState:
        return SelfScaledState(
            theta, Inverse(jnp.zeros((theta.size, theta.size)), jnp.zeros((), dtype=int)), jnp.ones(()), jnp.zeros(())
        )

    @jax.jit
    def epoch(
        state: SelfScaledState, batch: Batch, controls: Controls, settings: jax.Array
    ) -> tuple[SelfScaledState, Trace]:
        def one_step(here: _Here, left: jax.Array) -> tuple[_Here, Row, jax.Array]:
            direction = jnp.where(controls.mask == 0, 0.0, here.direction)
            downhill = here.gradient @ direction < 0  # false only by rounding errors, or not a number
            pairs = jnp.where(downhill, here.inverse.pairs, 0)
            direction = jnp.where(downhill, direction, -here.gradient)
            slope = here.gradient @ direction
            bare = pairs == 0

            def evaluate(length: jax.Array) -> tuple[jax.Array, jax.Array, tuple[jax.Array, ...]]:
                theta = moved(here.theta, length * direction, controls.mask)
                (loss, parts), gradient = objective.closure(theta, batch, controls)
                return loss, gradient @ direction, (theta, parts, gradient)

            search = strong_wolfe(
                evaluate,
                Point(jnp.zeros_like(slope), here.loss, slope),
                (here.theta, here.parts, here.gradient),
                jnp.where(bare, first_length(here.gradient), jnp.minimum(1.0, LONGER * here.length)),
                left,
            )
            theta, parts, gradient = search.extra
            length = search.low.step
            lower = length > 0
            s, y = theta - here.theta, gradient - here.gradient
            keep = lower & (s @ y > LEAST_CURVATURE * jnp.linalg.norm(s) * jnp.linalg.norm(y))
            inverse = here.inverse._replace(pairs=jnp.where(lower, pairs, 0))
            # s = length * direction and direction = -H g, so that B s = -length g
            inverse, direction = updated(inverse, s, y, -length * (here.gradient @ s), gradient, keep, update)
            flat = (jnp.max(jnp.abs(gradient)) <= TINY_GRADIENT) | (
                ~lower & ~bare & (-slope <= ROUNDING * jnp.abs(here.loss))
            )
            cut = ~lower & (search.evaluations >= left)  # by the budget: nothing is known of what lies ahead
            status = jnp.where(flat & ~cut, CONVERGED, jnp.where(bare & ~lower & ~cut, STUCK, RUNNING))
            next_length = jnp.where(lower & ~bare, length, 1.0)
            here = _Here(theta, search.low.value, parts, gradient, direction, inverse, next_length)
            return here, Row(here.loss, parts, objective.surrogate.raw(theta), search.evaluations), status

        held = settings[0]
        controls = controls._replace(mask=controls.mask * jnp.where(is_unknown, 1.0 - held, 1.0))
        pairs = jnp.where(held < state.held, 0, state.inverse.pairs)
        inverse = state.inverse._replace(pairs=pairs)
        (loss, parts), gradient = objective.closure(state.theta, batch, controls)
        direction = -jnp.where(pairs == 0, gradient, inverse.matrix @ gradient)
        begin = jnp.where(jnp.max(jnp.abs(gradient)) <= TINY_GRADIENT, CONVERGED, RUNNING)
        here, trace = run_steps(
            one_step,
            _Here(state.theta, loss, parts, gradient, direction, inverse, state.length),
            Row(loss, parts, objective.surrogate.raw(state.theta), jnp.ones((), dtype=int)),
            jnp.where(all_finite(loss, gradient), begin, NON_FINITE),
            steps,
            closures_left(settings),
        )
        slow = (here.inverse.pairs > 0) & (loss - here.loss <= tolerance * jnp.abs(here.loss))
        status = jnp.where((trace.status == RUNNING) & slow, CONVERGED, trace.status)
        status = jnp.where((held > 0) & (status != NON_FINITE), RUNNING, status)  # all that is left is to let them go
        return SelfScaledState(here.theta, here.inverse, here.length, held), trace._replace(status=status)

    return Program(start, epoch, lambda state: state.theta, steps)
