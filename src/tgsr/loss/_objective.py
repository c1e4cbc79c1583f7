"""The loss as one function of theta: a weighted sum of mean squares, evaluated in blocks of points.

Every block holds the same share of every term, so that a block's channels stay in cache through all layers, memory does
not grow with the number of points, and the sum over blocks has a fixed order (the same bits on one core, on two, and on
several devices).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._random import stream
from tgsr.loss._collapsed import asked, rows_of
from tgsr.loss._passes import tapes_of
from tgsr.loss._plan import TermPlan
from tgsr.loss._rows import Part, Place, whitened
from tgsr.loss._spread import Spread, summed, whole_slots
from tgsr.network._surrogate import Surrogate
from tgsr.problem._problem import Problem

# Numbers in the widest layer of one block. On a CPU larger blocks leave the cache and smaller ones waste time on
# overheads; an accelerator has no such cache to stay in and wants few large ones (1 GB in float64).
BLOCK_NUMBERS, ACCELERATOR_BLOCK_NUMBERS = 250_000, 128_000_000
SINGLE_PRECISION = 1.6  # times as many in float32: XLA puts too small a product on one thread


class TermBatch(NamedTuple):
    """The points of a term in blocks: x per point set (blocks, points, d), share (blocks, points) is 1/n or 0."""

    x: tuple[jax.Array, ...]
    share: jax.Array
    stored: dict[str, jax.Array]


Batch = tuple[TermBatch, ...]


class Controls(NamedTuple):
    """What may change between outer epochs without a new program."""

    weights: jax.Array  # one per part
    sigma: jax.Array  # one per measured part
    mask: jax.Array  # 1 where theta is trained, 0 where it stays
    anchor: jax.Array  # theta is drawn to the anchor with strength pull: + sum pull (theta - anchor)^2
    pull: jax.Array


@dataclass(frozen=True, eq=False)
class Objective:
    """The loss of a problem: named parts, their sum, its gradient, and its rows.

    Two objectives are equal if they compute the same from the same batch: what is compiled for one serves the other.
    Seeds, readings and noise levels do not matter, they come with batch and controls.
    """

    problem: Problem
    surrogate: Surrogate
    plans: tuple[TermPlan, ...]
    sizes: tuple[tuple[float, ...], ...]  # characteristic size of each part of each term
    blocks: int
    collapsing: bool = True
    whitening: bool = True  # False: data rows stay standardised residuals whatever their likelihood
    engine: str = "jax"  # "native": `closure` by the compiled passes where they serve
    spread: Spread | None = None  # the devices over which `closure` takes its blocks from `placed` batches

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        plans = tuple(
            (
                plan.content,
                tuple(tuple(sorted(one.items())) for one in (*plan.wanted, plan.carried)),
                plan.collapses,
                tuple((p.name, p.kind, p.noise and p.noise.with_scale(1.0)) for p in plan.term.parts),
            )
            for plan in self.plans
        )
        return self.surrogate, plans, self.sizes, self.blocks, self.collapsing, self.whitening, self.engine, self.spread

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Objective) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every part of every term, in the order of weights and histories."""
        return tuple(part for plan in self.plans for part in plan.term.parts)

    # ---- points

    def draw(self, seed: int, name: str = "main-batch", *index: int, keep: Batch | None = None) -> Batch:
        """Points for every term from stream `name`; measured points stay those of `keep`, if given."""
        batches = []
        for number, plan in enumerate(self.plans):
            if keep is not None and plan.term.fixed:
                batches.append(keep[number])
                continue
            # Each term has its own stream: how many points one draws cannot move another's.
            points = plan.term.draw(stream(seed, name, *index, number))
            batches.append(self.blocked(points, dict(plan.term.stored)))
        return tuple(batches)

    def blocked(self, points: Sequence[np.ndarray], stored: Mapping[str, np.ndarray]) -> TermBatch:
        """Points cut into this objective's blocks; padding repeats the first points with share 0."""
        n = len(points[0])
        per_block = -(-n // self.blocks)
        order = np.resize(np.arange(n), self.blocks * per_block)
        real = np.arange(self.blocks * per_block) < n

        def cut(array: np.ndarray) -> jax.Array:
            return jnp.asarray(array[order].reshape(self.blocks, per_block, *array.shape[1:]))

        share = np.where(real, 1.0 / n, 0.0).reshape(self.blocks, per_block)
        return TermBatch(tuple(cut(p) for p in points), jnp.asarray(share), {k: cut(v) for k, v in stored.items()})

    def points_of(self, batch: Batch, term: int) -> np.ndarray:
        """The real points of a term, without padding."""
        return self.real(batch[term].x[0], batch[term])

    @staticmethod
    def real(stored: jax.Array, term: TermBatch) -> np.ndarray:
        """What is stored per point of a term, blocks joined and padding left out."""
        array = np.asarray(stored)
        return array.reshape(-1, *array.shape[2:])[np.asarray(term.share).reshape(-1) > 0]

    def placed(self, batch: Batch) -> Batch:
        """The batch as `closure` takes it: dealt out over the devices, if there are several."""
        return batch if self.spread is None else self.spread.dealt_out(batch, self.blocks)

    # ---- the loss

    def rows(self, theta: jax.Array, block: Batch, controls: Controls) -> list[list[jax.Array]]:
        """The scaled rows of every term at one block of points."""
        return self._rows(range(len(self.plans)), theta, block, controls, "jax")

    def term_rows(self, number: int, theta: jax.Array, batch: TermBatch, controls: Controls) -> list[jax.Array]:
        """The scaled rows of one term at a block of its points."""
        return self._rows([number], theta, [batch], controls, "jax")[0]

    def _rows(
        self, numbers: Sequence[int], theta: jax.Array, batches: Sequence[TermBatch], controls: Controls, engine: str
    ) -> list[list[jax.Array]]:
        unknowns = self.surrogate.unknowns(theta)
        asks = [
            ask
            for number, batch in zip(numbers, batches, strict=True)
            for ask in asked(self.plans[number], self.surrogate, self.collapsing, batch.x, unknowns)
        ]
        tapes = iter(tapes_of(self.surrogate, theta, asks, engine))
        out = []
        for number, batch in zip(numbers, batches, strict=True):
            plan = self.plans[number]
            own = list(itertools.islice(tapes, plan.point_sets))
            getters = [self.surrogate.getter(one) for one in own]
            place = Place(getters, batch.x, unknowns, batch.stored, controls.sigma)
            rows = rows_of(plan, self.surrogate, self.collapsing, place, own)
            out.append(self.scaled(number, rows))
        return out

    def scaled(self, number: int, rows: Sequence[jax.Array]) -> list[jax.Array]:
        """Rows of a term over their characteristic size; those of measurements by their likelihood."""
        return [
            whitened(row, part.noise) if self.whitening and part.noise is not None else row / size
            for row, part, size in zip(rows, self.plans[number].term.parts, self.sizes[number], strict=True)
        ]

    def block_parts(self, theta: jax.Array, block: Batch, controls: Controls, engine: str = "jax") -> jax.Array:
        """The mean-square contribution of one block to every part. Native passes have no forward-mode derivative."""
        numbers = range(len(self.plans))
        squares = [
            jnp.sum(batch.share * row * row)
            for batch, rows in zip(block, self._rows(numbers, theta, block, controls, engine), strict=True)
            for row in rows
        ]
        return jnp.stack(squares)

    def value(self, theta: jax.Array, batch: Batch, controls: Controls) -> tuple[jax.Array, jax.Array]:
        """(loss, parts): the weighted sum and the mean squares behind it."""
        start = jnp.zeros(len(self.parts))
        parts, _ = jax.lax.scan(lambda s, block: (s + self.block_parts(theta, block, controls), None), start, batch)
        return self.total(theta, parts, controls), parts

    @staticmethod
    def total(theta: jax.Array, parts: jax.Array, controls: Controls) -> jax.Array:
        """The loss from its parts."""
        return controls.weights @ parts + controls.pull @ (theta - controls.anchor) ** 2

    def closure(
        self, theta: jax.Array, batch: Batch, controls: Controls
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        """((loss, parts), gradient) over a `placed` batch: one evaluation of the budget."""

        def block_sums(theta: jax.Array, block: Batch, controls: Controls) -> jax.Array:
            def block_loss(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
                parts = self.block_parts(theta, block, controls, self.engine)
                return controls.weights @ parts, parts

            (_, parts), gradient = jax.value_and_grad(block_loss, has_aux=True)(theta)
            return jnp.concatenate([parts, gradient])

        sums = summed(block_sums, theta, batch, controls, self.blocks, self.spread)
        parts, gradient = jnp.split(sums, [len(self.parts)])
        gradient = controls.mask * (gradient + 2.0 * controls.pull * (theta - controls.anchor))
        return (self.total(theta, parts, controls), parts), gradient


def block_count(
    plans: Sequence[TermPlan],
    surrogate: Surrogate,
    counts: Sequence[int],
    collapsing: bool = True,
    single: bool = False,
) -> int:
    """How many blocks keep one block's channels in cache (or in a share of an accelerator's memory)."""
    most = BLOCK_NUMBERS if jax.default_backend() == "cpu" else ACCELERATOR_BLOCK_NUMBERS
    most = int(most * (SINGLE_PRECISION if single else 1.0))
    numbers = 0
    for plan, n in zip(plans, counts, strict=True):
        collapses = plan.collapses if collapsing else ()
        for wanted in [plan.carried] if collapses else plan.wanted:
            for net, channels in surrogate.needs(wanted).items():
                rows = n * (len(channels) + sum(c.net == net for c in collapses))
                numbers += rows * max(surrogate.nets[net].mlp.widths)
    return whole_slots(max(1, min(-(-numbers // most), max(counts))))
