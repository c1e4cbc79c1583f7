"""Limited-memory BFGS (Liu & Nocedal 1989) in the compact form of Byrd, Nocedal & Schnabel (1994).

With the last steps S = (s_1 ... s_h) and changes of gradient Y, the scaling c = s_h.y_h / y_h.y_h, the upper
triangle R of S^T Y and its diagonal D, the direction is -H g with

    H g = c g + S p - c Y q,    q = R^-1 S^T g,    p = R^-T ((D + c Y^T Y) q - c Y^T g).

Two passes over the memory per iteration replace the two-loop recursion's chain of dependent products.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser._inner import Row, all_finite, closures_left, moved, run_steps
from tgsr.optimiser._linesearch import Point, strong_wolfe
from tgsr.optimiser._program import CONVERGED, NON_FINITE, RUNNING, STUCK, Program, Trace

TINY_GRADIENT = 1e-12
LEAST_CURVATURE = 1e-10  # cosine between s and y below which a pair says nothing about the curvature
ROUNDING = 1e-14  # a predicted decrease below this share of the loss is not measurable


class Memory(NamedTuple):
    """The last pairs in a ring, and their inner products."""

    pairs: jax.Array  # (2 history, P): first the steps s, then the changes of gradient y
    sy: jax.Array  # (history, history): s_i . y_j
    yy: jax.Array
    kept: jax.Array  # how many pairs since the memory was empty


def empty_memory(history: int, size: int) -> Memory:
    """No pairs."""
    square = jnp.zeros((history, history))
    return Memory(jnp.zeros((2 * history, size)), square, square, jnp.zeros((), dtype=int))


def remember(memory: Memory, s: jax.Array, y: jax.Array, keep: jax.Array) -> Memory:
    """The memory with the pair (s, y) in place of the oldest, if `keep`."""
    history = len(memory.sy)
    slot = memory.kept % history
    pairs = memory.pairs
    for row, new in ((slot, s), (history + slot, y)):
        pairs = pairs.at[row].set(jnp.where(keep, new, pairs[row]))
    return memory._replace(pairs=pairs, kept=memory.kept + keep)


def quasi_newton(memory: Memory, gradient: jax.Array) -> tuple[jax.Array, Memory]:
    """(-H g, the memory with the inner products of its newest pair)."""
    history = len(memory.sy)
    newest = (memory.kept - 1) % history
    # One pass: products with the newest pair and the gradient. Redoing those of an old pair changes nothing.
    # As columns: a transposed result makes XLA fuse the product into a loop that is twenty times slower.
    vectors = jnp.stack([memory.pairs[newest], memory.pairs[history + newest], gradient])
    products = memory.pairs @ vectors.T
    s_y, s_g = products[:history, 1], products[:history, 2]
    y_s, y_y, y_g = products[history:, 0], products[history:, 1], products[history:, 2]
    sy = memory.sy.at[:, newest].set(s_y).at[newest].set(y_s)
    yy = memory.yy.at[:, newest].set(y_y).at[newest].set(y_y)
    memory = memory._replace(sy=sy, yy=yy)
    scale = jnp.where(memory.kept > 0, sy[newest, newest] / yy[newest, newest], 1.0)

    age = (memory.kept + jnp.arange(history)) % history  # slots from the oldest pair to the newest
    used = jnp.arange(history) >= history - memory.kept
    both = used[:, None] & used
    upper = jnp.where(both, jnp.triu(sy[age][:, age]), jnp.eye(history))
    inner = jnp.where(both, memory.yy[age][:, age], 0.0)
    s_g, y_g = jnp.where(used, s_g[age], 0.0), jnp.where(used, y_g[age], 0.0)
    q = solve_triangular(upper, s_g)
    p = solve_triangular(upper, jnp.diag(upper) * q + scale * (inner @ q - y_g), trans=1)
    weights = jnp.zeros(2 * history).at[age].set(p).at[history + age].set(-scale * q)
    return -(scale * gradient + weights @ memory.pairs), memory


def first_length(gradient: jax.Array) -> jax.Array:
    """Along the bare gradient: a step of at most unit length in the sum of absolute values."""
    return jnp.minimum(1.0, 1.0 / jnp.sum(jnp.abs(gradient)))


class LbfgsState(NamedTuple):
    """Everything the next epoch needs. No gradient: the next batch may be another."""

    theta: jax.Array
    memory: Memory


class _Here(NamedTuple):
    """Where the inner steps are."""

    theta: jax.Array
    loss: jax.Array
    parts: jax.Array
    gradient: jax.Array
    memory: Memory


def lbfgs(
    objective: Objective,
    steps: int,
    history: int,
    first_step: float = 1.0,
    trial_step: float = 1.0,
    tolerance: float = 1e-12,
) -> Program:
    """The program of an L-BFGS phase with a strong Wolfe line search: `steps` steps per outer epoch.

    The line search first tries `trial_step`, and `first_step * min(1, 1 / |g|_1)` while the memory is
    empty. The memory persists over outer epochs. Each epoch starts with a fresh evaluation and a pair is
    formed as soon as its step is taken, so that both of its gradients belong to one batch, whatever batch
    the next epoch brings (PyTorch pairs gradients of two batches there). When no decrease is found, the
    memory is forgotten and the next step follows the gradient; STUCK when that fails too. CONVERGED when
    the gradient vanishes, the predicted decrease drowns in rounding errors, or an epoch lowers the loss by
    less than `tolerance` of it. Rows of the trace stand for the point after the step. `settings[0]` is
    not used.
    """

    @jax.jit
    def start(theta: jax.Array, batch: Batch, controls: Controls) -> LbfgsState:
        return LbfgsState(theta, empty_memory(history, theta.size))

    @jax.jit
    def epoch(state: LbfgsState, batch: Batch, controls: Controls, settings: jax.Array) -> tuple[LbfgsState, Trace]:
        def one_step(here: _Here, left: jax.Array) -> tuple[_Here, Row, jax.Array]:
            direction, memory = quasi_newton(here.memory, here.gradient)
            direction = jnp.where(controls.mask == 0, 0.0, direction)
            downhill = here.gradient @ direction < 0  # false only by rounding errors, or not a number
            memory = memory._replace(kept=jnp.where(downhill, memory.kept, 0))
            direction = jnp.where(downhill, direction, -here.gradient)
            slope = here.gradient @ direction
            bare = memory.kept == 0

            def evaluate(length: jax.Array) -> tuple[jax.Array, jax.Array, tuple[jax.Array, ...]]:
                theta = moved(here.theta, length * direction, controls.mask)
                (loss, parts), gradient = objective.closure(theta, batch, controls)
                return loss, gradient @ direction, (theta, parts, gradient)

            search = strong_wolfe(
                evaluate,
                Point(jnp.zeros_like(slope), here.loss, slope),
                (here.theta, here.parts, here.gradient),
                jnp.where(bare, first_step * first_length(here.gradient), trial_step),
                left,
            )
            theta, parts, gradient = search.extra
            lower = search.low.step > 0
            s, y = theta - here.theta, gradient - here.gradient
            keep = lower & (s @ y > LEAST_CURVATURE * jnp.linalg.norm(s) * jnp.linalg.norm(y))
            memory = remember(memory._replace(kept=jnp.where(lower, memory.kept, 0)), s, y, keep)
            flat = (jnp.max(jnp.abs(gradient)) <= TINY_GRADIENT) | (
                ~lower & ~bare & (-slope <= ROUNDING * jnp.abs(here.loss))
            )
            cut = ~lower & (search.evaluations >= left)  # by the budget: nothing is known of what lies ahead
            status = jnp.where(flat & ~cut, CONVERGED, jnp.where(bare & ~lower & ~cut, STUCK, RUNNING))
            here = _Here(theta, search.low.value, parts, gradient, memory)
            return here, Row(here.loss, parts, objective.surrogate.raw(theta), search.evaluations), status

        (loss, parts), gradient = objective.closure(state.theta, batch, controls)
        begin = jnp.where(jnp.max(jnp.abs(gradient)) <= TINY_GRADIENT, CONVERGED, RUNNING)
        here, trace = run_steps(
            one_step,
            _Here(state.theta, loss, parts, gradient, state.memory),
            Row(loss, parts, objective.surrogate.raw(state.theta), jnp.ones((), dtype=int)),
            jnp.where(all_finite(loss, gradient), begin, NON_FINITE),
            steps,
            closures_left(settings),
        )
        slow = (here.memory.kept > 0) & (loss - here.loss <= tolerance * jnp.abs(here.loss))
        status = jnp.where((trace.status == RUNNING) & slow, CONVERGED, trace.status)
        return LbfgsState(here.theta, here.memory), trace._replace(status=status)

    return Program(start, epoch, lambda state: state.theta, steps)
