"""Derivatives of a multilayer perceptron, carried forward: one matrix product per layer moves all channels at once.

Beside single derivatives a channel may be a whole linear operator of second order, L = sum c_ab d_ab + sum c_a d_a with
coefficients that do not depend on the field: linear layers commute with it, and an activation needs only

    L(phi(z)) = phi'(z) L z + phi''(z) sum c_ab z_a z_b,

so a Laplacian in any number of coordinates costs one channel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError, plain
from tgsr.network._activations import Derivatives, activation
from tgsr.network._channels import Index, chain_rule, order_of
from tgsr.network._names import checked_activation

Layer = tuple[jax.Array, jax.Array]  # weight (n_in, n_out), bias (n_out,)
Operator = Mapping[Index, jax.Array]  # derivative of order 1 or 2 -> coefficient, one per point
Channels = tuple[Index, ...]


@dataclass(frozen=True)
class MLP:
    """The architecture of a network: hidden widths and activation."""

    widths: tuple[int, ...] = (32, 32, 32)
    activation: str = "tanh"

    def __post_init__(self) -> None:
        widths = (self.widths,) if not isinstance(self.widths, (tuple, list)) else tuple(self.widths)
        object.__setattr__(self, "widths", widths)
        whole = all(isinstance(w, int) and not isinstance(w, bool) and 1 <= w <= 65536 for w in widths)
        if not widths or not whole or len(widths) > 100:
            raise InputError(
                f"the widths of the network are {plain(widths, 60)}",
                field="widths",
                remedy="Give one whole number per hidden layer, as in (32, 32, 32)",
            )
        checked_activation(self.activation)

    def size(self, inputs: int, outputs: int) -> int:
        """How many weights and biases there are."""
        return sum((n_in + 1) * n_out for n_in, n_out in itertools.pairwise([inputs, *self.widths, outputs]))


def initial_layers(n_in: int, widths: Sequence[int], n_out: int, rng: np.random.Generator) -> list[Layer]:
    """Glorot-uniform weights and zero biases."""
    sizes = [n_in, *widths, n_out]
    layers = []
    for rows, columns in itertools.pairwise(sizes):
        limit = math.sqrt(6.0 / (rows + columns))
        layers.append((jnp.asarray(rng.uniform(-limit, limit, (rows, columns))), jnp.zeros(columns)))
    return layers


class Tape(NamedTuple):
    """What one forward pass leaves behind: outputs per channel and operator, and every layer's input channels."""

    outputs: dict[Index, jax.Array]  # (points, fields)
    operators: tuple[jax.Array, ...]  # (points, fields)
    inputs: tuple[jax.Array | None, ...]  # per layer after the first: (channels + operators, points, width)


def activate(
    z: Sequence[jax.Array | None], channels: Channels, operators: Sequence[Operator], phi: Derivatives
) -> list[jax.Array]:
    """The channels of phi(z) from those of z; None stands for a channel that is zero everywhere."""
    place = {index: i for i, index in enumerate(channels)}
    value = z[0]
    assert value is not None  # the value channel always exists
    slopes = phi(value, max(order_of(channels), 2 if operators else 0))
    zero = jnp.zeros_like(value)
    out = [slopes[0]]
    for index in channels[1:]:
        total = None
        for times, order, blocks in chain_rule(index):
            found = [z[place[block]] for block in blocks]
            parts = [part for part in found if part is not None]
            if len(parts) < len(found):
                continue
            term = slopes[order] if times == 1 else times * slopes[order]
            for part in parts:
                term = term * part
            total = term if total is None else total + term
        out.append(zero if total is None else total)
    for number, operator in enumerate(operators):
        carried = z[len(channels) + number]
        total = zero if carried is None else slopes[1] * carried
        squares = None
        for index, coefficient in operator.items():
            if len(index) == 2:
                first, second = z[place[index[:1]]], z[place[index[1:]]]
                assert first is not None  # first derivatives are never absent
                assert second is not None
                product = coefficient[:, None] * (first * second)
                squares = product if squares is None else squares + product
        out.append(total if squares is None else total + slopes[2] * squares)
    return out


def propagate(
    layers: Sequence[Layer],
    x: jax.Array,
    channels: Channels,
    activation_name: str,
    operators: Sequence[Operator] = (),
    probes: Sequence[jax.Array] | None = None,
) -> Tape:
    """Channels and operators of the network's outputs at points x (points, inputs).

    `channels` is closed and holds the first derivatives that operators of second order multiply. `probes`, one array
    (channels + operators, points, width) per layer, are added to the pre-activations: the derivative of a loss with
    respect to them is its derivative with respect to the pre-activations themselves.
    """
    phi = activation(activation_name)
    weight, bias = layers[0]
    z: list[jax.Array | None] = [x @ weight + bias]
    z += [weight[index[0]][None, :] if len(index) == 1 else None for index in channels[1:]]
    for operator in operators:
        first = [c[:, None] * weight[index[0]][None, :] for index, c in operator.items() if len(index) == 1]
        z.append(sum(first[1:], first[0]) if first else None)
    kept: list[jax.Array | None] = [None]
    for number, (weight, bias) in enumerate(layers[1:]):
        z = _probed(z, None if probes is None else probes[number])
        h = jnp.stack(activate(z, channels, operators, phi))
        kept.append(h)
        # Split, not sliced: the way back is one concatenation, where slices would be padded and added one by one.
        value, *others = jnp.split(_product(h.reshape(-1, h.shape[-1]), weight), len(h))
        z = [value + bias, *others]
    z = _probed(z, None if probes is None else probes[-1])
    return Tape(
        {index: z[i] for i, index in enumerate(channels)},  # type: ignore[misc]
        tuple(z[len(channels) :]),  # type: ignore[arg-type]
        tuple(kept),
    )


def _product(rows: jax.Array, weight: jax.Array) -> jax.Array:
    """rows @ weight, with the fastest way back that XLA has on a processor."""
    return _turning_product(rows, weight) if rows.dtype == jnp.float64 else rows @ weight


@jax.custom_jvp
def _turning_product(rows: jax.Array, weight: jax.Array) -> jax.Array:
    return rows @ weight


@_turning_product.defjvp
def _product_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (rows, weight), (by_rows, by_weight) = primals, tangents
    # The way back is rows^T slopes, for which XLA has half the speed in float64 unless rows lie turned in memory.
    turned = jax.lax.optimization_barrier(rows.T)
    return rows @ weight, by_rows @ weight + jax.lax.dot_general(turned, by_weight, (((0,), (0,)), ((), ())))


def _probed(z: list[jax.Array | None], probe: jax.Array | None) -> list[jax.Array | None]:
    if probe is None:
        return z
    return [probe[i] if part is None else part + probe[i] for i, part in enumerate(z)]
