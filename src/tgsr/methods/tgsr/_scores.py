"""Scores of the hidden neurons from their target evidence (Eqs. taylor to score_avg).

Neurons at or below both layer means land on one floor. Many do, and the rank branch needs those ties to be
bit-equal, so the floor is written as one value rather than computed once per neuron.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tgsr._errors import TgsrError
from tgsr.methods.tgsr._options import TgsrOptions

Array = NDArray[np.float64]

FLOOR = 1e-6
"""zeta_0 of Eq. score_single; also what keeps the normalisation's two divisions finite."""


class ScoreError(TgsrError, FloatingPointError):
    """The scores of a hidden layer are not finite. `layer` counts from 1."""

    exit_code = 1

    def __init__(self, layer: int, evidence: str) -> None:
        self.layer = layer
        super().__init__(
            f"the {evidence} of hidden layer {layer} is not finite, so its neurons cannot be scored",
            remedy="The short adaptation has probably diverged: look at its loss, then shorten it",
        )


@dataclass(frozen=True)
class LayerScore:
    """Scores of one hidden layer, with the evidence they were made from."""

    score: Array
    """s, averaged over the batches: (width,)."""
    T_normalised: Array
    """Sensitivity in [0, 1], per batch: (K, width)."""
    V_normalised: Array
    """Variance in [0, 1], per batch: (K, width)."""
    at_floor: int
    """Neurons whose two kinds of evidence vanish in every batch; their scores tie exactly."""
    alpha: float
    """Weight of the sensitivity in this layer."""


def moments(z: Array, dz: Array) -> tuple[Array, Array]:
    """`T = mean |z dL/dz|` and `V = Var z` (unbiased) over the n points: (n, width) each -> (width,)."""
    z, dz = np.asarray(z, np.float64), np.asarray(dz, np.float64)
    return np.mean(np.abs(z * dz), axis=0), np.var(z, axis=0, ddof=1)


def normalise(a: Array) -> Array:
    """`x = max(0, (a - mean)/(std + 1e-6))`, then `x / (max x + 1e-6)`: one layer's evidence in [0, 1)."""
    a = np.asarray(a, np.float64)
    ordered = np.sort(a)  # sums that do not depend on how the neurons are numbered
    if ordered[0] == ordered[-1]:  # also one neuron: nothing stands above the mean
        return np.zeros_like(a)
    above = np.maximum((a - ordered.mean()) / (ordered.std(ddof=1) + FLOOR), 0.0)
    return above / (above.max() + FLOOR)


def fusion_weight(layer: int, hidden_layers: int, options: TgsrOptions) -> float:
    """`alpha_l = alpha_s + delta_alpha (l - 1)/(L_h - 1)`, half way for one hidden layer; `layer` from 0."""
    depth = layer / (hidden_layers - 1) if hidden_layers > 1 else 0.5
    return options.alpha_s + options.delta_alpha * depth


def fuse(T_normalised: Array, V_normalised: Array, alpha: float) -> Array:
    """`s = (T~ + 1e-6)^alpha (V~ + 1e-6)^(1 - alpha)` (Eq. score_single); 1e-6 exactly where both vanish."""
    fused = (T_normalised + FLOOR) ** alpha * (V_normalised + FLOOR) ** (1.0 - alpha)
    return np.where((T_normalised == 0.0) & (V_normalised == 0.0), FLOOR, fused)


def score_layer(T: Array, V: Array, layer: int, hidden_layers: int, options: TgsrOptions) -> LayerScore:
    """Normalise and fuse each of the K batches, then average: (K, width) each -> (width,). `layer` from 0."""
    T, V = np.asarray(T, np.float64), np.asarray(V, np.float64)
    for evidence, name in ((T, "sensitivity"), (V, "variance")):
        if not np.isfinite(evidence).all():
            raise ScoreError(layer + 1, name)
    alpha = fusion_weight(layer, hidden_layers, options)
    try:
        with np.errstate(over="raise", invalid="raise"):
            T_normalised, V_normalised = (np.stack([normalise(batch) for batch in a]) for a in (T, V))
            score = np.mean([fuse(t, v, alpha) for t, v in zip(T_normalised, V_normalised, strict=True)], axis=0)
    except FloatingPointError as overflow:
        raise ScoreError(layer + 1, "score") from overflow
    floor = np.all((T_normalised == 0.0) & (V_normalised == 0.0), axis=0)
    return LayerScore(score, T_normalised, V_normalised, int(floor.sum()), alpha)
