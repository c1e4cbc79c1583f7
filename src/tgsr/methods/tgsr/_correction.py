"""Stages 4-6 on arrays: from evidence to a decay factor for every hidden neuron, and the scaled rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tgsr.methods.tgsr._decay import check_bound, decay_factor, softened
from tgsr.methods.tgsr._evidence import Evidence
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.methods.tgsr._protection import protect, protection
from tgsr.methods.tgsr._scores import LayerScore, score_layer
from tgsr.methods.tgsr._signal import LayerSignal, signal_layer

Layers = Sequence[tuple[np.ndarray, np.ndarray]]  # (weight (n_in, n_out), bias) of one network
Rescore = Callable[[int, np.ndarray, np.ndarray], np.ndarray]  # (layer, scores, incoming rows) -> scores


@dataclass(frozen=True)
class LayerCorrection:
    """Everything decided about one hidden layer."""

    scored: LayerScore
    score: np.ndarray  # what the signal was read from (a control may have replaced the scores)
    signal: LayerSignal
    eta: float
    protected: np.ndarray
    gamma: np.ndarray
    softened: np.ndarray


def corrections(
    evidence: Sequence[Evidence], layers: Layers, options: TgsrOptions, rescore: Rescore | None = None
) -> list[LayerCorrection]:
    """Score, signal, protection and decay factor of every hidden layer, from the adapted state alone."""
    widths = [weight.shape[1] for weight, _ in layers[:-1]]
    eta, _ = protection(widths, options)
    out = []
    for layer in range(len(widths)):
        T = np.stack([batch.sensitivity[layer] for batch in evidence])
        V = np.stack([batch.variance[layer] for batch in evidence])
        scored = score_layer(T, V, layer, len(widths), options)
        score = scored.score if rescore is None else rescore(layer, scored.score, layers[layer][0].T)
        signal = signal_layer(score, options)
        protected = protect(signal.p, eta[layer])
        gamma = decay_factor(protected, options)
        out.append(
            LayerCorrection(scored, score, signal, float(eta[layer]), protected, gamma, softened(gamma, options))
        )
    return out


def soft_decay(
    layers: Layers, found: Sequence[LayerCorrection], options: TgsrOptions
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Eq. soft_decay: incoming row and bias of every hidden neuron times its factor, once; the output layer stays."""
    out = []
    for number, ((weight, bias), one) in enumerate(zip(layers[:-1], found, strict=True)):
        new = weight * one.gamma[None, :], bias * one.gamma
        check_bound(weight.T, bias, new[0].T, new[1], one.gamma, options, layer=number)
        out.append(new)
    return [*out, layers[-1]]


def random_reset(
    layers: Layers, found: Sequence[LayerCorrection], draw: Callable[[int, int], np.random.Generator]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The control: exactly the softened neurons get fresh Glorot-uniform rows and zero bias."""
    out = []
    for number, ((weight, bias), one) in enumerate(zip(layers[:-1], found, strict=True)):
        limit = np.sqrt(6.0 / sum(weight.shape))
        weight, bias = weight.copy(), bias.copy()
        for neuron in np.flatnonzero(one.softened):
            weight[:, neuron] = draw(number, int(neuron)).uniform(-limit, limit, weight.shape[0])
            bias[neuron] = 0.0
        out.append((weight, bias))
    return [*out, layers[-1]]


def stage_arrays(evidence: Sequence[Evidence], found: Sequence[LayerCorrection]) -> dict[str, np.ndarray]:
    """Every intermediate, for storage and for `tgsr explain`."""
    arrays: dict[str, np.ndarray] = {}
    for number, one in enumerate(found, start=1):
        mixture = one.signal.mixture
        arrays |= {
            f"layer{number}.T": np.stack([b.sensitivity[number - 1] for b in evidence]),
            f"layer{number}.V": np.stack([b.variance[number - 1] for b in evidence]),
            f"layer{number}.score": one.score,
            f"layer{number}.alpha": np.array(one.scored.alpha),
            f"layer{number}.at_floor": np.array(one.scored.at_floor),
            f"layer{number}.tau": np.array(one.signal.tau),
            f"layer{number}.chi": one.signal.chi,
            f"layer{number}.branch": np.array(one.signal.branch),
            f"layer{number}.signal": one.signal.p,
            f"layer{number}.confidence": np.array(one.signal.confidence),
            f"layer{number}.eta": np.array(one.eta),
            f"layer{number}.protected": one.protected,
            f"layer{number}.gamma": one.gamma,
            f"layer{number}.softened": one.softened,
        }
        if mixture is not None:
            arrays[f"layer{number}.mixture"] = np.array(
                [
                    mixture.weight_low,
                    mixture.mean_low,
                    mixture.mean_high,
                    mixture.sd_low,
                    mixture.sd_high,
                    mixture.delta_bic,
                ]
            )
    return arrays
