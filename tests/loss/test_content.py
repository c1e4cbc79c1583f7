"""Objectives are equal exactly if they compute the same: compiled programs are shared between seeds, never wrongly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tgsr
from tgsr._jax import computing
from tgsr.loss import Objective, build_objective, with_residual_gradient

SPEED = 1.0
TABLE = np.array([1.0, 2.0, 3.0])


def carried(u: Any, c: Any) -> Any:
    return u.t + c * SPEED * u.x


def tabulated(u: Any, x: Any, c: Any) -> Any:
    return u.t + c * jnp.interp(x, jnp.array([0.0, 0.5, 1.0]), jnp.asarray(TABLE)) * u.x


@jax.jit
def compiled_by_the_user(x: jax.Array) -> jax.Array:
    return jnp.interp(x, jnp.array([0.0, 0.5, 1.0]), jnp.asarray(TABLE))


def hidden(u: Any, x: Any, c: Any) -> Any:
    return u.t + c * compiled_by_the_user(x) * u.x


def objective(
    residual: Any = carried, *, seed: int = 0, noise: Any = 0.1, side: Any = 0.0, widths: Any = (4,), **options: Any
) -> Objective:
    rng = np.random.default_rng(seed)
    points = {"x": rng.random(20), "t": rng.random(20)}
    problem = tgsr.Problem(
        coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tgsr.Unknown("c", guess=options.pop("guess", 1.0))],
        residuals=[residual],
        conditions=[tgsr.Dirichlet("u", at="x=0", value=side)],
        data=[tgsr.Data(points, {"u": rng.normal(size=20)}, noise=noise)],
        scale="none",
    )
    with computing():
        return build_objective(problem, tgsr.MLP(widths), tgsr.Points(8, 4, 4), **options)


def test_readings_and_noise_do_not_matter() -> None:
    one, other = objective(seed=0), objective(seed=1, noise=0.7)
    assert one == other
    assert hash(one) == hash(other)
    assert objective(side=lambda t: jnp.sin(t)) == objective(side=lambda t: jnp.sin(t))


def test_whatever_is_computed_matters() -> None:
    base = objective()
    others = [
        objective(lambda u, c: u.t + c * u.xx),
        objective(lambda u, c: u.t - c * u.x),
        objective(side=1.0),
        objective(side=lambda t: jnp.sin(t)),
        objective(noise=tgsr.Laplace(0.1)),
        objective(guess=2.0),
        objective(widths=(5,)),
        objective(blocks=2),
        objective(collapsing=False),
        with_residual_gradient(base, 0.1, "a test"),
    ]
    assert all(other != base for other in others)
    assert objective(noise=tgsr.StudentT(0.1, df=3.0)) != objective(noise=tgsr.StudentT(0.1, df=5.0))
    assert with_residual_gradient(base, 0.1, "a test") == with_residual_gradient(objective(seed=3), 0.1, "a test")
    assert with_residual_gradient(base, 0.1, "a test") != with_residual_gradient(base, 0.2, "a test")
    assert base != "an objective"


@pytest.mark.parametrize("residual", [carried, tabulated, hidden])
def test_a_number_or_table_that_the_user_changes_is_seen(residual: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = objective(residual)
    assert before == objective(residual, seed=1)
    monkeypatch.setitem(globals(), "SPEED", 2.0)
    monkeypatch.setitem(globals(), "TABLE", np.array([1.0, 2.0, 3.5]))
    compiled_by_the_user.clear_cache()
    assert before != objective(residual)


def test_another_seed_of_the_same_problem_compiles_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def problem(seed: int) -> tgsr.Problem:
        t = np.sort(np.random.default_rng(seed).random(12))
        return tgsr.Problem(
            coordinates={"t": (0.0, 1.0)},
            fields=["x"],
            unknowns=[tgsr.Unknown("a", guess=0.5)],
            residuals=[lambda x, a: x.t + a * x],
            data=[tgsr.Data({"t": t}, {"x": np.exp(-t)}, noise=0.01 + 0.01 * seed)],
            scale="none",
        )

    training = tgsr.Training(phases=(tgsr.LevenbergMarquardt(epochs=1, inner=2),), points=tgsr.Points(interior=7))
    first = tgsr.solve(problem(0), network=tgsr.MLP((3,)), training=training, seed=0)
    with jax.log_compiles():
        second = tgsr.solve(problem(1), network=tgsr.MLP((3,)), training=training, seed=1)
    assert [m for m in caplog.messages if "ompiling jit(" in m] == []
    assert first.fingerprint != second.fingerprint
