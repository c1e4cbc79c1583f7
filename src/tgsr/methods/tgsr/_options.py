"""Every choice of TGSR-PINN as one typed, checked, hashable record. The defaults are the paper's."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from tgsr._errors import InputError


@dataclass(frozen=True)
class _Range:
    """The legal interval of a number; its text is what the user reads."""

    low: int | float
    high: int | float
    open_low: bool = False

    def __contains__(self, value: int | float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and value <= min(self.high, sys.float_info.max)

    def __str__(self) -> str:
        left = "(" if self.open_low else "["
        return f"{left}{self.low:g}, {self.high:g}" + (")" if math.isinf(self.high) else "]")


_Share = Annotated[float, _Range(0, 1)]
_OpenShare = Annotated[float, _Range(0, 1, open_low=True)]
_Positive = Annotated[float, _Range(0, math.inf, open_low=True)]
_Count = Annotated[int, _Range(1, math.inf)]


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

    batches: _Count = 3
    """Number K of scoring batches, at least 1."""

    alpha_s: _Share = 0.5
    """Weight of the sensitivity in the first hidden layer, in [0, 1]."""

    delta_alpha: _Share = 0.3
    """What that weight gains from the first to the last hidden layer, in [0, 1]."""

    adapt_fraction: _OpenShare = 0.2
    """Outer epochs of the short adaptation as a share of those of main training, in (0, 1]."""

    adapt_cap: _Count = 200
    """Most outer epochs of the short adaptation, at least 1."""

    bic_threshold: Annotated[float, _Range(0, math.inf)] = 10.0
    """By how much two Gaussians must beat one in BIC, in [0, inf)."""

    low_weight_cap: _Share = 0.5
    """Largest weight of the low component that still opens the mixture branch, in [0, 1]."""

    gamma_m: _OpenShare = 0.85
    """Decay factor at signal 0.5 of the cubic map, in (0, 1]."""

    gamma_min: _OpenShare = 0.4
    """Smallest decay factor, in (0, gamma_m] for the cubic map and in (0, 1] for the others."""

    kappa: _Positive = 3.0
    """Exponent of the cubic map, in (0, inf)."""

    beta_h: _Share = 0.55
    """Protection of the first hidden layer, in [0, 1]."""

    rank_max: _Share = 0.75
    """Largest signal xi of the rank branch, in [0, 1]."""

    rank_power: _Positive = 1.5
    """Exponent rho_r of the rank branch, in (0, inf)."""

    softened_from: _OpenShare = 0.02
    """Decay 1 - gamma from which a neuron is reported as softened, in (0, 1]."""

    ties: Literal["average", "argsort"] = "average"
    """Ranks of tied scores: their average, or their order in the layer (what the authors' code does)."""

    adapt_batch: Literal["redrawn", "fixed"] = "redrawn"
    """Whether the adaptation redraws its points each outer epoch (authors' code) or keeps one (paper)."""

    adapt_history: _Count = 50
    """L-BFGS pairs kept during the adaptation, at least 1."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = _checked(field.name, getattr(self, field.name), _hints()[field.name], field.default)
            object.__setattr__(self, field.name, value)
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


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(TgsrOptions, include_extras=True)


def _checked(name: str, value: Any, hint: Any, default: Any) -> str | int | float:
    """`value` in the plain Python type of its field, or an InputError; 3 and 3.0 give equal options."""
    remedy = f"The default is {default}"
    if get_origin(hint) is Literal:
        if not (isinstance(value, str) and value in get_args(hint)):
            raise InputError(
                f"{name} = {value!r} is not one of {', '.join(get_args(hint))}", field=name, remedy=remedy
            )
        return str(value)
    kind, legal = get_args(hint)
    number: int | float = math.nan
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    elif kind is float and isinstance(value, float | np.floating):
        number = float(value)
    if number not in legal:
        whole = ", whole numbers" if kind is int else ""
        raise InputError(
            f"{name} = {value!r} is outside its legal range {legal}{whole}", field=name, remedy=remedy
        )
    return kind(number)
