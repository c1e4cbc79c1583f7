"""The same problem written in two systems of units is the same problem to an optimiser."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._errors import InputError
from tgsr._random import stream
from tgsr.loss import Controls, Objective, build_objective, weighted_rows
from tgsr.network._propagate import MLP
from tgsr.problem import (
    Data,
    Dirichlet,
    Field,
    Initial,
    Laplace,
    Neumann,
    Periodic,
    Points,
    Problem,
    Robin,
    Unknown,
    UnknownField,
)  # fmt: skip

RNG = np.random.default_rng(5)
X, T = RNG.uniform(0.0, 1.0, 8), RNG.uniform(0.0, 1.0, 8)
READ = RNG.normal(0.3, 1.0, 8)


def rod(L: float, S: float, A: float, B: float) -> Problem:
    """u_t = a u_xx - h u_x + q(x) with length unit L, time unit S, and readings A u + B."""
    return Problem(
        coordinates={"x": (0.5 * L, 1.5 * L), "t": (0.0, 2.0 * S)},
        fields=["u"],
        unknowns=[
            Unknown("a", 0.4 * L**2 / S, log=True), Unknown("h", 0.3 * L / S, bounds=(-1.0 * L / S, 2.0 * L / S)),
            Unknown("g", 0.2 * A / L, positive=True),
            UnknownField("q", of="x", guess=0.5 * A / S, positive=True, widths=(3,)),
        ],
        residuals=[lambda u, a, h, q: u.t - a * u.xx + h * u.x - q],
        conditions=[
            Initial("u", lambda x: A * jnp.sin(x / L) + B),
            Neumann("u", at="x=low", value=lambda g: g),
            Robin("u", at="x=high", a=1.0 / L, b=1.0, value=B / L),
            Dirichlet("u", at={"x": [L, 1.2 * L], "t": [S, S]}, value=B, name="probe"),
            Periodic("t", order=2),
        ],
        data=[Data({"x": (0.5 + X) * L, "t": 2.0 * T * S}, {"u": A * READ + B}, Laplace(0.1 * A))],
    )  # fmt: skip


def seen(problem: Problem, sigma: float, hurry: Any) -> dict[str, Any]:
    objective = build_objective(problem, MLP((4,)), Points(9, 6, 5), blocks=1)
    theta = objective.surrogate.initial(stream(0, "init"))
    theta = theta + 0.3 * jnp.asarray(np.random.default_rng(1).normal(size=theta.shape))
    batch, n = objective.draw(0), len(objective.parts)
    zero = jnp.zeros_like(theta)
    controls = Controls(jnp.ones(n), jnp.full(1, sigma), jnp.ones_like(theta), zero, zero)

    def everything(theta: jax.Array) -> Any:
        def loss(theta: jax.Array) -> Any:
            rows = weighted_rows(objective, theta, jax.tree.map(lambda a: a[0], batch), controls)
            return rows @ rows, rows

        return jax.grad(loss, has_aux=True)(theta)

    gradient, rows = hurry(everything)(theta)
    inputs = [objective.surrogate.nets[0].inputs(x[0]) for term in batch for x in term.x]
    return {"inputs": jnp.concatenate(inputs), "rows": rows, "gradient": gradient, "objective": objective}


def test_units_change_nothing_an_optimiser_sees(hurry: Any) -> None:
    unit, si = seen(rod(1.0, 1.0, 1.0, 0.0), 0.1, hurry), seen(rod(1e-6, 3.6e4, 250.0, 20.0), 25.0, hurry)
    for key in ("inputs", "rows", "gradient"):
        size = float(jnp.max(jnp.abs(unit[key])))
        assert float(jnp.max(jnp.abs(si[key] - unit[key]))) < 2e-12 * size, key
    small, large = (np.concatenate([np.array(s) for s in one["objective"].sizes]) for one in (unit, si))
    names = [part.name for part in unit["objective"].parts]
    ratio = dict(zip(names, large / small, strict=True))
    assert ratio["function"] == pytest.approx(250.0 / 3.6e4, rel=1e-12)
    assert ratio["neumann u x=0.5"] == pytest.approx(250.0 / 1e-6, rel=1e-12)
    assert ratio["probe"] == pytest.approx(250.0, rel=1e-12)
    assert ratio["data"] == 1.0


def sized(scale: str = "auto", fields: Any = ("u",), conditions: Any = (), data: Any = ()) -> Objective:
    problem = Problem(
        coordinates={"x": (2.0, 6.0)}, fields=list(fields), residuals=[lambda u, x: u.x - x],
        conditions=conditions, data=data, scale=scale,
    )  # fmt: skip
    return build_objective(problem, MLP((3,)), Points(5))


def test_sizes_of_fields() -> None:
    readings = [Data({"x": [3.0, 4.0]}, {"u": [10.0, 30.0]}, 1.0)]
    wall = [Dirichlet("u", at="x=2", value=7.0)]
    for given, offset, scale in (
        ({"data": readings, "conditions": wall}, 20.0, 10.0),
        ({"conditions": wall}, 7.0, 7.0),
        ({}, 0.0, 1.0),
        ({"fields": [Field("u", scale=5.0, offset=-1.0)], "data": readings}, -1.0, 5.0),
        ({"scale": "none", "data": readings}, 0.0, 1.0),
    ):
        net = sized(**given).surrogate.nets[0]  # type: ignore[arg-type]
        assert (net.offset[0], net.scale[0]) == (offset, scale)
    assert (net.centre, net.half_width) == ((0.0,), (1.0,))
    assert sized("none").sizes[0] == (1.0,)
    assert sized().surrogate.nets[0].centre == (4.0,)
    assert sized().surrogate.nets[0].half_width == (2.0,)


def test_a_residual_without_a_finite_value_is_named() -> None:
    problem = Problem(coordinates={"x": (0, 1)}, fields=["u"], residuals=[lambda u, x: u.x * jnp.sqrt(-1 - x)])
    with pytest.raises(InputError, match="NaN or infinite at every point"):
        build_objective(problem, MLP((3,)), Points(5))
