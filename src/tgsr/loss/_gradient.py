"""Gradient-enhanced equations (Yu, Lu, Meng & Karniadakis 2022): where a residual vanishes, so do its derivatives.

By the chain rule over everything a residual r reads at a point,

    dr/dx_k = (partial r/partial x_k) + sum over channels u_a of (partial r/partial u_a) u_{a+k},

which is one directional derivative: of the row with its coordinates and channels moved along their own derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from tgsr._errors import InputError
from tgsr.loss._objective import Objective
from tgsr.loss._plan import plan_term
from tgsr.loss._rows import Getter, Place
from tgsr.network._channels import order_of
from tgsr.problem._fields import MAX_ORDER, Index

INTERIOR = 0  # the first term of every objective


def with_residual_gradient(objective: Objective, weight: float, what: str) -> Objective:
    """The loss plus `weight` times the mean square of every residual's gradient; `what` asks for it.

    Derivatives are taken in the coordinates that the network sees, so that no result depends on units.
    """
    problem, plan = objective.problem, objective.plans[INTERIOR]
    axes, half_width = problem.domain.names, objective.surrogate.nets[0].half_width
    parts, sizes = list(plan.term.parts), list(objective.sizes[INTERIOR])
    for part, size in zip(plan.term.parts, objective.sizes[INTERIOR], strict=True):
        for axis, name in enumerate(axes):
            label = f"{part.name} d/d{name}"
            parts.append(replace(part, name=label, row=slope_along(part.row, axis), follows=part.name))
            sizes.append(size / (half_width[axis] * weight**0.5))
    sigmas = sum(p.kind == "data" for p in objective.parts)
    new = plan_term(replace(plan.term, parts=tuple(parts)), problem, objective.surrogate, sigmas)
    order = max(order_of(indices) for indices in new.wanted[0].values())
    if order > MAX_ORDER:
        raise InputError(
            f"{what} differentiates the residuals once more, which takes derivatives of order {order}",
            field="residuals",
            remedy=f"Orders up to {MAX_ORDER} are supported: introduce an auxiliary field, or choose another method",
        )
    return replace(objective, plans=(new, *objective.plans[1:]), sizes=(tuple(sizes), *objective.sizes[1:]))


def slope_along(row: Callable[[Place], jax.Array], axis: int) -> Callable[[Place], jax.Array]:
    """d row / d (coordinate number `axis`), exact."""

    def slope(place: Place) -> jax.Array:
        def moved(step: jax.Array) -> jax.Array:
            getters = [_moved(get, axis, step) for get in place.getters]
            return row(replace(place, getters=getters, x=[x.at[:, axis].add(step) for x in place.x]))

        return jax.jvp(moved, (jnp.zeros(()),), (jnp.ones(()),))[1]

    return slope


def _moved(get: Getter, axis: int, step: jax.Array) -> Getter:
    def value(name: str, index: Index) -> jax.Array:
        return get(name, index) + step * get(name, tuple(sorted((*index, axis))))

    return value
