"""What travels through the networks: which derivatives each term carries and which it collapses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr.loss._plan import TermPlan, plan_term
from tgsr.loss._scaling import build_surrogate
from tgsr.loss._terms import build_terms
from tgsr.network._propagate import MLP
from tgsr.problem import Dirichlet, Points, Problem, Unknown, UnknownField

BOX = {name: (0.0, 1.0) for name in ("x", "y", "z", "t")}


def planned(
    residuals: Any, coordinates: str = "xt", fields: str = "u", unknown_fields: Any = ()
) -> tuple[int, int, TermPlan]:
    """(channels and operators that travel, derivatives that would travel without collapsing, the plan)."""
    problem = Problem(
        coordinates={c: BOX[c] for c in coordinates}, fields=list(fields), unknown_fields=unknown_fields,
        unknowns=[Unknown("k", 1.0)], residuals=residuals, conditions=[Dirichlet("u", at="x=0", value=lambda k: k)],
    )  # fmt: skip
    surrogate = build_surrogate(problem, MLP((3,)))
    plan = plan_term(build_terms(problem, Points(3, 3, 3))[0], problem, surrogate, 0)
    travel, plain = (surrogate.needs(wanted)[0] for wanted in (plan.carried, plan.wanted[0]))
    return len(travel) + len(plan.collapses), len(plain), plan


COLLAPSING = {
    "heat": (lambda u, k: u.t - k * u.xx, "xt", 3, 4),
    "heat in the plane": (lambda u, k: u.t - k * u.laplacian("x", "y"), "xyt", 4, 6),
    "heat in space": (lambda u, k: u.t - k * u.laplacian("x", "y", "z"), "xyzt", 5, 8),
    "steady advection-diffusion": (lambda u, k, x: 2 * u.x + x * u.y - k * (u.xx + u.yy), "xy", 4, 5),
    "advection-diffusion": (lambda u, k, x: u.t + 2 * u.x + x * u.y - k * (u.xx + u.yy), "xyt", 4, 6),
    "mixed": (lambda u, k, x: u.xx + k * u.xy + jnp.sin(x) * u.yy, "xy", 4, 6),
    "Burgers": (lambda u, k: u.t + u * u.x - k * u.xx, "xt", 3, 4),
    "Eikonal": (lambda u, k: u.t + u.x**2 - k * u.xx, "xt", 3, 4),
    "Allen-Cahn": (lambda u, k, x: u.t - k * jnp.exp(x) * u.xx + u**3 - u, "xt", 3, 4),
    "scaled": (lambda u, k: (u.t - u.xx) / k, "xt", 3, 4),
    "where": (lambda u, k, x: u.t - jnp.where(x > 0.5, k * u.xx, 2 * u.xx), "xt", 3, 4),
}  # fmt: skip

PLAIN = {
    "a conductivity of the field": (lambda u, k: u.t - (1 + k * u) * u.xx, "xt", 4),
    "divergence of a flux": (lambda u, k: u.t - u * u.xx - u.x**2, "xt", 4),
    "Monge-Ampere": (lambda u, k: u.xx * u.yy - k * u.xy**2, "xy", 6),
    "square": (lambda u, k: u.t - k * u.xx**2, "xt", 4),
    "time derivative squared": (lambda u, k: u.t**2 - k * u.t * u.xx, "xt", 4),
    "a step of the derivative": (lambda u, k: u.t - k * (u.xx > 0), "xt", 4),
    "the sign of the derivative": (lambda u, k: u.t - k * u.xx - jnp.sign(u.xx), "xt", 4),
    "rounded": (lambda u, k: u.t - k * jnp.round(u.xx), "xt", 4),
    "as a whole number": (lambda u, k: u.t - k * u.xx.astype(int), "xt", 4),
    "limited": (lambda u, k: u.t - k * jnp.minimum(u.xx, 3.0), "xt", 4),
    "without slope": (lambda u, k: u.t - k * jax.lax.stop_gradient(u.xx), "xt", 4),
    "third order": (lambda u, k: u.t + u * u.x + k * u.d("x", 3), "xt", 5),
    "fourth order": (lambda u, k: u.t + k * u.xx + u.d("x", 4), "xt", 6),
    "first order": (lambda u, k: u.t + k * u.x, "xt", 3),
    "one derivative": (lambda u, k: u.xx - k, "x", 3),
}


@pytest.mark.parametrize("name", COLLAPSING)
def test_linear_operators_collapse(name: str) -> None:
    residual, coordinates, travel, plain = COLLAPSING[name]
    assert planned([residual], coordinates)[:2] == (travel, plain)


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_not_linear_or_gains_nothing_does_not(name: str) -> None:
    residual, coordinates, plain = PLAIN[name]
    *counts, plan = planned([residual], coordinates)
    assert counts == [plain, plain]
    assert not plan.collapses


def test_the_time_derivative_travels_inside() -> None:
    plan = planned([lambda u, k: u.t - k * u.xx])[2]
    assert [(c.field, c.indices) for c in plan.collapses] == [("u", ((0, 0), (1,)))]
    assert plan.carried == {"u": ((0,),)}


def test_an_unknown_field_as_a_coefficient_keeps_its_operator_apart() -> None:
    q = UnknownField("q", of=["x"], guess=1.0, positive=True)
    assert not planned([lambda u, q, k: u.t - k * q * u.xx], unknown_fields=[q])[2].collapses
    collapsed = planned([lambda u, q, k: u.t - k * u.xx - q], unknown_fields=[q])[2].collapses
    assert [c.field for c in collapsed] == ["u"]


def test_two_fields() -> None:
    """Both fields share a network, whose channels serve both: an operator pays only where it removes channels."""
    residuals = [lambda u, v, k: u.t - k * u.xx + v, lambda u, v: v.t + u]
    assert planned(residuals, fields="uv")[:2] == (4, 4)
    assert planned([lambda u, v, k: u.t - k * u.xx + v, lambda u, v: v.x - u], fields="uv")[:2] == (3, 4)


def test_what_each_point_set_wants() -> None:
    wanted = planned([lambda u, k: u.xt * u + k * jnp.where(u.x > 0, 1.0, 2.0)])[2].wanted
    assert wanted == ({"u": ((), (0,), (0, 1))},)
    np.testing.assert_equal(planned([lambda u, k: u.x])[2].point_sets, 1)
