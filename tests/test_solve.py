"""`tgsr.solve` from outside: units do not matter, estimates come with correlations, bad calls are told."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import tgsr

T = np.linspace(0.0, 6.0, 40)
C, K = 0.4, 4.0
W = np.sqrt(K - C * C / 4)
X = np.exp(-C / 2 * T) * (np.cos(W * T) + 0.3 * np.sin(W * T)) + 0.05 * np.random.default_rng(3).normal(size=T.size)


def oscillator(x: Any, c: Any, k: Any) -> Any:
    return x.tt + c * x.t + k * x


def swinging(second: float = 1.0, metre: float = 1.0) -> tgsr.Result:
    """The same swing in other units of time and length."""
    problem = tgsr.Problem(
        "swing",
        coordinates={"t": (0.0, 6.0 * second)},
        fields=["x"],
        unknowns=[
            tgsr.Unknown("c", guess=0.2 / second, positive=True),
            tgsr.Unknown("k", guess=3.0 / second**2, bounds=(1.0 / second**2, 9.0 / second**2)),
        ],
        residuals=[oscillator],
        data=[tgsr.Data({"t": T * second}, {"x": X * metre}, noise=0.05 * metre)],
    )
    # Where the loss has stopped falling; far beyond it a network follows rounding errors between its points.
    training = tgsr.Training(phases=(tgsr.LevenbergMarquardt(),), points=tgsr.Points(interior=100))
    return tgsr.solve(problem, network=tgsr.MLP((8, 8)), training=training, seed=1)


def test_units_do_not_matter() -> None:
    unit, si = swinging(), swinging(1e-3, 1e-6)
    for name, power in (("c", 1), ("k", 2)):
        ours, other = unit.unknowns[name], si.unknowns[name]
        assert abs(other.value * 1e-3**power - ours.value) < 0.01 * ours.se, name
        assert other.se * 1e-3**power == pytest.approx(ours.se, rel=0.01)
        assert ours.identifiable
        low, high = ours.interval
        assert low < ours.value < high
    truth = {"c": C, "k": K}
    assert all(abs(unit.unknowns[n].value - v) < 3 * unit.unknowns[n].se for n, v in truth.items())
    r = unit.correlation
    np.testing.assert_allclose(r, r.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(r), 1.0, rtol=1e-12)
    assert np.all(np.abs(r) < 1.0 + 1e-12)
    np.testing.assert_allclose(si.correlation, r, atol=0.01)
    assert "standard errors" in str(unit.compare(dataclasses.replace(si, unknowns=unit.unknowns)))


@pytest.mark.slow
def test_a_rod_with_a_robin_end_in_si_and_in_units_of_its_own() -> None:
    """Cooling towards the surroundings at one end: kappa T_x + h (T - 20) = 0."""

    def rod(second: float, metre: float, kelvin: float) -> tgsr.Result:
        rng = np.random.default_rng(0)
        x, t = rng.uniform(0.0, 1.0, 80), rng.uniform(0.0, 2.0, 80)
        # One mode of the rod: T = 20 + 60 sin(b x) exp(-kappa b^2 t) with kappa b cos b + h sin b = 0
        b, kappa = 2.2, 0.1
        h = -kappa * b / np.tan(b)
        truth = 60.0 * np.sin(b * x) * np.exp(-kappa * b * b * t)
        y = (20.0 + truth + 0.5 * rng.normal(size=80)) * kelvin
        problem = tgsr.Problem(
            "rod",
            coordinates={"x": (0.0, metre), "t": (0.0, 2.0 * second)},
            fields=["T"],
            unknowns=[
                tgsr.Unknown("kappa", guess=0.2 * metre**2 / second, positive=True),
                tgsr.Unknown("h", guess=2 * h * metre / second, positive=True),
            ],
            residuals=[lambda T, kappa: T.t - kappa * T.xx],
            conditions=[
                tgsr.Initial("T", lambda x: (20.0 + 60.0 * jnp.sin(b * x / metre)) * kelvin),
                tgsr.Dirichlet("T", at="x=low", value=20.0 * kelvin),
                tgsr.Robin("T", at="x=high", a=lambda h: h, b=lambda kappa: kappa, value=lambda h: h * 20.0 * kelvin),
            ],
            data=[tgsr.Data({"x": x * metre, "t": t * second}, {"T": y}, noise=0.5 * kelvin)],
        )
        training = tgsr.Training(
            phases=(tgsr.LevenbergMarquardt(),), points=tgsr.Points(interior=200, boundary=40, initial=30)
        )
        result = tgsr.solve(problem, network=tgsr.MLP((12, 12)), training=training)
        assert abs(result.unknowns["kappa"].value - kappa * metre**2 / second) < 4 * result.unknowns["kappa"].se
        assert abs(result.unknowns["h"].value - h * metre / second) < 4 * result.unknowns["h"].se
        return result

    second, metre = 3e3, 2e-2
    unit, si = rod(1.0, 1.0, 1.0), rod(second, metre, 1.0)
    for name, factor in (("kappa", metre**2 / second), ("h", metre / second)):
        apart = abs(si.unknowns[name].value / factor - unit.unknowns[name].value) / unit.unknowns[name].se
        print(name, unit.unknowns[name], "apart by", apart, "standard errors")
        assert apart < 0.01


@pytest.mark.parametrize("seed", [-1, 1.5, True, "a", None, 2**63])
def test_a_bad_seed_is_told(seed: Any) -> None:
    problem = tgsr.Problem(coordinates={"t": (0.0, 1.0)}, fields=["x"], residuals=[lambda x: x.t])
    with pytest.raises(tgsr.InputError, match="seed"):
        tgsr.solve(problem, seed=seed)


def test_other_bad_calls_are_told() -> None:
    problem = tgsr.Problem(coordinates={"t": (0.0, 1.0)}, fields=["x"], residuals=[lambda x: x.t])
    with pytest.raises(tgsr.InputError, match="no problem"):
        tgsr.solve("problem.py")  # type: ignore[arg-type]
    with pytest.raises(tgsr.InputError, match="no network"):
        tgsr.solve(problem, network=(8, 8))  # type: ignore[arg-type]
    with pytest.raises(tgsr.InputError, match="no training"):
        tgsr.solve(problem, training="bset")
    with pytest.raises(tgsr.InputError, match="no part of the loss"):
        tgsr.solve(problem, training=tgsr.Training(weights={"dta": 1.0}), network=tgsr.MLP((2,)))
    with pytest.raises(tgsr.InputError, match="no source"):
        tgsr.transfer(problem, 3)  # type: ignore[arg-type]
