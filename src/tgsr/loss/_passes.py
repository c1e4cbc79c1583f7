"""Forward passes shared between point sets: all that carry the same channels go through a network together.

A term has few points in a block (a face some tens), and a product of few rows uses a processor badly. The value-only
points of all conditions and readings make one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from tgsr.network._native import propagate_flat, serves
from tgsr.network._propagate import Channels, Operator, Tape, propagate
from tgsr.network._surrogate import Surrogate
from tgsr.problem._fields import Index


class Ask(NamedTuple):
    """What the rows of a term want to know at one set of points; operators by network, in seen coordinates."""

    x: jax.Array
    wanted: Mapping[str, Sequence[Index]]
    operators: Mapping[int, Sequence[Operator]]


def tapes_of(surrogate: Surrogate, theta: jax.Array, asks: Sequence[Ask], engine: str) -> list[dict[int, Tape]]:
    """The tapes of every ask, by network, without the layers' inputs."""
    together: dict[tuple[int, Channels, tuple[tuple[Index, ...], ...]], list[int]] = {}
    for number, ask in enumerate(asks):
        for net, channels in surrogate.needs(ask.wanted).items():
            structure = tuple(tuple(operator) for operator in ask.operators.get(net, ()))
            together.setdefault((net, channels, structure), []).append(number)
    layers, weights = surrogate.layers(theta), [surrogate.flat(theta, n) for n in range(len(surrogate.nets))]
    out: list[dict[int, Tape]] = [{} for _ in asks]
    for (net, channels, structure), numbers in together.items():
        seen, name = surrogate.nets[net].inputs, surrogate.nets[net].mlp.activation
        x = jnp.concatenate([seen(asks[n].x) for n in numbers])
        operators = [
            {index: jnp.concatenate([asks[n].operators[net][i][index] for n in numbers]) for index in operator}
            for i, operator in enumerate(structure)
        ]
        if engine == "native" and serves(name, channels, len(structure)):
            tape = propagate_flat(weights[net], surrogate.nets[net].widths, x, channels, operators)
        else:
            tape = propagate(layers[net], x, channels, name, operators)
        at = 0
        for n in numbers:
            part = slice(at, at := at + len(asks[n].x))
            outputs = {index: values[part] for index, values in tape.outputs.items()}
            out[n][net] = Tape(outputs, tuple(values[part] for values in tape.operators), ())
    return out
