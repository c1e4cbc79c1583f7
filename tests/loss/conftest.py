"""Small problems that between them use everything a loss knows, built once for all tests of the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective, build_objective
from tgsr.network._propagate import MLP
from tgsr.problem import (
    Condition,
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
    StudentT,
    Unknown,
    UnknownField,
)

RNG = np.random.default_rng(11)


def readings(box: dict[str, tuple[float, float]], fields: list[str], n: int, noise: Any = 0.1) -> Data:
    points = {name: RNG.uniform(low, high, n) for name, (low, high) in box.items()}
    return Data(points, {name: RNG.normal(1.0, 0.5, n) for name in fields}, noise)


def burgers() -> Problem:
    box = {"x": (-1.0, 1.0), "t": (0.0, 1.0)}
    return Problem(
        "burgers",
        coordinates=box,
        fields=["u"],
        unknowns=[Unknown("nu", 0.1, positive=True)],
        residuals=[lambda u, nu: u.t + u * u.x - nu * u.xx],
        conditions=[Initial("u", lambda x: -jnp.sin(jnp.pi * x)), Dirichlet("u", at=["x=-1", "x=1"])],
        data=[readings(box, ["u"], 9, Laplace(0.1))],
    )


def kdv() -> Problem:
    box = {"x": (0.0, 2.0), "t": (0.0, 1.0)}
    return Problem(
        "kdv",
        coordinates=box,
        fields=["u"],
        unknowns=[Unknown("c", 1.0, bounds=(0.0, 5.0))],
        residuals=[lambda u, c: u.t + c * u * u.x + 0.1 * u.d("x", 3)],
        conditions=[Periodic("x", order=3), Initial("u", lambda x, c: c * jnp.cos(jnp.pi * x))],
        data=[readings(box, ["u"], 5, StudentT(0.2))],
        scale="none",
    )


def lorenz() -> Problem:
    def system(x: Any, y: Any, z: Any, s: Any, r: Any, b: Any) -> tuple[Any, Any, Any]:
        return x.t - s * (y - x), y.t - x * (r - z) + y, z.t - x * y + b * z

    box = {"t": (0.0, 3.0)}
    return Problem(
        "lorenz",
        coordinates=box,
        fields=["x", "y", Field("z", scale=20.0)],
        unknowns=[
            Unknown("s", 8.0),
            Unknown("r", 20.0, log=True),
            Unknown("b", 2.0, bounds=(0, 9), log=False),
        ],
        residuals=[system],
        conditions=[Initial("x", 1.0), Initial("y", 2.0), Initial("z", order=1, value=0.5)],
        data=[readings(box, ["x", "z"], 6, 0.5)],
    )


def rod() -> Problem:
    """In SI units, with an unknown in a condition, a mixed set of conditions, and an unknown source."""
    box = {"x": (0.0, 1e-3), "t": (0.0, 5e4)}
    return Problem(
        "rod",
        coordinates=box,
        fields=["T"],
        unknowns=[Unknown("a", 2e-11, log=True), Unknown("h", 1e3, bounds=(0.0, 5e4))],
        unknown_fields=[UnknownField("q", of=("t",), guess=1e-3, positive=True, widths=(3,))],
        residuals=[lambda T, a, q: T.t - a * T.xx - q],
        conditions=[
            Initial("T", lambda x: 20.0 + 6e4 * x),
            Neumann("T", at="x=low", value=lambda t: -1e-3 * t),
            Robin("T", at="x=0.001", a=lambda h: h, b=1.0, value=lambda h: 20.0 * h),
            Condition(lambda T, t: T - 30.0 + 0.0 * t, at={"x": [5e-4, 6e-4], "t": [1e4, 2e4]}, name="probe"),
        ],
        data=[readings(box, ["T"], 7, None)],
    )


def flow() -> Problem:
    """Two momentum equations and continuity with a hidden pressure and a viscosity that varies along x."""

    def momentum(u: Any, v: Any, p: Any, nu: Any) -> tuple[Any, Any]:
        return (
            u * u.x + v * u.y + p.x - nu * u.laplacian("x", "y") - nu.x * u.x,
            u * v.x + v * v.y + p.y - nu * v.laplacian("x", "y") - nu.x * v.x,
        )

    box = {"x": (0.0, 2.0), "y": (-1.0, 1.0)}
    return Problem(
        "flow",
        coordinates=box,
        fields=["u", "v", "p"],
        unknowns=[UnknownField("nu", of=["x"], guess=0.2, positive=True, widths=(4,)), Unknown("k", 0.5)],
        residuals=[momentum, lambda u, v: u.x + v.y],
        conditions=[
            Dirichlet("u", at=["y=-1", "y=1"]),
            Dirichlet("v", at=["y=-1", "y=1"]),
            Neumann("p", at=["x=0", "y=high"], value=lambda k: k),
        ],
        data=[readings(box, ["u", "v"], 6, {"u": 0.1, "v": Laplace(0.2)})],
    )


def anisotropic() -> Problem:
    """A linear operator with mixed derivatives, unknown coefficients and coefficients of position."""

    def equation(u: Any, x: Any, y: Any, a: Any, b: Any, w: Any) -> Any:
        return a * u.xx + b * x * u.xy + (1.0 + y**2) * u.yy - w * u.x + u.t - u**2 / (1.0 + u**2)

    box = {"x": (0.0, 1.0), "y": (0.0, 2.0), "t": (0.0, 1.0)}
    return Problem(
        "anisotropic",
        coordinates=box,
        fields=["u"],
        unknowns=[Unknown("a", 0.5, positive=True), Unknown("b", -0.3), Unknown("w", 1.5)],
        residuals=[equation],
        conditions=[Initial("u", lambda x, y: x * y)],
        data=[readings(box, ["u"], 5, 0.1)],
    )


PROBLEMS: dict[str, Callable[[], Problem]] = {f.__name__: f for f in (burgers, kdv, lorenz, rod, flow, anisotropic)}


@dataclass(frozen=True)
class Case:
    """An objective with points, weights and a theta away from the start, and its compiled closure."""

    objective: Objective
    batch: Batch
    controls: Controls
    theta: jax.Array
    program: Callable[[jax.Array, Batch, Controls], Any]

    def first_block(self) -> Batch:
        return jax.tree.map(lambda a: a[0], self.batch)

    def with_blocks(self, blocks: int) -> Case:
        other = replace(self.objective, blocks=blocks)
        return Case(other, other.draw(0), self.controls, self.theta, fast(other.closure))


def fast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled in a hurry: here compiling takes longer than running."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


def controls_of(objective: Objective, rng: np.random.Generator) -> Controls:
    parts, size = len(objective.parts), objective.surrogate.size
    mask = (rng.random(size) > 0.1).astype(float)
    return Controls(
        jnp.asarray(rng.uniform(0.5, 2.0, parts)),
        jnp.asarray(rng.uniform(0.1, 0.3, 4)),
        jnp.asarray(mask),
        jnp.asarray(rng.normal(size=size)),
        jnp.asarray(rng.uniform(0.0, 0.01, size) * (rng.random(size) > 0.5)),
    )


@cache
def built(name: str) -> Case:
    with computing():
        mlp = MLP((5, 4)) if name in ("burgers", "anisotropic") else MLP((4,))
        objective = build_objective(PROBLEMS[name](), mlp, Points(13, 8, 6), blocks=1)
        rng = np.random.default_rng(7)
        theta = objective.surrogate.initial(stream(0, "init"))
        theta = theta + 0.2 * jnp.asarray(rng.normal(size=theta.shape))
        return Case(objective, objective.draw(0), controls_of(objective, rng), theta, fast(objective.closure))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


@pytest.fixture(params=list(PROBLEMS))
def each(request: pytest.FixtureRequest) -> Case:
    return built(request.param)


@pytest.fixture
def hurry() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return fast


@pytest.fixture
def case() -> Callable[[str], Case]:
    return built
