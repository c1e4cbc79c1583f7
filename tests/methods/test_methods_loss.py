"""Methods with a loss or numbers of their own: gradient-enhanced equations and low-rank updates."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import method_cases  # noqa: F401  float64
import numpy as np
import pytest

import tgsr
from tgsr._errors import InputError
from tgsr._random import stream
from tgsr.loss import Controls, Objective, build_objective, weighted_jacobian, weighted_rows
from tgsr.loss._gradient import slope_along
from tgsr.methods import LoRA, TlGpinn
from tgsr.problem import Dirichlet, Initial, Points, Problem, Unknown, UnknownField
from tgsr.training._controls import Weighing

BOX = {"x": (0.0, 4.0), "t": (0.0, 0.5)}


def fast(function: Any) -> Any:
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


def equation(u: Any, q: Any, x: Any, t: Any, a: Any) -> Any:
    return u.t + jnp.sin(x) * u.value**2 * u.x - a * (1.0 + t) * u.xx - q


@cache
def own() -> Objective:
    problem = Problem(
        "rod",
        coordinates=BOX,
        fields=["u"],
        unknowns=[
            Unknown("a", 0.3, positive=True),
            UnknownField("q", of=("x",), guess=0.5, positive=True, widths=(3,)),
        ],
        residuals=[equation],
        conditions=[Initial("u", lambda x: x)],
    )
    return build_objective(problem, tgsr.MLP((4, 3)), Points(6, 1, 3), blocks=1)


def at(objective: Objective) -> tuple[jax.Array, Any, Controls]:
    theta = objective.surrogate.initial(stream(0, "init"))
    theta = theta + 0.3 * jnp.asarray(np.random.default_rng(2).normal(size=theta.shape))
    weights = jnp.linspace(1.0, 2.0, len(objective.parts))
    return theta, objective.draw(0), Controls(weights, jnp.ones(1), jnp.ones_like(theta), 0 * theta, 0 * theta)


def test_gradient_rows_are_the_derivatives_of_the_residual() -> None:
    """Against nested autodiff of a field and a source written out, explicit coordinates included."""
    objective = TlGpinn().objective(own())
    theta, batch, controls = at(objective)
    net, source = objective.surrogate.nets
    layers = objective.surrogate.layers(theta)

    def plain(x: jax.Array, which: Any, number: int) -> jax.Array:
        h = (x[jnp.array(which.axes)] - jnp.array(which.centre)) / jnp.array(which.half_width)
        for w, b in layers[number][:-1]:
            h = jnp.tanh(h @ w + b)
        out = (h @ layers[number][-1][0] + layers[number][-1][1])[0]
        return which.offset[0] + which.scale[0] * (jnp.logaddexp(out, 0.0) if which.positive else out)

    def residual(x: jax.Array) -> jax.Array:
        slope = jax.grad(plain)(x, net, 0)
        u_xx = jax.hessian(plain)(x, net, 0)[0, 0]
        a = objective.surrogate.unknowns(theta)["a"]
        u = plain(x, net, 0)
        return slope[1] + jnp.sin(x[0]) * u**2 * slope[0] - a * (1 + x[1]) * u_xx - plain(x, source, 1)

    rows = fast(lambda t: objective.term_rows(0, t, jax.tree.map(lambda b: b[0], batch)[0], controls))(theta)
    points, size = batch[0].x[0][0], own().sizes[0][0]
    np.testing.assert_allclose(rows[0], fast(jax.vmap(residual))(points) / size, rtol=1e-10)
    gradient = fast(jax.vmap(jax.grad(residual)))(points) / size
    for axis, half_width in enumerate((2.0, 0.25)):  # a tenth: the root of the weight 1e-2
        np.testing.assert_allclose(rows[1 + axis], 0.1 * half_width * gradient[:, axis], rtol=1e-9)
    assert [p.name for p in objective.parts] == ["equation", "equation d/dx", "equation d/dt", "initial u"]


@pytest.mark.parametrize("method", [TlGpinn(), LoRA(2)], ids=lambda method: method.name)
def test_jacobian_and_collapsed_operators_hold_for_the_methods_loss(method: Any) -> None:
    objective = method.objective(own())
    theta, batch, controls = at(objective)
    block = jax.tree.map(lambda b: b[0], batch)
    plain = replace(objective, collapsing=False)

    def everything(theta: jax.Array) -> Any:
        def rows(theta: jax.Array) -> jax.Array:
            return weighted_rows(objective, theta, block, controls)

        found = weighted_jacobian(objective, theta, block, controls)
        return found, rows(theta), jax.jacfwd(rows)(theta), weighted_rows(plain, theta, block, controls)

    (rows, jacobian), expected_rows, expected, uncollapsed = fast(everything)(theta)
    np.testing.assert_allclose(rows, expected_rows, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(rows, uncollapsed, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(jacobian, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())


def test_gradient_terms_take_the_weight_of_their_residual() -> None:
    objective = TlGpinn().objective(own())
    theta = jnp.zeros(objective.surrogate.size)
    weights = {"equation": 7.0, "equation d/dt": 5.0, "ic": 2.0}
    np.testing.assert_array_equal(Weighing(objective, weights).controls(np.zeros(0), theta).weights, [7, 7, 5, 2])


def test_a_gradient_past_the_fourth_order_is_refused() -> None:
    problem = Problem(
        "plate", coordinates={"x": (0.0, 1.0)}, fields=["u"], unknowns=[Unknown("a", 1.0)],
        residuals=[lambda u, a: u.d("x", 4) - a], conditions=[Dirichlet("u", at="x=0")],
    )  # fmt: skip
    fourth = build_objective(problem, tgsr.MLP((3,)), Points(4))
    with pytest.raises(InputError, match=r"'tl-gpinn' differentiates .* order 5.*auxiliary field"):
        TlGpinn().objective(fourth)


def test_low_rank_updates_start_at_the_network_and_are_saved_merged() -> None:
    objective = LoRA(2).objective(own())
    surrogate, before = objective.surrogate, own().surrogate
    fresh, plain = (s.initial(stream(5, "init")) for s in (surrogate, before))
    assert surrogate.size - before.size == 2 * (2 + 4 + 4 + 3) + 1 * (3 + 1)  # the last matrix has one column
    np.testing.assert_array_equal(fresh[: before.network_size], plain[: before.network_size])
    np.testing.assert_array_equal(surrogate.raw(fresh), before.raw(plain))
    for (weight, _), (old, _) in zip(surrogate.layers(fresh)[0], before.layers(plain)[0], strict=True):
        np.testing.assert_array_equal(weight, old)
    theta, *_ = at(objective)
    added = [w - b for (w, _), (b, _) in zip(surrogate.layers(theta)[0], before.layers(theta)[0], strict=True)]
    assert [np.linalg.matrix_rank(a) for a in added] == [2, 2, 1]
    (left, right), *_ = surrogate.low_rank(theta)
    np.testing.assert_allclose(added[0], left @ right, atol=1e-15)


def test_the_slope_of_a_row_sees_its_coordinates_and_every_channel() -> None:
    """d/dx (x u u_x) = u u_x + x u_x^2 + x u u_xx at numbers."""
    from tgsr.loss._rows import Place

    values = {(): 2.0, (0,): 3.0, (0, 0): 5.0}

    def get(name: str, index: tuple[int, ...]) -> jax.Array:
        return jnp.full(1, values[index])

    place = Place([get], [jnp.full((1, 1), 7.0)], {}, {}, jnp.ones(1))
    row = slope_along(lambda p: p.x[0][:, 0] * p.getters[0]("u", ()) * p.getters[0]("u", (0,)), 0)
    np.testing.assert_array_equal(row(place), [2 * 3 + 7 * 3 * 3 + 7 * 2 * 5])
