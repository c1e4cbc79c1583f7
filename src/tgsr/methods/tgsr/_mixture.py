"""Two Gaussians in one dimension by expectation-maximisation (Eqs. gmm, responsibility), with their BIC."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

VARIANCE_FLOOR = 1e-10


@dataclass(frozen=True)
class Mixture:
    """A fitted mixture; "low" is the component with the lower mean after the last iteration."""

    weight_low: float
    mean_low: float
    mean_high: float
    sd_low: float
    sd_high: float
    responsibility_low: Array
    """Posterior probability of the low component, from the final parameters: (n,)."""
    log_likelihood: float
    """Summed over the neurons, at the final parameters."""
    iterations: int
    delta_bic: float
    """BIC of one Gaussian (2 parameters) less BIC of two (5): positive where two are preferred."""
    split: bool
    """False where EM cannot separate anything; both components are then the one Gaussian of the layer."""


@dataclass(frozen=True)
class _Sample:
    """The distinct values in ascending order and how often each occurs.

    So the fit does not depend on how the neurons are numbered, and tied neurons stay bit-equal.
    """

    value: Array
    count: Array

    def gaussian(self, weight: Array) -> tuple[float, float]:
        """Mean and floored population variance under `weight` (which includes the counts)."""
        total = float(weight.sum())
        mean = float((weight * self.value).sum()) / total
        variance = float((weight * (self.value - mean) ** 2).sum()) / total
        return mean, max(variance, VARIANCE_FLOOR)

    def log_density(self, mean: float, variance: float) -> Array:
        return -0.5 * (np.log(2.0 * np.pi * variance) + (self.value - mean) ** 2 / variance)


@dataclass(frozen=True)
class _Parameters:
    weight: tuple[float, float]
    mean: tuple[float, float]
    variance: tuple[float, float]


def fit_two(
    chi: Array, *, max_iterations: int = 100, tolerance: float = 1e-8, fixed_iterations: int | None = None
) -> Mixture:
    """Fit two Gaussians to `chi` (n,), from its quartiles, equal weights and its population variance.

    Stops when the summed log-likelihood moves by less than `tolerance` between two expectation steps, or
    after `max_iterations`; `fixed_iterations` runs exactly that many instead.
    """
    chi = np.asarray(chi, np.float64)
    value, inverse, count = np.unique(chi, return_inverse=True, return_counts=True)
    sample = _Sample(value, count.astype(np.float64))
    mean, variance = sample.gaussian(sample.count)
    log_likelihood_one = float((sample.count * sample.log_density(mean, variance)).sum())
    log_n = float(np.log(chi.size))

    low, high = (float(q) for q in np.percentile(chi, [25, 75]))
    fitted = None
    if low < high:
        start = _Parameters((0.5, 0.5), (low, high), (variance, variance))
        free = fixed_iterations is None
        limit, stop_below = (max_iterations, tolerance) if free else (fixed_iterations, 0.0)
        fitted = _iterate(sample, start, limit, stop_below)
    if fitted is None:
        sd, half = variance**0.5, np.full(chi.shape, 0.5)
        return Mixture(0.5, mean, mean, sd, sd, half, log_likelihood_one, 0, -3.0 * log_n, split=False)

    p, iterations = fitted
    responsibility, log_likelihood = _expect(sample, p)
    a, b = (0, 1) if p.mean[0] <= p.mean[1] else (1, 0)
    return Mixture(
        weight_low=p.weight[a],
        mean_low=p.mean[a],
        mean_high=p.mean[b],
        sd_low=p.variance[a] ** 0.5,
        sd_high=p.variance[b] ** 0.5,
        responsibility_low=responsibility[a][inverse],
        log_likelihood=log_likelihood,
        iterations=iterations,
        delta_bic=2.0 * (log_likelihood - log_likelihood_one) - 3.0 * log_n,
        split=True,
    )


def _iterate(sample: _Sample, p: _Parameters, limit: int, tolerance: float) -> tuple[_Parameters, int] | None:
    """Alternate expectation and maximisation; None where a component has lost every neuron."""
    previous, n = -np.inf, float(sample.count.sum())
    for iteration in range(1, limit + 1):
        responsibility, log_likelihood = _expect(sample, p)
        shares = [sample.count * r for r in responsibility]
        sizes = [float(share.sum()) for share in shares]
        if min(sizes) < np.finfo(np.float64).tiny:
            return None
        (mean_a, variance_a), (mean_b, variance_b) = (sample.gaussian(share) for share in shares)
        p = _Parameters((sizes[0] / n, sizes[1] / n), (mean_a, mean_b), (variance_a, variance_b))
        if abs(log_likelihood - previous) < tolerance:
            return p, iteration
        previous = log_likelihood
    return p, limit


def _expect(sample: _Sample, p: _Parameters) -> tuple[tuple[Array, Array], float]:
    """Responsibility of either component per distinct value, and the summed log-likelihood (log-sum-exp)."""
    joint_a, joint_b = (
        np.log(w) + sample.log_density(m, v) for w, m, v in zip(p.weight, p.mean, p.variance, strict=True)
    )
    log_density = np.logaddexp(joint_a, joint_b)
    responsibility = np.exp(joint_a - log_density), np.exp(joint_b - log_density)
    return responsibility, float((sample.count * log_density).sum())
