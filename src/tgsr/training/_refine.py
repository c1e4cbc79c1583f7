"""Moving interior points to where residuals are large, without a new program: the shapes stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective, TermBatch

if TYPE_CHECKING:
    from tgsr.training._training import Refinement

INTERIOR = 0  # the first term of every objective


def refined(
    objective: Objective, theta: jax.Array, batch: Batch, controls: Controls, rule: Refinement, seed: int, epoch: int
) -> Batch:
    """The batch with part of its interior points redrawn with a chance that grows with the residual there."""
    rng = stream(seed, "refinement", epoch)
    points = objective.points_of(batch, INTERIOR)
    pool = np.concatenate([objective.plans[INTERIOR].term.draw(rng)[0] for _ in range(rule.candidates)])
    size = np.asarray(_residual_size(objective, theta, jnp.asarray(pool), controls))
    chance = size**rule.power / max(float(np.mean(size**rule.power)), 1e-300) + rule.floor
    chance = np.where(np.isfinite(chance), chance, 0.0)
    count = round(rule.fraction * len(points))
    chosen = rng.choice(len(pool), size=count, replace=False, p=chance / chance.sum())
    moved = points.copy()
    moved[rng.choice(len(points), size=count, replace=False)] = pool[chosen]
    return (objective.blocked([moved], {}), *batch[1:])


def _residual_size(objective: Objective, theta: jax.Array, points: jax.Array, controls: Controls) -> jax.Array:
    """The root sum of squares of the scaled rows of the interior."""
    share = jnp.ones(len(points))
    rows = objective.term_rows(INTERIOR, theta, TermBatch((points,), share, {}), controls)
    return jnp.sqrt(sum(row * row for row in rows))
