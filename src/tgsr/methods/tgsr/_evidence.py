"""Stage 3, what each hidden neuron does on the target: pre-activations z, and the slope of the loss in each of them.

dL/dz is the derivative of the whole weighted loss with respect to the pre-activation *value* of a neuron at a point,
through every path that starts there (the field's value and its derivatives in the residual), with the propagated
coordinate-derivatives of z held fixed. Points of all terms are pooled; each enters once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.loss import Batch, Controls, Objective, TermBatch
from tgsr.loss._rows import Place
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.methods.tgsr._scores import moments
from tgsr.network._channels import Index
from tgsr.network._propagate import Channels, Tape

Probes = list[dict[int, list[jax.Array]]]  # per point set, network and layer: (channels, points, width)
MAIN = 0  # the network that outputs the fields; unknown fields are not transferred and not scored


@dataclass(frozen=True)
class Evidence:
    """Per hidden layer, over the pooled points: sensitivity T and variance V of every neuron."""

    sensitivity: tuple[np.ndarray, ...]
    variance: tuple[np.ndarray, ...]


def collect(objective: Objective, theta: jax.Array, batch: Batch, controls: Controls, options: TgsrOptions) -> Evidence:
    """T and V of every hidden layer on one scoring batch, with the state frozen."""
    program = _block_program(objective, options)
    z: list[list[np.ndarray]] = [[] for _ in objective.surrogate.nets[MAIN].mlp.widths]
    gated: list[list[np.ndarray]] = [[] for _ in z]
    for number in range(objective.blocks):
        block = jax.tree.map(lambda a, number=number: a[number], batch)
        for term, (term_z, term_gated) in zip(block, program(theta, block, controls), strict=True):
            real = np.asarray(term.share) > 0
            for layer in range(len(z)):
                z[layer].append(_real_rows(np.asarray(term_z[layer]), real))
                gated[layer].append(_real_rows(np.asarray(term_gated[layer]), real))
    # `moments` multiplies z by dL/dz; a gate may have multiplied already, so the other factor is one.
    pooled = [np.concatenate(rows) for rows in z]
    products = [np.concatenate(rows) for rows in gated]
    with np.errstate(all="ignore"):  # what is not finite is looked for, and named by its layer, in scoring
        return Evidence(
            tuple(moments(product, np.ones_like(product))[0] for product in products),
            tuple(moments(rows, np.ones_like(rows))[1] for rows in pooled),
        )


@functools.lru_cache(maxsize=32)
def _block_program(objective: Objective, options: TgsrOptions):
    @jax.jit
    def program(theta: jax.Array, block: Batch, controls: Controls):
        out, first = [], 0
        for number, term in enumerate(block):
            weights = controls.weights[first : first + len(objective.plans[number].term.parts)]
            first += len(weights)
            out.append(neuron_products(objective, number, theta, term, controls, weights, options))
        return out

    return program


def _real_rows(rows: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Rows of real points; a block of several entries per point repeats the points."""
    return rows[np.tile(real, len(rows) // len(real))]


def no_probes(objective: Objective, number: int, points: int) -> Probes:
    """Zeros to add to every channel of every pre-activation of a term, per point set."""
    nets = objective.surrogate.nets
    needs = [objective.surrogate.needs(wanted) for wanted in objective.plans[number].wanted]
    return [
        {net: [jnp.zeros((len(c), points, o)) for _, o in nets[net].shapes] for net, c in need.items()}
        for need in needs
    ]


def probed_tapes(
    objective: Objective, number: int, theta: jax.Array, term: TermBatch, probes: Probes
) -> list[dict[int, Tape]]:
    """Forward passes of a term with its probes added."""
    wanted = objective.plans[number].wanted
    return [
        objective.surrogate.tapes(theta, x, one, probes=probe)
        for x, one, probe in zip(term.x, wanted, probes, strict=True)
    ]


def probed_loss(
    objective: Objective,
    number: int,
    theta: jax.Array,
    term: TermBatch,
    controls: Controls,
    weights: jax.Array,
    probes: Probes,
) -> jax.Array:
    """What a block of one term adds to the loss, as a function of its probes (and of theta)."""
    surrogate, parts = objective.surrogate, objective.plans[number].term.parts
    getters = [surrogate.getter(one) for one in probed_tapes(objective, number, theta, term, probes)]
    place = Place(getters, term.x, surrogate.unknowns(theta), term.stored, controls.sigma)
    rows = objective.scaled(number, [part.row(place) for part in parts])
    return sum((w * jnp.sum(term.share * row * row) for w, row in zip(weights, rows, strict=True)), jnp.zeros(()))


def neuron_products(
    objective: Objective,
    number: int,
    theta: jax.Array,
    term: TermBatch,
    controls: Controls,
    weights: jax.Array,
    options: TgsrOptions,
) -> tuple[list[jax.Array], list[jax.Array]]:
    """(z, gated) per hidden layer at a block of one term: gated is z dL/dz, or its variants, one row per entry."""
    surrogate, plan = objective.surrogate, objective.plans[number]
    needs = [surrogate.needs(wanted) for wanted in plan.wanted]
    shapes = surrogate.nets[MAIN].shapes
    layers = surrogate.layers(theta)[MAIN]
    zeros = no_probes(objective, number, term.share.shape[0])
    gradients = jax.grad(lambda probes: probed_loss(objective, number, theta, term, controls, weights, probes))(zeros)
    tapes = probed_tapes(objective, number, theta, term, zeros)
    z_out: list[jax.Array] = []
    gated: list[jax.Array] = []
    for layer in range(len(shapes) - 1):
        z_sets, gate_sets = [], []
        for point_set, need in enumerate(needs):
            if MAIN not in need:
                continue
            seen = surrogate.nets[MAIN].inputs(term.x[point_set])
            channels = need[MAIN]
            z = pre_activations(layers, seen, channels, tapes[point_set][MAIN], layer)
            g = gradients[point_set][MAIN][layer]
            z_sets.append(z[0])
            gate_sets.append(jnp.sum(z * g, axis=0) if options.gate == "jet" else z[0] * g[0])
            if options.score == "ref" and plan.term.parts[0].kind == "pde":
                inner = _inner_gradients(objective, theta, term, point_set, need, layer)
                gate_sets += [z[0] * one for one in inner]
        z_out.append(jnp.concatenate(z_sets) if z_sets else jnp.zeros((0, shapes[layer][1])))
        gated.append(jnp.concatenate(gate_sets) if gate_sets else jnp.zeros((0, shapes[layer][1])))
    return z_out, gated


def pre_activations(
    layers: Sequence[tuple[jax.Array, jax.Array]], seen: jax.Array, channels: Channels, tape: Tape, layer: int
) -> jax.Array:
    """Every channel of the pre-activations of a hidden layer, (channels, points, width)."""
    weight, bias = layers[layer]
    inputs = tape.inputs[layer]
    if inputs is not None:
        z = jnp.einsum("cpi,io->cpo", inputs, weight)
        return z.at[0].add(bias)
    rows = [seen @ weight + bias]
    for index in channels[1:]:
        row = weight[index[0]] if len(index) == 1 else jnp.zeros_like(bias)
        rows.append(jnp.broadcast_to(row, rows[0].shape))
    return jnp.stack(rows)


def _inner_gradients(objective, theta, term, point_set, need, layer) -> list[jax.Array]:
    """What the authors' hooks also collect: for every derivative that nested autodiff computes, d(its parent)/dz."""
    surrogate = objective.surrogate
    channels = need[MAIN]
    found = []
    for column in range(len(surrogate.nets[MAIN].fields)):
        for index in channels[1:]:
            parent: Index = index[:-1]

            def total(probe: jax.Array, parent: Index = parent, column: int = column) -> jax.Array:
                probes = {
                    net: [jnp.zeros((len(c), term.share.shape[0], o)) for _, o in surrogate.nets[net].shapes]
                    for net, c in need.items()
                }
                probes[MAIN][layer] = probes[MAIN][layer].at[0].set(probe)
                tape = surrogate.tapes(theta, term.x[point_set], _all_of(objective, need), probes=probes)[MAIN]
                return jnp.sum(tape.outputs[parent][:, column])

            width = surrogate.nets[MAIN].shapes[layer][1]
            found.append(jax.grad(total)(jnp.zeros((term.share.shape[0], width))))
    return found


def _all_of(objective: Objective, need: dict[int, Channels]) -> dict[str, tuple[Index, ...]]:
    """The derivatives whose channels are `need`."""
    nets = objective.surrogate.nets
    return {
        nets[number].fields[0]: tuple(tuple(sorted(nets[number].axes[i] for i in index)) for index in channels)
        for number, channels in need.items()
    }
