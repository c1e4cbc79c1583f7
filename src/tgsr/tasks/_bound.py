"""The statistical limit: how well any unbiased estimator could know the unknowns from the readings alone.

    covariance >= sigma^2 (S^T S)^-1,   S_ij = d u(point i) / d unknown j   (Cramér, Rao)

for readings with independent normal errors, over the family of fields that solve the equation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tgsr.tasks._exact import Exact

Sensitivity = Callable[[dict[str, np.ndarray]], np.ndarray]
STEP = 1e-4  # of a constant: the error of a central difference is then some 1e-8


def cramer_rao(sensitivity: np.ndarray, sigma: float) -> np.ndarray:
    """The least standard errors; infinite where the readings say nothing."""
    scale = np.linalg.norm(sensitivity, axis=0)
    if not len(sensitivity) or np.any(scale == 0):
        return np.full(sensitivity.shape[1], np.inf)
    _, singular, v = np.linalg.svd(sensitivity / scale, full_matrices=False)
    if len(singular) < len(scale) or singular[-1] < 1e-10 * singular[0]:
        return np.full(len(scale), np.inf)
    return sigma * np.linalg.norm(v.T / singular, axis=1) / scale


def differences(family: Callable[..., Exact], constants: Mapping[str, float]) -> Sensitivity:
    """The sensitivity of a field that `family(**constants)` gives for every value of the constants."""

    def sensitivity(points: dict[str, np.ndarray]) -> np.ndarray:
        columns = []
        for name, value in constants.items():
            up, down = (family(**{**constants, name: value * (1.0 + s)}) for s in (STEP, -STEP))
            columns.append((up(**points) - down(**points)) / (2.0 * STEP * value))
        return np.stack(columns, axis=1)

    return sensitivity
