"""The trainable stand-in for all fields of a problem: one network for the fields, a small one per unknown field,
the raw numbers behind the unknowns, and the maps between physical units and what the networks see."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from tgsr.network._activations import activation
from tgsr.network._channels import Index, closed
from tgsr.network._propagate import MLP, Channels, Layer, Operator, Tape, activate, initial_layers, propagate
from tgsr.problem._unknowns import Transform

Getter = Callable[[str, Index], jax.Array]


@dataclass(frozen=True)
class Net:
    """One network: which fields it outputs, which coordinates it sees, and its scales."""

    fields: tuple[str, ...]
    axes: tuple[int, ...]  # numbers of the problem's coordinates, in input order
    mlp: MLP
    centre: tuple[float, ...]
    half_width: tuple[float, ...]
    offset: tuple[float, ...]
    scale: tuple[float, ...]
    positive: bool = False  # the output passes through softplus (unknown fields of known sign)

    @property
    def widths(self) -> tuple[int, ...]:
        """Of inputs, hidden layers and outputs."""
        return (len(self.axes), *self.mlp.widths, len(self.fields))

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of every linear layer."""
        return list(itertools.pairwise(self.widths))

    def inputs(self, x: jax.Array) -> jax.Array:
        """Physical coordinates (points, d) as the network sees them."""
        columns = x[:, jnp.array(self.axes)]
        return (columns - jnp.array(self.centre)) / jnp.array(self.half_width)

    def local(self, index: Index) -> Index | None:
        """A derivative in this network's own coordinates; None where the network does not depend on one."""
        if any(i not in self.axes for i in index):
            return None
        return tuple(sorted(self.axes.index(i) for i in index))

    def stretch(self, index: Index) -> float:
        """d(seen coordinates)/d(physical coordinates) of a local derivative."""
        return math.prod(1.0 / self.half_width[i] for i in index)

    def channels(self, wanted: Sequence[Index]) -> Channels:
        """The closed set of local channels that `wanted` physical derivatives need."""
        return closed([local for index in wanted if (local := self.local(index)) is not None])

    def field_value(self, tape: Tape, name: str, index: Index) -> jax.Array:
        """A physical derivative of field `name` at the points of the tape."""
        column = self.fields.index(name)
        local = self.local(index)
        if local is None:
            return jnp.zeros(tape.outputs[()].shape[0])
        outputs = {key: value[:, column] for key, value in tape.outputs.items()}
        if self.positive:
            names = tuple(outputs)
            columns = [outputs[key][:, None] for key in names]
            after = activate(columns, names, (), activation("softplus"))
            outputs = {key: value[:, 0] for key, value in zip(names, after, strict=True)}
        scaled = self.scale[column] * self.stretch(local) * outputs[local]
        return scaled + self.offset[column] if index == () else scaled


@dataclass(frozen=True)
class Surrogate:
    """Networks and unknowns as one flat vector of trainable numbers, theta.

    With a `rank`, every weight matrix of the fields' network is W + A B, with A (inputs, rank) and B (rank, outputs)
    in theta beside W: a low-rank update, for methods that keep W.
    """

    nets: tuple[Net, ...]
    transforms: tuple[Transform, ...] = ()
    rank: int = 0
    _slices: tuple[tuple[str, int, tuple[int, ...]], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        slices, at = [], 0
        for n, net in enumerate(self.nets):
            for layer, (rows, columns) in enumerate(net.shapes):
                for kind, shape in (("weight", (rows, columns)), ("bias", (columns,))):
                    slices.append((f"net{n}.{layer}.{kind}", at, shape))
                    at += math.prod(shape)
        for layer, pair in enumerate(self.low_rank_shapes):
            for kind, shape in zip(("left", "right"), pair, strict=True):
                slices.append((f"net0.{layer}.{kind}", at, shape))
                at += math.prod(shape)
        for transform in self.transforms:
            slices.append((f"unknown.{transform.unknown.name}", at, ()))
            at += 1
        object.__setattr__(self, "_slices", tuple(slices))

    @property
    def size(self) -> int:
        """How many trainable numbers there are."""
        _, at, shape = self._slices[-1]
        return at + math.prod(shape)

    @property
    def network_size(self) -> int:
        """How many of them are weights and biases; the unknowns follow."""
        return self.size - len(self.transforms)

    @property
    def low_rank_shapes(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """Shapes of (A, B) of every linear layer of the fields' network; none without a rank."""
        ranks = [min(self.rank, *shape) for shape in self.nets[0].shapes] if self.rank else []
        return [((n_in, r), (r, n_out)) for r, (n_in, n_out) in zip(ranks, self.nets[0].shapes, strict=False)]

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """The scalar unknowns, in order."""
        return tuple(t.unknown.name for t in self.transforms)

    def entries(self) -> dict[str, slice]:
        """Where each weight, bias and unknown stands in theta."""
        return {name: slice(at, at + math.prod(shape)) for name, at, shape in self._slices}

    def layers(self, theta: jax.Array) -> list[list[Layer]]:
        """The layers of every network, low-rank updates added."""
        # Split, not sliced: the way back is one concatenation, where slices would be padded and added one by one.
        pieces = jnp.split(theta, [at for _, at, _ in self._slices[1:]])
        arrays = iter(piece.reshape(shape) for piece, (_, _, shape) in zip(pieces, self._slices, strict=True))
        layers = [[(next(arrays), next(arrays)) for _ in net.shapes] for net in self.nets]
        for number, _ in enumerate(self.low_rank_shapes):
            weight, bias = layers[0][number]
            layers[0][number] = weight + next(arrays) @ next(arrays), bias
        return layers

    def flat(self, theta: jax.Array, number: int) -> jax.Array:
        """The weights and biases of one network in a row, as they stand in theta; low-rank updates added."""
        if number == 0 and self.rank:
            return jnp.concatenate([jnp.ravel(array) for layer in self.layers(theta)[0] for array in layer])
        sizes = [sum((n_in + 1) * n_out for n_in, n_out in net.shapes) for net in self.nets]
        start = sum(sizes[:number])
        return jnp.split(theta, [start, start + sizes[number]])[1]

    def low_rank(self, theta: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        """(A, B) of every linear layer of the fields' network; none without a rank."""
        first = 2 * sum(len(net.shapes) for net in self.nets)
        arrays = iter(theta[at : at + math.prod(shape)].reshape(shape) for _, at, shape in self._slices[first:])
        return [(next(arrays), next(arrays)) for _ in self.low_rank_shapes]

    def flatten(self, layers: Sequence[Sequence[Layer]], raw: Sequence[float]) -> jax.Array:
        """theta from pairs of arrays (layers, then low-rank updates) and raw unknowns."""
        parts = [jnp.ravel(a) for net in layers for layer in net for a in layer]
        return jnp.concatenate([*parts, jnp.asarray(raw, dtype=float).reshape(-1)])

    def with_fields_network(self, theta: jax.Array, layers: Sequence[tuple[ArrayLike, ArrayLike]]) -> jax.Array:
        """theta with other weights and biases in the network that outputs the fields, and nothing else moved."""
        own = jnp.concatenate([jnp.ravel(jnp.asarray(a)) for layer in layers for a in layer])
        return jnp.concatenate([own, theta[own.size :]])

    def initial(self, rng: np.random.Generator) -> jax.Array:
        """A fresh theta: Glorot weights, low-rank updates of zero, unknown fields and unknowns at their guess."""
        layers = [initial_layers(len(n.axes), n.mlp.widths, len(n.fields), rng) for n in self.nets]
        for number, net in enumerate(self.nets):
            if number:  # an unknown field starts at its guess everywhere: a silent last layer
                weight, bias = layers[number][-1]
                start = math.log(math.expm1(1.0)) if net.positive else 0.0
                layers[number][-1] = (jnp.zeros_like(weight), jnp.full_like(bias, start))
        # Drawn last, so that the networks are those of a surrogate without a rank.
        updates = [(initial_layers(n, (), r, rng)[0][0], jnp.zeros(right)) for (n, r), right in self.low_rank_shapes]
        return self.flatten([*layers, updates], [t.start() for t in self.transforms])

    def raw(self, theta: jax.Array) -> jax.Array:
        """The raw numbers behind the unknowns."""
        return theta[self.network_size :]

    def unknowns(self, theta: jax.Array) -> dict[str, jax.Array]:
        """Physical values of the unknowns."""
        return self.values(self.raw(theta))

    def values(self, raw: jax.Array) -> dict[str, jax.Array]:
        """Physical values from raw numbers."""
        return {t.unknown.name: t.value(raw[i], jnp) for i, t in enumerate(self.transforms)}

    def net_of(self, name: str) -> int:
        """The number of the network that outputs field `name`."""
        return next(i for i, net in enumerate(self.nets) if name in net.fields)

    def tapes(
        self,
        theta: jax.Array,
        x: jax.Array,
        wanted: Mapping[str, Sequence[Index]],
        operators: Mapping[int, Sequence[Operator]] | None = None,
        probes: Mapping[int, Sequence[jax.Array]] | None = None,
    ) -> dict[int, Tape]:
        """One forward pass per network that `wanted` (field -> derivatives) involves; operators in seen coordinates."""
        all_layers, out = self.layers(theta), {}
        for number, channels in self.needs(wanted).items():
            net = self.nets[number]
            out[number] = propagate(
                all_layers[number],
                net.inputs(x),
                channels,
                net.mlp.activation,
                (operators or {}).get(number, ()),
                None if probes is None else probes[number],
            )
        return out

    def needs(self, wanted: Mapping[str, Sequence[Index]]) -> dict[int, Channels]:
        """The channels each network must carry for `wanted`."""
        by_net: dict[int, list[Index]] = {}
        for name, indices in wanted.items():
            by_net.setdefault(self.net_of(name), []).extend(indices)
        return {number: self.nets[number].channels(indices) for number, indices in sorted(by_net.items())}

    def getter(self, tapes: Mapping[int, Tape]) -> Getter:
        """`get(field, derivative)` in physical units from forward passes."""

        def get(name: str, index: Index) -> jax.Array:
            number = self.net_of(name)
            return self.nets[number].field_value(tapes[number], name, index)

        return get
