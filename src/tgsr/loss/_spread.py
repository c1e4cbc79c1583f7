"""A sum over blocks in an order that does not depend on how many devices, or processes, share the work.

Consecutive blocks form slots. How many there are follows from the number of blocks, and that from the number of points.
A device sums each of its slots, one collective brings all slots together, and they are added in their order everywhere.

So many devices in one process compute what as many processes with one device each do, to the bit. XLA compiles for
several devices in other passes than for a single one: between these two the last digits may differ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SLOTS = 16  # at most: so many devices can share the work, and so many gradients are held at once
AXIS = "blocks"
EVERYWHERE, DEALT_OUT = PartitionSpec(), PartitionSpec(AXIS)


def per_slot(blocks: int) -> int:
    """How many blocks make a slot."""
    return -(-blocks // SLOTS)


def whole_slots(blocks: int) -> int:
    """At least so many blocks, in slots of equal length."""
    return -(-blocks // per_slot(blocks)) * per_slot(blocks)


@dataclass(frozen=True)
class Spread:
    """The devices that share the blocks of a batch, in the order of their blocks; those of other processes, too."""

    devices: tuple[Any, ...]

    @property
    def processes(self) -> int:
        """How many processes take part."""
        return len({device.process_index for device in self.devices})

    @property
    def mesh(self) -> Mesh:
        """The devices in a row."""
        return Mesh(np.array(self.devices), (AXIS,))

    def slots_each(self, blocks: int) -> int:
        """How many slots a device has at most."""
        return -(-blocks // (per_slot(blocks) * len(self.devices)))

    def dealt_out(self, batch: Any, blocks: int) -> Any:
        """Arrays (blocks, ...) with whole slots on each device, filled up with blocks of zeros."""
        if blocks == 1:
            return self.everywhere(batch)
        each, devices = self.slots_each(blocks) * per_slot(blocks), len(self.devices)
        spare = int(each == 1)  # XLA reads an array of one block without an index: other code, other bits

        def put(leaf: jax.Array) -> jax.Array:
            shape = leaf.shape[1:]
            full = np.zeros((devices * each, *shape), leaf.dtype)
            full[:blocks] = leaf
            full = np.pad(full.reshape(devices, each, *shape), [(0, 0), (0, spare), *[(0, 0)] * len(shape)])
            return self._put(full.reshape(-1, *shape), DEALT_OUT)

        return jax.tree.map(put, batch)

    def everywhere(self, tree: Any) -> Any:
        """The same arrays on every device."""
        return jax.tree.map(lambda leaf: self._put(np.asarray(leaf), EVERYWHERE), tree)

    @staticmethod
    def here(tree: Any) -> Any:
        """This process's own copy of arrays that are everywhere."""
        return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)

    def from_each(self, number: int) -> set[int]:
        """The numbers (below 2**31) that the processes brought. All have to come here, so it is a barrier as well."""
        sharding = NamedSharding(self.mesh, DEALT_OUT)
        own = jax.make_array_from_callback((len(self.devices),), sharding, lambda _: np.full(1, number, np.int32))
        return set(np.asarray(_gathered(self)(own)).tolist())

    def _put(self, array: np.ndarray, spec: PartitionSpec) -> jax.Array:
        return jax.make_array_from_callback(array.shape, NamedSharding(self.mesh, spec), lambda index: array[index])


@functools.lru_cache(maxsize=4)
def _gathered(spread: Spread) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(lambda own: own, out_shardings=NamedSharding(spread.mesh, EVERYWHERE))


def summed(
    function: Callable[..., jax.Array], theta: jax.Array, batch: Any, rest: Any, blocks: int, spread: Spread | None
) -> jax.Array:
    """The sum over blocks of the vector function(theta, block, rest), in a fixed order.

    `batch` is a sequence of point sets, each with its `share`: 0 where no point is. With a spread, it is `dealt_out`.
    """
    if blocks == 1:  # nobody's to share: every device computes it
        return function(theta, jax.tree.map(lambda leaf: leaf[0], batch), rest)
    width = per_slot(blocks)

    def slot_sums(theta: jax.Array, batch: Any, rest: Any) -> jax.Array:
        # Counted, although it is known: were a device's only block a loop of length one for the compiler, it would
        # make other code of it than of one block among many.
        filled = jnp.sum(jnp.any(jnp.stack([points.share[:, 0] > 0 for points in batch]), axis=0))

        def block(number: jax.Array | int) -> Any:
            return jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, number, keepdims=False), batch)

        def add(number: jax.Array, sums: jax.Array) -> jax.Array:
            return sums.at[number // width].add(function(theta, block(number), rest))

        like = jax.eval_shape(lambda: function(theta, block(0), rest))
        slots = batch[0].share.shape[0] // width
        return jax.lax.fori_loop(0, filled, add, jnp.zeros((slots, *like.shape), like.dtype))

    if spread is None:
        sums = slot_sums(theta, batch, rest)
    else:
        each = spread.slots_each(blocks)
        sums = jax.shard_map(
            lambda *given: jax.lax.all_gather(slot_sums(*given)[:each], AXIS, tiled=True),
            mesh=spread.mesh,
            in_specs=(EVERYWHERE, DEALT_OUT, EVERYWHERE),
            out_specs=EVERYWHERE,
            check_vma=False,  # it cannot tell that what was gathered is the same everywhere
        )(theta, batch, rest)
    return jnp.sum(sums[: blocks // width], axis=0)
