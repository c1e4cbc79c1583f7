"""Standard errors of the unknowns, marginal over every weight of the networks, from the Jacobian of the rows.

Near the fit the estimate moves with the noise e of the readings as  d theta = -A^-1 J_d^T W e,  where A = J^T W J is
half the Hessian of the loss (data and physics, at the weights that were used) and J_d its data rows. So

    cov(theta) = A^-1 J^T W S W J A^-1        (S the noise covariance; the "sandwich"),

which is right for any loss weights: they need not be 1/sigma^2. Rows of equations enter with the mean square that the
fit has left of them, so that approximation counts where the noise is small. Only the rows of A^-1 that belong to
unknowns are needed. The same A, scaled to the likelihood, also tells what the data cannot tell: a direction of unknowns
along which A is flat is *not identifiable*, however small its sandwich looks.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from tgsr.loss import Batch, Controls, Objective, weighted_jacobian
from tgsr.optimiser import row_count
from tgsr.training._controls import NO_DATA_NOISE

RIDGE = 1e-10  # of the largest diagonal entry of A: directions flatter than training can follow (coverage checked)
UNDETERMINED = 1.0  # a standard deviation as large as an unknown's own size
NORMAL_95 = 1.959963984540054
DENSE_LIMIT = 6000  # weights or rows up to which A is factorised
STRIP = 4096  # columns of a wide Jacobian that are copied at a time


@dataclass(frozen=True)
class Uncertainty:
    """Covariance of the raw unknowns, and what of them the data cannot tell."""

    covariance: np.ndarray  # of the raw unknowns
    undetermined: np.ndarray  # bool per unknown
    directions: tuple[tuple[float, ...], ...]  # flat directions in raw unknowns, unit length
    misfit_ratio: float  # root mean square of residual over stated noise, largest over data sets
    readings: int


def uncertainty(
    objective: Objective, theta: jax.Array, batch: Batch, controls: Controls, sigma: np.ndarray
) -> Uncertainty | None:
    """The uncertainty of the unknowns at a fit; None where there is nothing to know or the network is too large."""
    unknowns = len(objective.surrogate.transforms)
    size, rows = objective.surrogate.size, row_count(objective, batch)
    if not unknowns or min(size, rows) > DENSE_LIMIT or rows * size > 4e8:
        return None
    jacobian, kind, z = _standardised_rows(objective, theta, batch, controls)
    data_weight, noise_scale, stretch = np.ones(len(z)), np.ones(len(z)), np.ones(len(z))
    readings, ratio = 0, 1.0
    for number, part in enumerate(objective.parts):
        mine = kind == number
        count = int(mine.sum())
        if part.kind != "data" or part.noise is None:  # what is left of an equation errs by its own size
            noise_scale[mine] = float(np.sqrt(np.mean(z[mine] ** 2)))
            continue
        readings += count
        # z is standardised by the sigma of training, which may be floored, or a field's own scale where the user gave
        # weights; the likelihood's own sigma is the stated one, or what the residuals say.
        own, noise = float(sigma[part.sigma_number]), part.noise
        if noise.estimated and np.any(z[mine]):
            noise = noise.fitted(z[mine] * own)
        stated = own if noise.scale is None else float(noise.scale)
        stretch[mine] = stated / own
        standard = z[mine] * own / stated
        spread = float(np.sqrt(np.mean(noise.psi(standard) * standard)))
        inflate = 1.0
        if not part.noise.estimated:
            ratio, inflate = max(ratio, spread), max(spread, 1.0)
        data_weight[mine] = max(float(np.mean(noise.dpsi(z[mine]))), 0.05)  # of the loss, hence at its own sigma
        gaussian = noise.name == "gaussian"
        noise_scale[mine] = inflate * stated / own if gaussian else float(np.sqrt(np.mean(noise.psi(z[mine]) ** 2)))
    weights = np.asarray(controls.weights)[kind] * _shares(objective, batch)
    pull = np.asarray(controls.pull) * np.asarray(controls.mask)
    columns = _inverse_columns(jacobian, np.sqrt(weights * data_weight), pull, unknowns)
    is_data = np.array([objective.parts[k].kind == "data" for k in kind])
    pushed = (weights * noise_scale)[:, None] * (jacobian @ columns)
    covariance = pushed.T @ pushed
    flat_variance = columns[-unknowns:] * _likelihood_weight(weights * stretch**2, is_data)
    determined = _undetermined(objective, theta, (flat_variance + flat_variance.T) / 2)
    return Uncertainty(covariance, *determined, misfit_ratio=ratio, readings=readings)


def _standardised_rows(objective: Objective, theta: jax.Array, batch: Batch, controls: Controls):
    """(Jacobian, number of the part, row) of every real row: unweighted, data as z = residual / sigma."""
    ones = controls._replace(weights=jnp.ones_like(controls.weights))
    block = _block_rows(objective)
    jacobians, rows, kinds = [], [], []
    for i in range(objective.blocks):
        one = jax.tree.map(lambda a, i=i: a[i], batch)
        row, jacobian = block(theta, one, ones)
        real, kind = [], []
        for number, share in enumerate(
            np.asarray(b.share) for plan, b in zip(objective.plans, one, strict=True) for _ in plan.term.parts
        ):
            real.append(share > 0)
            kind.append(np.full(len(share), number))
        keep = np.concatenate(real)
        jacobians.append(np.asarray(jacobian)[keep])
        rows.append(np.asarray(row)[keep])
        kinds.append(np.concatenate(kind)[keep])
    return np.concatenate(jacobians), np.concatenate(kinds), np.concatenate(rows)


@functools.lru_cache(maxsize=64)
def _block_rows(objective: Objective):
    """(row, Jacobian) of a block, compiled once per objective."""
    bare = replace(objective, whitening=False)

    @jax.jit
    def block(theta: jax.Array, one: Batch, controls: Controls) -> tuple[jax.Array, jax.Array]:
        unit = tuple(b._replace(share=jnp.where(b.share > 0, 1.0, 0.0)) for b in one)
        return weighted_jacobian(bare, theta, unit, controls)

    return block


def _shares(objective: Objective, batch: Batch) -> np.ndarray:
    """1/n of every real row, in the order of `_standardised_rows`."""
    out = []
    for i in range(objective.blocks):
        for plan, b in zip(objective.plans, batch, strict=True):
            share = np.asarray(b.share[i])
            out += [share[share > 0]] * len(plan.term.parts)
    return np.concatenate(out)


def _inverse_columns(jacobian: np.ndarray, scale: np.ndarray, pull: np.ndarray, unknowns: int) -> np.ndarray:
    """The columns of A^-1 that belong to the unknowns (the last ones of theta), A from the rows times their scale."""
    rows, size = jacobian.shape
    largest = float(np.max(np.einsum("ij,ij,i->j", jacobian, jacobian, scale**2))) or 1.0
    ridge = RIDGE * largest + pull
    if size <= rows:
        scaled = jacobian * scale[:, None]
        return _positive_solve(scaled.T @ scaled, ridge, np.eye(size)[:, -unknowns:])
    # With J = S K: (J^T J + R)^-1 E = R^-1 E - R^-1 J^T (1 + J R^-1 J^T)^-1 J R^-1 E, and K is copied in strips only.
    gram = np.zeros((rows, rows))
    for first in range(0, size, STRIP):
        strip = slice(first, first + STRIP)
        copied = jacobian[:, strip] * scale[:, None] / np.sqrt(ridge[strip])
        gram += copied @ copied.T  # one array with itself: NumPy computes half of it
    seen = scale[:, None] * jacobian[:, -unknowns:] / ridge[-unknowns:]
    columns = -jacobian.T @ (scale[:, None] * _positive_solve(gram, np.ones(rows), seen))
    columns[-unknowns:] += np.eye(unknowns)
    return columns / ridge[:, None]


def _positive_solve(matrix: np.ndarray, ridge: np.ndarray, right: np.ndarray) -> np.ndarray:
    """(matrix + ridge)^-1 right; rounding may ask for a larger ridge than was given."""
    while True:
        try:
            return scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix + np.diag(ridge), lower=True), right)
        except scipy.linalg.LinAlgError:
            ridge = 10.0 * ridge


def _likelihood_weight(weights: np.ndarray, is_data: np.ndarray) -> float:
    """The factor between the loss and the negative log-likelihood: each reading counts 1/2 z^2 there."""
    if is_data.any():
        return float(np.mean(weights[is_data]))
    return (
        float(np.mean(weights)) * NO_DATA_NOISE**2
    )  # without readings equations are held to this, and it is all there is


def _undetermined(objective: Objective, theta: jax.Array, variance: np.ndarray):
    """Which unknowns a flat direction moves by as much as their own size."""
    raw = np.asarray(objective.surrogate.raw(theta))
    transforms = objective.surrogate.transforms
    # In raw numbers an unknown's own size is its value over its slope (1 on a log scale), or its guess's.
    sizes = np.array(
        [
            max(abs(t.value(r)), t.unknown.size) / max(abs(t.slope(r)), 1e-300)
            if t.unknown.bounds is None
            else 2.0  # a logit moved by 2 crosses most of the interval
            for t, r in zip(transforms, raw, strict=True)
        ]
    )
    relative = variance / np.outer(sizes, sizes)
    values, vectors = np.linalg.eigh(np.where(np.isfinite(relative), relative, 1e12))
    loose = values > UNDETERMINED**2
    flags = np.zeros(len(raw), dtype=bool)
    for vector in vectors[:, loose].T:
        flags |= np.abs(vector) > 0.1
    directions = tuple(tuple(float(v) for v in vector) for vector in vectors[:, loose].T)
    return flags, directions
