"""Does a neuron's score say what happens when the neuron is damped? The gate check of the paper, on any problem.

At the adapted state the pre-activation of one neuron is scaled by 0.9 at every point, nothing else is changed and
nothing is trained. Then its score is compared with the change of the loss, |phi(0.9) - phi(1)|, and the change of the
loss's gradient in the unknowns with its first-order prediction 0.1 |d/dv grad_lambda phi(v)| at v = 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective
from tgsr.methods._method import Setting, copied, numpy_layers
from tgsr.methods._tgsr import scoring_batches
from tgsr.methods.tgsr._adaptation import adapt
from tgsr.methods.tgsr._correction import corrections
from tgsr.methods.tgsr._evidence import MAIN, collect, no_probes, pre_activations, probed_loss, probed_tapes
from tgsr.methods.tgsr._options import TgsrOptions

Gates = list[jax.Array]  # per hidden layer, one factor per neuron


@dataclass(frozen=True, eq=False)
class GateCheck:
    """One row per probed neuron. The two rank correlations are NaN where one side does not vary."""

    layer: np.ndarray  # from 1
    neuron: np.ndarray  # from 1
    score: np.ndarray
    loss_change: np.ndarray
    predicted_loss_change: np.ndarray
    gradient_change: np.ndarray
    predicted_gradient_change: np.ndarray

    @property
    def score_correlation(self) -> float:
        """Spearman's rank correlation of score and loss change."""
        return spearman(self.score, self.loss_change)

    @property
    def gradient_correlation(self) -> float:
        """Spearman's rank correlation of predicted and observed change of the gradient in the unknowns."""
        return spearman(self.predicted_gradient_change, self.gradient_change)

    def __str__(self) -> str:
        return (
            f"{len(self.score)} neurons, one at a time: score and loss change correlate with "
            f"{self.score_correlation:.3f}, predicted and observed change of the gradient in the unknowns with "
            f"{self.gradient_correlation:.3f} (Spearman)"
        )


def gate_check(
    setting: Setting, options: TgsrOptions | None = None, *, probes: int = 30, factor: float = 0.9
) -> GateCheck:
    """Adapt and score as `tgsr` would, then damp `probes` neurons, spread over the hidden layers, one at a time."""
    if not 0 <= factor < 1 or probes < 1:
        raise InputError(f"the gate check got probes = {probes}, factor = {factor}", field="probes",
                         remedy="Give at least one probe and a factor from 0 to below 1")  # fmt: skip
    options = options or TgsrOptions()
    with computing():
        adapted = adapt(setting, copied(setting, "tgsr"), options)
        batches = list(scoring_batches(setting, adapted, options))
        layers = numpy_layers(setting, adapted.theta)
        evidence = [collect(setting.objective, adapted.theta, batch, adapted.controls, options) for batch in batches]
        found = corrections(evidence, layers, options)
        chosen = chosen_neurons([len(one.score) for one in found], probes, setting.seed)
        rows = [
            respond(setting.objective, adapted.theta, batch, adapted.controls, chosen, factor, options.gate == "jet")
            for batch in batches
        ]
    layer, neuron = np.array(chosen).T
    scores = np.array([found[number].score[j] for number, j in chosen])
    return GateCheck(layer + 1, neuron + 1, scores, *np.mean(rows, axis=0))


def chosen_neurons(widths: list[int], probes: int, seed: int) -> list[tuple[int, int]]:
    """(layer, neuron), both from 0: as many of each layer as of any other, as far as it has them."""
    orders = [stream(seed, "probes", layer).permutation(width) for layer, width in enumerate(widths)]
    turns = [(layer, int(order[turn])) for turn in range(max(widths)) for layer, order in enumerate(orders)
             if turn < len(order)]  # fmt: skip
    return sorted(turns[:probes])


def respond(
    objective: Objective,
    theta: jax.Array,
    batch: Batch,
    controls: Controls,
    neurons: list[tuple[int, int]],
    factor: float,
    whole_jet: bool = False,
) -> np.ndarray:
    """(4, neurons): |loss change|, its first-order prediction, |gradient change|, its first-order prediction."""
    ones = [jnp.ones(width) for width in objective.surrogate.nets[MAIN].mlp.widths]
    at, along = _programs(objective, whole_jet)
    value, gradient = at(ones, theta, batch, controls)
    out = []
    for layer, neuron in neurons:
        unit = [jnp.zeros_like(one) for one in ones]
        unit[layer] = unit[layer].at[neuron].set(1.0)
        damped = [one - (1.0 - factor) * u for one, u in zip(ones, unit, strict=True)]
        new_value, new_gradient = at(damped, theta, batch, controls)
        slope, gradient_slope = along(ones, unit, theta, batch, controls)
        changes = new_value - value, (1.0 - factor) * slope, new_gradient - gradient, (1.0 - factor) * gradient_slope
        out.append([float(jnp.linalg.norm(jnp.atleast_1d(change))) for change in changes])
    return np.array(out).T


@functools.lru_cache(maxsize=4)
def _programs(objective: Objective, whole_jet: bool):
    """Compiled once: (phi, its gradient in the raw unknowns), and the slope of both along a change of the gates."""
    loss, start = gated_loss(objective, whole_jet), objective.surrogate.network_size

    @jax.jit
    def at(gates: Gates, theta: jax.Array, batch: Batch, controls: Controls) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(lambda raw: loss(gates, theta.at[start:].set(raw), batch, controls))(theta[start:])

    @jax.jit
    def along(
        gates: Gates, change: Gates, theta: jax.Array, batch: Batch, controls: Controls
    ) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(lambda gates: at(gates, theta, batch, controls), (gates,), (change,))[1]

    return at, along


def gated_loss(
    objective: Objective, whole_jet: bool = False
) -> Callable[[Gates, jax.Array, Batch, Controls], jax.Array]:
    """phi(v): the loss with pre-activations scaled by v, their values alone or with all their derivatives.

    Exact where all gates but one layer's are 1.
    """

    def loss(gates: Gates, theta: jax.Array, batch: Batch, controls: Controls) -> jax.Array:
        def block_loss(total: jax.Array, block: Batch) -> tuple[jax.Array, None]:
            first = 0
            for number, term in enumerate(block):
                weights = controls.weights[first : first + len(objective.plans[number].term.parts)]
                first += len(weights)
                probes = _as_probes(objective, number, theta, term, gates, whole_jet)
                total = total + probed_loss(objective, number, theta, term, controls, weights, probes)
            return total, None

        return jax.lax.scan(block_loss, jnp.zeros(()), batch)[0]

    return loss


def _as_probes(objective, number, theta, term, gates, whole_jet):
    """Gates as what they add to the pre-activations: (v - 1) z."""
    surrogate = objective.surrogate
    probes = no_probes(objective, number, term.share.shape[0])
    tapes = probed_tapes(objective, number, theta, term, probes)
    layers = surrogate.layers(theta)[MAIN]
    for wanted, x, tape, probe in zip(objective.plans[number].wanted, term.x, tapes, probes, strict=True):
        channels = surrogate.needs(wanted).get(MAIN)
        if channels is None:
            continue
        for layer, gate in enumerate(gates):
            z = pre_activations(layers, surrogate.nets[MAIN].inputs(x), channels, tape[MAIN], layer)
            added = (gate - 1.0) * z
            probe[MAIN][layer] = added if whole_jet else probe[MAIN][layer].at[0].set(added[0])
    return probes


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson's correlation of average ranks."""
    ranks = np.stack([_ranks(a), _ranks(b)])
    return float(np.corrcoef(ranks)[0, 1]) if np.all(np.ptp(ranks, axis=1) > 0) else float("nan")


def _ranks(a: np.ndarray) -> np.ndarray:
    _, inverse, count = np.unique(a, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2.0)[inverse]
