"""From protected signal to decay factor (Eq. decay_map), and the bound the decay obeys (Eq. decay_bound)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tgsr._errors import TgsrError
from tgsr.methods.tgsr._options import TgsrOptions

Array = NDArray[np.float64]

STEEPNESS = 8.0
"""Of the sigmoid map, about signal 0.5."""


class DecayError(TgsrError):
    """The network after the decay is not the scaled network before it. `layer` and `neuron` count from 1."""

    exit_code = 1

    def __init__(self, what: str, layer: int | None, neuron: int) -> None:
        self.layer, self.neuron = layer, neuron
        where = f"neuron {neuron}" if layer is None else f"hidden layer {layer}, neuron {neuron}"
        super().__init__(f"{where}: {what}", remedy="Start the transfer again from the adapted network")


def decay_factor(p_tilde: ArrayLike, options: TgsrOptions) -> Array:
    """gamma in [gamma_min, 1]: 1 at signal 0, gamma_min at signal 1, for every map.

    `cubic`: `1 - (2p)^kappa (1 - gamma_m)` below 0.5, else `gamma_m - (2p - 1)^kappa (gamma_m - gamma_min)`;
    `linear`: `1 - p (1 - gamma_min)`; `sigmoid`: a logistic of steepness 8, rescaled to these ends;
    `hard`: 1 below 0.5, else gamma_min.
    """
    p = np.asarray(p_tilde, np.float64)
    middle, least = options.gamma_m, options.gamma_min
    if options.mapping == "cubic":
        mild = 1.0 - (2.0 * p) ** options.kappa * (1.0 - middle)
        strong = middle - np.maximum(2.0 * p - 1.0, 0.0) ** options.kappa * (middle - least)
        gamma = np.where(p < 0.5, mild, strong)
    elif options.mapping == "linear":
        gamma = 1.0 - p * (1.0 - least)
    elif options.mapping == "sigmoid":
        start, end = _logistic(np.array([0.0, 1.0]))
        gamma = 1.0 - (1.0 - least) * (_logistic(p) - start) / (end - start)
    else:
        gamma = np.where(p < 0.5, 1.0, least)
    return np.clip(gamma, least, 1.0)  # only rounding can leave this range


def softened(gamma: Array, options: TgsrOptions) -> NDArray[np.bool_]:
    """The reporting set `M = {1 - gamma >= delta_g}` (Eq. softened_set); nothing is decided by it."""
    return 1.0 - np.asarray(gamma, np.float64) >= options.softened_from


def check_bound(
    before_rows: ArrayLike,
    before_bias: ArrayLike,
    after_rows: ArrayLike,
    after_bias: ArrayLike,
    gamma: ArrayLike,
    options: TgsrOptions,
    *,
    layer: int | None = None,
) -> None:
    """Raise unless each neuron moved straight inwards by `(1 - gamma)|theta| <= (1 - gamma_min)|theta|`.

    Rows are (width, inputs), one per neuron; theta is a row with its bias. Both halves are tested: gamma is
    in [gamma_min, 1], and what came out is gamma times what went in, to the rounding of the stored
    precision. `layer` counts from 0 and only words the message.
    """
    label = None if layer is None else layer + 1
    stored = np.asarray(after_rows).dtype
    rounding = 8.0 * float(np.finfo(stored if np.issubdtype(stored, np.floating) else np.float64).eps)
    before, after = _blocks(before_rows, before_bias), _blocks(after_rows, after_bias)
    factor = np.asarray(gamma, np.float64)
    norm = np.linalg.norm(before, axis=1)
    for j in np.flatnonzero(~((factor >= options.gamma_min - rounding) & (factor <= 1.0 + rounding))):
        what = f"decay factor {factor[j]:g} is outside [{options.gamma_min:g}, 1]"
        raise DecayError(what, label, int(j) + 1)
    error = np.linalg.norm(after - factor[:, None] * before, axis=1)
    for j in np.flatnonzero(~(error <= rounding * norm)):
        moved = float(np.linalg.norm(after[j] - before[j]))
        allowed = (1.0 - factor[j]) * norm[j]
        what = f"its weights moved by {moved:.6g} where the decay moves them by {allowed:.6g}"
        raise DecayError(what, label, int(j) + 1)


def _logistic(p: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-STEEPNESS * (p - 0.5)))


def _blocks(rows: ArrayLike, bias: ArrayLike) -> Array:
    return np.column_stack([np.asarray(rows, np.float64), np.asarray(bias, np.float64)])
