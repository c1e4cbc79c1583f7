"""Noise models against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from tgsr._errors import InputError
from tgsr._random import stream
from tgsr.problem._noise import Gaussian, Laplace, Noise, StudentT, as_noise

MODELS: list[Noise] = [Gaussian(1.0), Laplace(1.0), StudentT(1.0), StudentT(1.0, df=1.5)]


@pytest.mark.parametrize("model", MODELS)
def test_derivatives_and_normalisation(model: Noise) -> None:
    z = np.linspace(-8, 8, 161)
    h = 1e-5
    np.testing.assert_allclose(model.psi(z), (model.rho(z + h) - model.rho(z - h)) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(model.dpsi(z), (model.psi(z + h) - model.psi(z - h)) / (2 * h), atol=1e-8)
    small = np.array([1e-9, 1e-6, 1e-4])
    np.testing.assert_allclose(model.rho(small), small**2 / 2, rtol=1e-7)
    np.testing.assert_array_equal(model.rho(np.zeros(1)), 0.0)
    assert np.isfinite(model.rho(np.array([1e100]))).all()


@pytest.mark.parametrize("df", [1.5, 4.0, 30.0])
def test_weight_makes_rho_the_likelihood(df: float) -> None:
    z = np.linspace(-5, 5, 11)
    model = StudentT(1.0, df)
    expected = stats.t.logpdf(0, df) - stats.t.logpdf(z, df)
    np.testing.assert_allclose(model.weight * model.rho(z), expected, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_fitted_scale_maximises_the_likelihood(model: Noise) -> None:
    r = 3e-7 * stream(1, "noise").standard_t(4, size=500)

    def negative(log_scale: float) -> float:
        return float(log_scale + model.weight * np.mean(model.rho(r / 3e-7 / np.exp(log_scale))))

    best = optimize.minimize_scalar(negative, bounds=(-3, 3), method="bounded", options={"xatol": 1e-9})
    fitted = model.fitted(np.append(r, np.nan))
    assert type(fitted) is type(model)
    assert not fitted.estimated
    assert fitted.scale == pytest.approx(3e-7 * np.exp(best.x), rel=1e-6)


def test_the_smoothed_laplace_density_can_be_normalised() -> None:
    mass, _ = integrate.quad(lambda z: np.exp(-Laplace(1.0).rho(z)), -np.inf, np.inf)
    assert 2 < mass < 4


def test_words_and_choices() -> None:
    assert as_noise(0.5) == Gaussian(0.5) == as_noise(np.float32(0.5))
    assert as_noise(None) == Gaussian()
    assert as_noise(None).estimated
    assert as_noise(Laplace(2)) == Laplace(2.0)
    assert as_noise(0.5).sentence() == "independent normal errors whose standard deviation is 0.5"
    assert StudentT().sentence().endswith("4 degrees of freedom whose scale is estimated from the residuals")
    assert [m.name for m in (Gaussian(), Laplace(), StudentT())] == ["gaussian", "laplace", "student-t"]


def test_another_array_namespace_computes_the_same() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.used: set[str] = set()

        def __getattr__(self, name: str) -> Any:
            self.used.add(name)
            return getattr(np, name)

    xp, z = Recorder(), np.linspace(-3, 3, 7)
    for model in MODELS:
        for function in (model.rho, model.psi, model.dpsi):
            np.testing.assert_array_equal(function(z, xp), function(z))
    assert xp.used == {"ones_like", "hypot", "log1p"}


@pytest.mark.parametrize("bad", [0, -1, True, np.nan, np.inf, "0.5", [0.5], 1j, 10**400, Gaussian, b"1", {}])
def test_bad_noise_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match=r"Give a positive|Use noise="):
        as_noise(bad)
    for make in (Gaussian, Laplace, StudentT):
        with pytest.raises(InputError):
            make(bad)
    with pytest.raises(InputError, match="Give df"):
        StudentT(1.0, df=bad)


@pytest.mark.parametrize("residuals", [[], [0.0, 0.0], [np.nan], [np.inf, 1.0]])
def test_nothing_to_estimate_from(residuals: list[float]) -> None:
    with pytest.raises(InputError, match="State the noise"):
        Gaussian().fitted(residuals)
