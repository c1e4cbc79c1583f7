"""Layer protection (Eq. layer_protect): shallow layers, which encode the input, are softened less."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tgsr.methods.tgsr._options import TgsrOptions

Array = NDArray[np.float64]


def protection(widths: Sequence[int], options: TgsrOptions) -> tuple[Array, Array]:
    """`(eta, d)` per hidden layer: `d_l = 1 - (l - 1)/(L_h - 1)` (1 for one layer), `eta_l = 1 - beta_h d_l`.

    `none` gives eta = 1. `matched` gives every layer the neuron-weighted mean of eta: the strength of
    `depth` without its order.
    """
    layers = len(widths)
    d = 1.0 - np.arange(layers) / max(layers - 1, 1)
    eta = 1.0 - options.beta_h * d
    if options.protection == "none":
        eta = np.ones(layers)
    elif options.protection == "matched":
        eta = np.full(layers, np.average(eta, weights=np.asarray(widths, np.float64)))
    return eta, d


def protect(p: Array, eta: float) -> Array:
    """`p~ = clip(eta_l p, 0, 1)`."""
    return np.clip(eta * np.asarray(p, np.float64), 0.0, 1.0)
