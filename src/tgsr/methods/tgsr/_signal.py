"""From the scores of a layer to its weak-adaptation signal (Eqs. compress to rank); 1 softens most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tgsr._errors import InputError
from tgsr.methods.tgsr._mixture import Mixture, fit_two
from tgsr.methods.tgsr._options import TgsrOptions

Array = NDArray[np.float64]

STABILITY = 1e-12
"""zeta_s = zeta_p = zeta_r of Eqs. compress, gmm_signal and rank."""


@dataclass(frozen=True)
class LayerSignal:
    """The signal of one layer and how it came about."""

    p: Array
    """Weak-adaptation signal in [0, 1]: (n,)."""
    branch: Literal["gmm", "rank", "closed", "degenerate"]
    """What gave the signal: `closed` is 0 because `gmm` alone was asked for and its gate is shut;
    `degenerate` is 0 because the scores tell no neuron from another."""
    tau: float
    """Robust scale of the scores (0 where no score is positive)."""
    chi: Array
    """Compressed scores log(1 + s/tau): (n,)."""
    mixture: Mixture | None
    """The fit, wherever one was made, whether or not its gate opened."""
    confidence: float
    """c = 1 - BC of the fit; 0 without one."""


def signal_layer(score: Array, options: TgsrOptions, *, fixed_iterations: int | None = None) -> LayerSignal:
    """Mixture iff `dBIC > bic_threshold` and `pi_low <= low_weight_cap`, else see `options.branch`."""
    score = np.asarray(score, np.float64)
    if not (np.isfinite(score).all() and (score >= 0.0).all()):
        raise InputError("neuron scores must be finite and not negative", field="score")
    tau, chi = compress(score)
    if score.size < 2 or score.min() == score.max():
        return LayerSignal(np.zeros_like(score), "degenerate", tau, chi, None, 0.0)
    if options.branch == "rank":
        return LayerSignal(rank_signal(score, options), "rank", tau, chi, None, 0.0)
    mixture = fit_two(chi, fixed_iterations=fixed_iterations)
    c = separation(mixture)
    if mixture.split and mixture.delta_bic > options.bic_threshold and mixture.weight_low <= options.low_weight_cap:
        return LayerSignal(mixture_signal(mixture, c), "gmm", tau, chi, mixture, c)
    if options.branch == "gmm":
        return LayerSignal(np.zeros_like(score), "closed", tau, chi, mixture, c)
    return LayerSignal(rank_signal(score, options), "rank", tau, chi, mixture, c)


def compress(score: Array) -> tuple[float, Array]:
    """`tau = median of positive s + 1e-12` and `chi = log(1 + s/tau)`."""
    positive = score[score > 0.0]
    if positive.size == 0:
        return 0.0, np.zeros_like(score)
    tau = float(np.median(positive)) + STABILITY
    return tau, np.log1p(score / tau)


def separation(mixture: Mixture) -> float:
    """`c = 1 - BC`, `BC = sqrt(2 sL sH/(sL^2 + sH^2)) exp(-(mL - mH)^2 / (4 (sL^2 + sH^2)))`."""
    low, high = mixture.sd_low, mixture.sd_high
    spread = low**2 + high**2
    overlap = np.sqrt(2.0 * low * high / spread) * np.exp(
        -((mixture.mean_low - mixture.mean_high) ** 2) / (4.0 * spread)
    )
    return float(np.clip(1.0 - overlap, 0.0, 1.0))


def mixture_signal(mixture: Mixture, confidence: float) -> Array:
    """`p = c clip((q_low - pi_low)/(1 - pi_low + 1e-12), 0, 1)`: the posterior's excess over its prior.

    Not monotone in the score: with unequal variances the wider component owns both tails.
    """
    excess = (mixture.responsibility_low - mixture.weight_low) / (1.0 - mixture.weight_low + STABILITY)
    return confidence * np.clip(excess, 0.0, 1.0)


def rank_signal(score: Array, options: TgsrOptions) -> Array:
    """`p = xi ((n - rank)/(n - 1 + 1e-12))^rho`, ascending ranks 1..n; ties share their average rank."""
    n = score.size
    if options.ties == "average":
        _, inverse, count = np.unique(score, return_inverse=True, return_counts=True)
        rank = (np.cumsum(count) - (count - 1) / 2.0)[inverse]
    else:
        rank = np.empty(n)
        rank[np.argsort(score, kind="stable")] = np.arange(1.0, n + 1.0)
    return options.rank_max * ((n - rank) / (n - 1.0 + STABILITY)) ** options.rank_power
