"""Rows and their per-point Jacobian, from one backward pass per part.

A row at a point depends on that point's channels only, so the derivative of the *sum* of a row over a block with
respect to every pre-activation holds all points' derivatives side by side; an outer product with the layer's inputs
gives each point's derivative with respect to a weight matrix.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.loss._objective import Batch, Controls, Objective
from tgsr.loss._rows import Place
from tgsr.network._propagate import Channels, Tape, propagate
from tgsr.network._surrogate import Surrogate

Probes = list[list[jax.Array]]  # per pass and layer


def weighted_rows(objective: Objective, theta: jax.Array, block: Batch, controls: Controls) -> jax.Array:
    """All rows of a block, scaled so that the loss is their sum of squares."""
    parts, out = 0, []
    for batch, rows in zip(block, objective.rows(theta, block, controls), strict=True):
        for row in rows:
            out.append(jnp.sqrt(controls.weights[parts] * batch.share) * row)
            parts += 1
    return jnp.concatenate(out)


def weighted_jacobian(
    objective: Objective, theta: jax.Array, block: Batch, controls: Controls
) -> tuple[jax.Array, jax.Array]:
    """(rows (n,), d rows / d theta (n, size)) of a block, scaled alike; untrained columns are zero."""
    surrogate, raw = objective.surrogate, objective.surrogate.raw(theta)
    passes = _passes(objective, block)

    def evaluate(tapes: Sequence[Tape], raw: jax.Array) -> list[list[jax.Array]]:
        own: list[list[dict[int, Tape]]] = [[{} for _ in batch.x] for batch in block]
        for one, tape in zip(passes, tapes, strict=True):
            for (term, points), part in zip(one.members, one.parts, strict=True):
                outputs = {index: values[part] for index, values in tape.outputs.items()}
                own[term][points][one.net] = Tape(outputs, (), ())
        out = []
        for number, batch in enumerate(block):
            getters = [surrogate.getter(tape) for tape in own[number]]
            place = Place(getters, batch.x, surrogate.values(raw), batch.stored, controls.sigma)
            out.append(objective.scaled(number, [part.row(place) for part in objective.plans[number].term.parts]))
        return out

    def forward(probes: Probes) -> tuple[list[list[jax.Array]], list[Tape]]:
        layers = surrogate.layers(theta)
        tapes = [
            propagate(layers[one.net], one.x, one.channels, surrogate.nets[one.net].mlp.activation, (), probe)
            for one, probe in zip(passes, probes, strict=True)
        ]
        return evaluate(tapes, raw), tapes

    zeros: Probes = [
        [jnp.zeros((len(one.channels), len(one.x), columns)) for _, columns in surrogate.nets[one.net].shapes]
        for one in passes
    ]
    rows, pull_back, tapes = jax.vjp(forward, zeros, has_aux=True)
    by_unknown = jax.jacfwd(lambda raw: evaluate(tapes, raw))(raw)
    by_net: list[list[dict[int, jax.Array]]] = []  # of every part and term
    for part in range(max(map(len, rows))):
        # No two terms share a point: the part of this number of every term is pulled back at once.
        chosen = [[jnp.full_like(row, number == part) for number, row in enumerate(own)] for own in rows]
        (gradients,) = pull_back(chosen)
        by_net.append(_by_term(passes, tapes, gradients, len(block)))
    out, columns = [], []
    for term, (batch, own) in enumerate(zip(block, rows, strict=True)):
        for part, row in enumerate(own):
            weight = jnp.sqrt(controls.weights[len(out)] * batch.share)
            out.append(weight * row)
            seen = _theta_columns(surrogate, theta, by_net[part][term], by_unknown[term][part])
            columns.append(weight[:, None] * seen)
    return jnp.concatenate(out), jnp.concatenate(columns) * controls.mask


def rows_and_slopes(
    objective: Objective, theta: jax.Array, block: Batch, controls: Controls
) -> tuple[list[jax.Array], list[jax.Array], list[jax.Array]]:
    """Per part of a block: rows (n,), their derivatives with respect to the unknowns' values (n, unknowns), shares.

    The networks run once: they do not depend on the unknowns.
    """
    surrogate, rows, slopes, share = objective.surrogate, [], [], []
    names, values = surrogate.unknown_names, jnp.stack(list(surrogate.unknowns(theta).values()))
    for number, batch in enumerate(block):
        plan = objective.plans[number]
        getters = [
            surrogate.getter(surrogate.tapes(theta, x, wanted)) for x, wanted in zip(batch.x, plan.wanted, strict=True)
        ]

        def evaluate(values: jax.Array, number=number, batch=batch, plan=plan, getters=getters) -> jax.Array:
            unknowns = dict(zip(names, values, strict=True))
            place = Place(getters, batch.x, unknowns, batch.stored, controls.sigma)
            return jnp.stack(objective.scaled(number, [part.row(place) for part in plan.term.parts]))

        rows += list(evaluate(values))
        slopes += list(jax.jacfwd(evaluate)(values))
        share += [batch.share] * len(plan.term.parts)
    return rows, slopes, share


class _Pass(NamedTuple):
    """Point sets of several terms that go through a network together."""

    net: int
    channels: Channels
    members: list[tuple[int, int]]  # (term, point set)
    parts: list[slice]  # their points
    x: jax.Array  # as the network sees them


def _passes(objective: Objective, block: Batch) -> list[_Pass]:
    together: dict[tuple[int, Channels], list[tuple[int, int]]] = {}
    for term, plan in enumerate(objective.plans):
        for points, wanted in enumerate(plan.wanted):
            for net, channels in objective.surrogate.needs(wanted).items():
                together.setdefault((net, channels), []).append((term, points))
    out = []
    for (net, channels), members in together.items():
        x = [objective.surrogate.nets[net].inputs(block[term].x[points]) for term, points in members]
        ends = np.cumsum([0, *map(len, x)])
        parts = [slice(int(start), int(end)) for start, end in itertools.pairwise(ends)]
        out.append(_Pass(net, channels, members, parts, jnp.concatenate(x)))
    return out


def _by_term(
    passes: Sequence[_Pass], tapes: Sequence[Tape], gradients: Probes, terms: int
) -> list[dict[int, jax.Array]]:
    """d row / d (weights and biases of each network), by term: the sum over its point sets."""
    found: list[dict[int, jax.Array]] = [{} for _ in range(terms)]
    for one, tape, gradient in zip(passes, tapes, gradients, strict=True):
        columns = _network_columns(one, tape, gradient)
        for (term, _), part in zip(one.members, one.parts, strict=True):
            before = found[term].get(one.net)
            found[term][one.net] = columns[part] if before is None else before + columns[part]
    return found


def _theta_columns(
    surrogate: Surrogate, theta: jax.Array, by_net: Mapping[int, jax.Array], by_unknown: jax.Array
) -> jax.Array:
    """d row / d theta from the columns of the networks that the row sees."""
    columns = []
    for number, net in enumerate(surrogate.nets):
        size = sum((n_in + 1) * n_out for n_in, n_out in net.shapes)
        columns.append(by_net[number] if number in by_net else jnp.zeros((len(by_unknown), size)))
    return jnp.concatenate([*columns, *_low_rank_columns(surrogate, theta, columns[0]), by_unknown], axis=1)


def _low_rank_columns(surrogate: Surrogate, theta: jax.Array, columns: jax.Array) -> list[jax.Array]:
    """d row / d (A and B) of the weights W + A B, by the chain rule from those of W."""
    out, at = [], 0
    for (rows, width), (left, right) in zip(surrogate.nets[0].shapes, surrogate.low_rank(theta), strict=False):
        weight = columns[:, at : at + rows * width].reshape(-1, rows, width)
        at += (rows + 1) * width
        out.append(jnp.einsum("pio,ro->pir", weight, right).reshape(len(weight), -1))
        out.append(jnp.einsum("ir,pio->pro", left, weight).reshape(len(weight), -1))
    return out


def _network_columns(one: _Pass, tape: Tape, gradient: Sequence[jax.Array]) -> jax.Array:
    """d row / d (weights and biases of a network), (points, size), in the order of theta."""
    columns = []
    for layer, g in enumerate(gradient):
        inputs = tape.inputs[layer]
        if inputs is None:  # the first layer: the value channel sees x, a first derivative a unit vector
            weight = one.x[:, :, None] * g[0][:, None, :]
            for slot, index in enumerate(one.channels):
                if len(index) == 1:
                    weight = weight.at[:, index[0], :].add(g[slot])
        else:
            weight = jnp.einsum("cpi,cpo->pio", inputs, g)
        columns += [weight.reshape(weight.shape[0], -1), g[0]]
    return jnp.concatenate(columns, axis=1)
