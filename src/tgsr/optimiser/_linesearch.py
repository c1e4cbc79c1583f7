"""A line search for the strong Wolfe conditions (Nocedal & Wright 2006, algorithms 3.5 and 3.6) in one loop.

Along a descent direction, f(t) is the loss and f'(t) its slope. A step is accepted when

    f(t) <= f(0) + 1e-4 t f'(0)   and   |f'(t)| <= 0.9 |f'(0)|.

`low` is the best point seen that satisfies the first, `high` the other end of an interval that contains such
a step; as long as no such end is known it lies at infinity, and the trial steps grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

DECREASE = 1e-4
CURVATURE = 0.9
EVALUATIONS = 25
GROWTH = (1.1, 9.0)  # least and largest extension, in units of the last one
MARGIN = 0.1  # a trial keeps this share of the interval away from both of its ends
ROUNDING = 2.0**-52

Extra = Any  # what an evaluation yields besides value and slope, kept for the accepted step


class Point(NamedTuple):
    """A step with its value and slope."""

    step: jax.Array
    value: jax.Array
    slope: jax.Array


class Search(NamedTuple):
    """The best step found: `accepted` by both conditions, or only lower (step > 0), or none (step 0)."""

    low: Point
    extra: Extra
    high: Point
    trial: jax.Array
    evaluations: jax.Array
    accepted: jax.Array


def wolfe(start: Point, at: Point) -> tuple[jax.Array, jax.Array]:
    """(sufficient decrease, strong curvature condition)."""
    enough = at.value <= start.value + DECREASE * at.step * start.slope
    return enough, jnp.abs(at.slope) <= CURVATURE * jnp.abs(start.slope)


def cubic_minimum(a: Point, b: Point) -> jax.Array:
    """Where the cubic through both values and slopes has its minimum; NaN where it has none."""
    width = b.step - a.step
    mean = a.slope + b.slope - 3.0 * (b.value - a.value) / width
    root = jnp.sign(width) * jnp.sqrt(mean**2 - a.slope * b.slope)
    return b.step - width * (b.slope + root - mean) / (b.slope - a.slope + 2.0 * root)


def _longer(before: Point, low: Point) -> jax.Array:
    extension = low.step - before.step
    least, largest = (low.step + factor * extension for factor in GROWTH)
    best = cubic_minimum(before, low)  # left of low: the cubic falls for ever
    return jnp.where(best > low.step, jnp.clip(best, least, largest), largest)


def _between(low: Point, high: Point, width_before: jax.Array) -> jax.Array:
    width = high.step - low.step
    share = (cubic_minimum(low, high) - low.step) / width
    slow = jnp.abs(width) > width_before * 2.0 / 3.0
    share = jnp.where(jnp.isnan(share) | slow, 0.5, jnp.clip(share, MARGIN, 1.0 - MARGIN))
    return low.step + width * jnp.where(jnp.isfinite(high.value), share, MARGIN)


def strong_wolfe(
    evaluate: Callable[[jax.Array], tuple[jax.Array, jax.Array, Extra]],
    start: Point,
    extra: Extra,
    first: jax.Array,
    most: jax.Array | int = EVALUATIONS,
) -> Search:
    """Search from `start` (step 0, slope < 0, with `extra`); `evaluate(t)` gives value, slope and extra.

    At most `most` evaluations, and never more than EVALUATIONS.
    A value or slope that is not finite means that the step was too long.
    """

    def searching(search: Search) -> jax.Array:
        # An interval in which the loss changes by less than its rounding error cannot be told from a point.
        width = jnp.abs(search.high.step - search.low.step)
        telling = width * jnp.abs(start.slope) > ROUNDING * jnp.abs(start.value)
        return ~search.accepted & (search.evaluations < jnp.minimum(most, EVALUATIONS)) & telling

    def attempt(search: Search) -> Search:
        low, high = search.low, search.high
        value, slope, new_extra = evaluate(search.trial)
        at = Point(search.trial, value, slope)
        enough, flat = wolfe(start, at)
        finite = jnp.isfinite(value) & jnp.isfinite(slope)
        good = finite & enough & (value < low.value)
        beyond = slope * jnp.sign(high.step - low.step) >= 0  # a minimum lies between old and new low

        def choose(condition: jax.Array, yes: Any, no: Any) -> Any:
            return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)

        bad_end = Point(search.trial, jnp.where(finite, value, jnp.inf), slope)
        new_high = choose(good, choose(beyond, low, high), bad_end)
        new_low = choose(good, at, low)
        width_before = jnp.abs(high.step - low.step)
        trial = jnp.where(jnp.isinf(new_high.step), _longer(low, new_low), _between(new_low, new_high, width_before))
        kept = choose(good, new_extra, search.extra)
        return Search(new_low, kept, new_high, trial, search.evaluations + 1, good & flat)

    unknown = jnp.full_like(start.value, jnp.inf)
    begin = Search(
        start,
        extra,
        Point(unknown, unknown, unknown),
        first,
        jnp.zeros((), dtype=int),
        jnp.zeros((), dtype=bool),
    )
    return jax.lax.while_loop(searching, attempt, begin)
