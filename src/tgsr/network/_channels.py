"""Which derivatives travel through a network together, and the chain rule between them.

A *channel* is a derivative of every neuron at a point, named by a multi-index: () the value, (0,) d/dx0, (0, 1) the
mixed derivative. Through an activation phi, Faa di Bruno's formula gives each channel of phi(z) from the channels of z:

    (phi o z)_a = sum over partitions of a into blocks:  phi^(number of blocks)(z) * product of z_block

so the set must contain every part of each of its members: it is closed downward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

Index = tuple[int, ...]


def closed(indices: Iterable[Index]) -> tuple[Index, ...]:
    """The smallest set of channels that holds `indices` and every part of each, the value first."""
    found: set[Index] = {()}
    for index in indices:
        for size in range(1, len(index) + 1):
            found.update(combinations(sorted(index), size))
    return tuple(sorted(found, key=lambda index: (len(index), index)))


def order_of(channels: Iterable[Index]) -> int:
    """The highest order among channels."""
    return max((len(index) for index in channels), default=0)


def _set_partitions(items: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    if not items:
        return [[]]
    first, rest = items[0], items[1:]
    out = []
    for partition in _set_partitions(rest):
        out.append([(first,), *partition])
        for i, block in enumerate(partition):
            out.append([*partition[:i], (first, *block), *partition[i + 1 :]])
    return out


@lru_cache(maxsize=1024)
def chain_rule(index: Index) -> tuple[tuple[int, int, tuple[Index, ...]], ...]:
    """(phi o z)_index as terms (how often, order of phi', blocks): each is how_often * phi^(order) * prod z_block."""
    counts: Counter[tuple[Index, ...]] = Counter()
    for partition in _set_partitions(tuple(range(len(index)))):
        blocks = tuple(sorted(tuple(sorted(index[i] for i in block)) for block in partition))
        counts[blocks] += 1
    return tuple(
        (n, len(blocks), blocks) for blocks, n in sorted(counts.items(), key=lambda item: (len(item[0]), item[0]))
    )
