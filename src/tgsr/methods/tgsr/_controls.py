"""Scores without target evidence, for the controls: same signal and map, another reason to choose."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def shuffled(score: Array, generator: np.random.Generator) -> Array:
    """The layer's own scores, dealt to its neurons by lot: TGSR without knowing which neuron."""
    return generator.permutation(np.asarray(score, np.float64))


def random_scores(n: int, generator: np.random.Generator) -> Array:
    """Scores drawn uniformly from [0, 1)."""
    return generator.random(n)


def magnitude_scores(rows: ArrayLike) -> Array:
    """Norm of each neuron's incoming weight row, min-max per layer; 0 if all agree."""
    norm = np.linalg.norm(np.asarray(rows, np.float64), axis=1)
    span = norm.max() - norm.min()
    return (norm - norm.min()) / span if span > 0.0 else np.zeros_like(norm)
