"""Every choice of TGSR-PINN as one typed, checked, hashable record. The defaults are the paper's."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

from tgsr._errors import InputError
from tgsr.methods._ranges import Count, NonNegative, OpenShare, Positive, Share, check_options


@dataclass(frozen=True)
class TgsrOptions:
    """What TGSR-PINN may be told. An illegal value is an error that names field, value and legal range."""

    score: Literal["paper", "ref"] = "paper"
    """Which dL/dz enters the sensitivity: `paper` (one whole derivative per point) or `ref` (what the
    authors' hooks collect, the derivatives of the field included)."""

    gate: Literal["value", "jet"] = "value"
    """What the virtual gate scales: the pre-activation's `value`, or its whole `jet` of derivatives."""

    branch: Literal["gmm+rank", "rank", "gmm"] = "gmm+rank"
    """How scores become a signal: mixture with rank as fallback, rank only, or mixture only."""

    protection: Literal["depth", "none", "matched"] = "depth"
    """How layers are protected: by depth, not at all, or all by the neuron-weighted mean of `depth`."""

    mapping: Literal["cubic", "linear", "sigmoid", "hard"] = "cubic"
    """The map from protected signal to decay factor."""

    batches: Count = 3
    """Number K of scoring batches, at least 1."""

    alpha_s: Share = 0.5
    """Weight of the sensitivity in the first hidden layer, in [0, 1]."""

    delta_alpha: Share = 0.3
    """What that weight gains from the first to the last hidden layer, in [0, 1]."""

    adapt_fraction: OpenShare = 0.2
    """Outer epochs of the short adaptation as a share of those of main training, in (0, 1]."""

    adapt_cap: Count = 200
    """Most outer epochs of the short adaptation, at least 1."""

    bic_threshold: NonNegative = 10.0
    """By how much two Gaussians must beat one in BIC, in [0, inf)."""

    low_weight_cap: Share = 0.5
    """Largest weight of the low component that still opens the mixture branch, in [0, 1]."""

    gamma_m: OpenShare = 0.85
    """Decay factor at signal 0.5 of the cubic map, in (0, 1]."""

    gamma_min: OpenShare = 0.4
    """Smallest decay factor, in (0, gamma_m] for the cubic map and in (0, 1] for the others."""

    kappa: Positive = 3.0
    """Exponent of the cubic map, in (0, inf)."""

    beta_h: Share = 0.55
    """Protection of the first hidden layer, in [0, 1]."""

    rank_max: Share = 0.75
    """Largest signal xi of the rank branch, in [0, 1]."""

    rank_power: Positive = 1.5
    """Exponent rho_r of the rank branch, in (0, inf)."""

    softened_from: OpenShare = 0.02
    """Decay 1 - gamma from which a neuron is reported as softened, in (0, 1]."""

    ties: Literal["average", "argsort"] = "average"
    """Ranks of tied scores: their average, or their order in the layer (what the authors' code does)."""

    adapt_batch: Literal["redrawn", "fixed"] = "redrawn"
    """Whether the adaptation redraws its points each outer epoch (authors' code) or keeps one (paper)."""

    adapt_history: Count = 50
    """L-BFGS pairs kept during the adaptation, at least 1."""

    def __post_init__(self) -> None:
        check_options(self)
        if self.mapping == "cubic" and self.gamma_min > self.gamma_m:
            raise InputError(
                f"gamma_min = {self.gamma_min:g} is outside its legal range (0, gamma_m = {self.gamma_m:g}]",
                field="gamma_min",
                remedy="The cubic map would not be monotone: lower gamma_min or raise gamma_m",
            )
        if self.alpha_s + self.delta_alpha > 1 + 1e-12:
            warnings.warn(
                f"alpha_s + delta_alpha = {self.alpha_s + self.delta_alpha:g} is above 1: "
                "the deepest layers then reward neurons that vary little",
                UserWarning,
                stacklevel=3,
            )
