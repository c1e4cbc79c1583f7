"""From a trained state to what a reader is told: estimates with errors, what the data leave open, the likelihood."""

from __future__ import annotations

import math

import jax
import numpy as np

from tgsr._result import Estimate
from tgsr.loss import Objective
from tgsr.network._saved import SavedNetwork
from tgsr.network._surrogate import Net
from tgsr.problem import Problem
from tgsr.training import Trained, Uncertainty
from tgsr.training._controls import misfits
from tgsr.training._uncertainty import NORMAL_95

SUSPICIOUS, UNTRUSTED = 1.5, 4.0  # times the stated noise


def saved_network(problem: Problem, net: Net, layers: list[tuple[jax.Array, jax.Array]]) -> SavedNetwork:
    """A trained network with its names and scales."""
    return SavedNetwork(
        tuple(np.asarray(w) for w, _ in layers),
        tuple(np.asarray(b) for _, b in layers),
        net.mlp.activation,
        tuple(problem.domain.names[i] for i in net.axes),
        net.fields,
        np.array(net.centre),
        np.array(net.half_width),
        np.array(net.offset),
        np.array(net.scale),
    )


def estimates_of(
    objective: Objective, trained: Trained, known: Uncertainty | None
) -> tuple[dict[str, Estimate], np.ndarray, list[str]]:
    """Estimates with errors, their correlation, and what a reader must be told."""
    transforms = objective.surrogate.transforms
    raw = np.asarray(objective.surrogate.raw(trained.theta))
    out: dict[str, Estimate] = {}
    warnings: list[str] = []
    names = [t.unknown.name for t in transforms]
    spread = np.full(len(raw), math.nan)
    if known is not None:
        spread = np.sqrt(np.diag(known.covariance))
        lost = [n for n, flag in zip(names, known.undetermined, strict=True) if flag]
        if lost:
            warnings += not_identifiable(lost, names, known)
        warnings += misfit(known.misfit_ratio)
    for i, transform in enumerate(transforms):
        with np.errstate(all="ignore"):  # a failed fit, or an end far out, may be NaN or infinite, and says so itself
            value, slope = float(transform.value(raw[i])), transform.slope(raw[i])
            ends = sorted(float(transform.value(raw[i] + sign * NORMAL_95 * spread[i])) for sign in (-1, 1))
        sure = known is None or not bool(known.undetermined[i])
        out[names[i]] = Estimate(
            value,
            float(abs(slope) * spread[i]) if sure else math.inf,
            (ends[0], ends[1]) if sure else (-math.inf, math.inf),
            transform.unknown.unit,
            sure,
            transform.unknown.guess,
        )
    correlation = np.full((len(raw), len(raw)), math.nan)
    if known is not None and np.all(spread > 0):
        correlation = known.covariance / np.outer(spread, spread)
    return out, correlation, warnings


def not_identifiable(lost: list[str], names: list[str], known: Uncertainty) -> list[str]:
    """The verdict on unknowns that the data leave open, one sentence per group that a flat direction ties together."""
    sentences = []
    for direction in known.directions:
        tied = [name for name, part in zip(names, direction, strict=True) if abs(part) > 0.1 and name in lost]
        if len(tied) == 1:
            sentences.append(
                f"{tied[0]} is not identifiable from this data: the fit hardly changes when it does. "
                "Measure where it matters, or fix it."
            )
        elif tied:
            sentences.append(
                f"{' and '.join(tied)} are not identifiable from this data: a change of one can be made up by the "
                "others. Only a combination of them is determined; fix one, or measure something that separates them."
            )
    return list(dict.fromkeys(sentences))


def misfit(ratio: float) -> list[str]:
    """What a misfit far above the stated noise means."""
    if ratio > UNTRUSTED:
        return [
            f"Do not trust these estimates: the misfit is {ratio:.1f} times the stated noise. The fit did not find the "
            "readings (try another seed or first guess, more points, a larger network), or the equations do not hold."
        ]
    if ratio > SUSPICIOUS:
        return [
            f"The misfit is {ratio:.1f} times the stated noise; standard errors are scaled up by it. "
            "Either the noise is larger than stated, or the equations do not describe these data."
        ]
    return []


def likelihood_of(objective: Objective, trained: Trained) -> tuple[str, ...]:
    """Which likelihood the standard errors speak of."""
    lines = []
    residuals = misfits(objective, trained.theta, trained.batch)
    data = [p for p in objective.parts if p.kind == "data"]
    for part, residual in zip(data, residuals, strict=True):
        if part.noise is None:
            continue
        fitted = part.noise
        if part.noise.estimated and np.any(residual) and np.all(np.isfinite(residual)):
            fitted = part.noise.fitted(residual)
        how = "estimated" if part.noise.estimated else "as given"
        lines.append(f"{part.name}: {fitted.sentence()} ({how}, {len(residual)} readings)")
    if not lines:
        lines.append("No readings: whatever is recovered follows from equations and conditions alone.")
    return tuple(lines)
