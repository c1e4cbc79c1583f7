"""Values of a trained network in plain NumPy: predictions need no JAX and no compilation."""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from tgsr.network._saved import SavedNetwork

_FUNCTIONS = {
    "tanh": np.tanh,
    "sin": np.sin,
    "sigmoid": lambda z: 0.5 + 0.5 * np.tanh(0.5 * z),
    "softplus": lambda z: np.logaddexp(z, 0.0),
    "swish": lambda z: z * (0.5 + 0.5 * np.tanh(0.5 * z)),
    "gelu": lambda z: 0.5 * z * (1.0 + erf(z / np.sqrt(2.0))),
}
CHUNK = 16384


def evaluate(network: SavedNetwork, points: np.ndarray, *, positive: bool = False) -> dict[str, np.ndarray]:
    """Each field at `points` (n, coordinates). `positive` networks end in a softplus."""
    phi = _FUNCTIONS[network.activation]
    out = []
    for start in range(0, max(len(points), 1), CHUNK):
        a = (points[start : start + CHUNK] - network.centre) / network.half_width
        for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
            a = phi(a @ weight + bias)
        a = a @ network.weights[-1] + network.biases[-1]
        out.append(network.offset + network.scale * (np.logaddexp(a, 0.0) if positive else a))
    values = np.concatenate(out)
    return {name: values[:, i] for i, name in enumerate(network.fields)}
