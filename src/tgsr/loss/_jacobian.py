"""Rows and their per-point Jacobian, from one backward pass per part.

A row at a point depends on that point's channels only, so the derivative of the *sum* of a row over a block with
respect to every pre-activation holds all points' derivatives side by side; an outer product with the layer's inputs
gives each point's derivative with respect to a weight matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from tgsr.loss._objective import Batch, Controls, Objective, TermBatch
from tgsr.loss._rows import Place
from tgsr.network._propagate import Channels, Tape
from tgsr.network._surrogate import Surrogate

Probes = list[dict[int, list[jax.Array]]]  # per point set, network and layer


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
    first, rows, columns = 0, [], []
    for number, batch in enumerate(block):
        term_rows, term_columns = _term_jacobian(objective, number, theta, batch, controls)
        for row, jacobian in zip(term_rows, term_columns, strict=True):
            weight = jnp.sqrt(controls.weights[first] * batch.share)
            rows.append(weight * row)
            columns.append(weight[:, None] * jacobian)
            first += 1
    return jnp.concatenate(rows), jnp.concatenate(columns) * controls.mask


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


def _term_jacobian(
    objective: Objective, number: int, theta: jax.Array, batch: TermBatch, controls: Controls
) -> tuple[Sequence[jax.Array], Sequence[jax.Array]]:
    surrogate, plan = objective.surrogate, objective.plans[number]
    needs = [surrogate.needs(wanted) for wanted in plan.wanted]
    points = batch.share.shape[0]
    raw = surrogate.raw(theta)

    def evaluate(tapes: Sequence[dict[int, Tape]], raw: jax.Array) -> jax.Array:
        getters = [surrogate.getter(one) for one in tapes]
        place = Place(getters, batch.x, surrogate.values(raw), batch.stored, controls.sigma)
        return jnp.stack(objective.scaled(number, [part.row(place) for part in plan.term.parts]))

    def forward(probes: Probes) -> tuple[jax.Array, list[dict[int, Tape]]]:
        tapes = [
            surrogate.tapes(theta, x, wanted, probes=probe)
            for x, wanted, probe in zip(batch.x, plan.wanted, probes, strict=True)
        ]
        return evaluate(tapes, raw), tapes

    zeros: Probes = [
        {
            net: [jnp.zeros((len(channels), points, columns)) for _, columns in surrogate.nets[net].shapes]
            for net, channels in need.items()
        }
        for need in needs
    ]
    rows, pull_back, tapes = jax.vjp(forward, zeros, has_aux=True)
    by_unknown = jax.jacfwd(lambda raw: evaluate(tapes, raw))(raw)  # (parts, points, unknowns)
    out = []
    for part in range(len(plan.term.parts)):
        (gradients,) = pull_back(jnp.zeros_like(rows).at[part].set(1.0))
        columns = []
        for net in range(len(surrogate.nets)):
            pieces = [
                _network_columns(objective, net, need[net], x, tape[net], gradient[net])
                for need, x, tape, gradient in zip(needs, batch.x, tapes, gradients, strict=True)
                if net in need
            ]
            if pieces:
                columns.append(sum(pieces[1:], pieces[0]))
            else:
                size = sum((rows_ + 1) * columns_ for rows_, columns_ in surrogate.nets[net].shapes)
                columns.append(jnp.zeros((points, size)))
        columns += _low_rank_columns(surrogate, theta, columns[0])
        out.append(jnp.concatenate([*columns, by_unknown[part]], axis=1))
    return list(rows), out


def _low_rank_columns(surrogate: Surrogate, theta: jax.Array, columns: jax.Array) -> list[jax.Array]:
    """d row / d (A and B) of the weights W + A B, by the chain rule from those of W."""
    out, at = [], 0
    for (rows, width), (left, right) in zip(surrogate.nets[0].shapes, surrogate.low_rank(theta), strict=False):
        weight = columns[:, at : at + rows * width].reshape(-1, rows, width)
        at += (rows + 1) * width
        out.append(jnp.einsum("pio,ro->pir", weight, right).reshape(len(weight), -1))
        out.append(jnp.einsum("ir,pio->pro", left, weight).reshape(len(weight), -1))
    return out


def _network_columns(
    objective: Objective, net: int, channels: Channels, x: jax.Array, tape: Tape, gradient: Sequence[jax.Array]
) -> jax.Array:
    """d row / d (weights and biases of a network), (points, size), in the order of theta."""
    seen = objective.surrogate.nets[net].inputs(x)
    columns = []
    for layer, g in enumerate(gradient):
        inputs = tape.inputs[layer]
        if inputs is None:  # the first layer: the value channel sees x, a first derivative a unit vector
            weight = seen[:, :, None] * g[0][:, None, :]
            for slot, index in enumerate(channels):
                if len(index) == 1:
                    weight = weight.at[:, index[0], :].add(g[slot])
        else:
            weight = jnp.einsum("cpi,cpo->pio", inputs, g)
        columns += [weight.reshape(weight.shape[0], -1), g[0]]
    return jnp.concatenate(columns, axis=1)
