"""The Cramér-Rao bounds: the algebra, the sensitivities behind them, and the values known for the tasks."""

from __future__ import annotations

import numpy as np
import pytest

import tgsr
from tgsr.tasks import task
from tgsr.tasks._bound import cramer_rao, differences
from tgsr.tasks._reaction_diffusion import first_mode
from tgsr.tasks._reference import burgers_field
from tgsr.tasks._square import carried, reacting

RNG = np.random.default_rng(5)
POINTS = dict(zip("xyt", RNG.random((3, 200)), strict=True))
PI = np.pi


def test_bound_is_the_covariance_of_least_squares():
    s = RNG.normal(size=(50, 3)) * [1.0, 1e-6, 1e3]
    np.testing.assert_allclose(cramer_rao(s, 0.2), 0.2 * np.sqrt(np.diag(np.linalg.inv(s.T @ s))), rtol=1e-9)


@pytest.mark.parametrize("s", [np.zeros((0, 2)), np.zeros((5, 2)), np.ones((5, 2)), np.ones((1, 2))])
def test_readings_that_say_nothing_have_no_finite_bound(s):
    assert np.all(np.isinf(cramer_rao(s, 1.0)))


def test_estimates_scatter_as_the_bound_says():
    """Least squares over the exact family, many noisy pools: the scatter of nu is the bound."""
    x, t = RNG.uniform(-1, 1, 300), RNG.random(300)
    slope = differences(burgers_field, {"nu": 0.05})({"x": x, "t": t})[:, 0]
    truth, sigma = burgers_field(0.05)(x, t), 1e-3
    found = []
    for _ in range(150):
        nu, seen = 0.05, truth + sigma * RNG.standard_normal(300)
        nu += slope @ (seen - truth) / (slope @ slope)
        nu += slope @ (seen - burgers_field(nu, spacing=0.25)(x, t)) / (slope @ slope)
        found.append(nu)
    assert np.std(found) == pytest.approx(cramer_rao(slope[:, None], sigma)[0], rel=0.2)


def test_differences_of_a_family_against_its_derivative():
    t = POINTS["t"]
    expected = -2 * PI**2 * t * first_mode(0.05)(**POINTS)
    np.testing.assert_allclose(differences(first_mode, {"alpha": 0.05})(POINTS)[:, 0], expected, rtol=1e-6, atol=1e-9)


def diffusing(points, alpha):
    """How exp(-t) S, held up by its source, answers to alpha where nothing reacts and nothing flows."""
    x, y, t = (points[n] for n in "xyt")
    decay = 2 * PI**2 * alpha
    return -2 * PI**2 * np.sin(PI * x) * np.sin(PI * y) * (np.exp(-t) - np.exp(-decay * t)) / (decay - 1.0)


def test_sensitivities_on_the_square_against_the_closed_form():
    expected = diffusing(POINTS, 0.05)
    np.testing.assert_allclose(reacting(POINTS, alpha=0.05, rho=0.0)[:, 0], expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(carried(POINTS, alpha=0.05, v_x=0.0, v_y=0.0, n=24)[:, 0], expected, rtol=0, atol=1e-9)


def test_reaction_sensitivities_converge():
    fine = reacting(POINTS, alpha=0.05, rho=1.0, n=22, steps=20)
    np.testing.assert_allclose(reacting(POINTS, alpha=0.05, rho=1.0), fine, rtol=0, atol=1e-5)


def test_sensitivity_to_the_wind_follows_the_characteristics():
    """Nearly without diffusion w_t + v . grad w = -u_x is an integral along the path of each particle."""
    x, y, t = (POINTS[n] for n in "xyt")
    age = np.minimum(np.minimum(x / 2.0, y), t)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    back = age[:, None] * (nodes + 1) / 2
    past = np.exp(-(t[:, None] - back)) * PI * np.cos(PI * (x[:, None] - 2 * back)) * np.sin(PI * (y[:, None] - back))
    expected = -(age / 2) * (past @ weights)
    ours = carried(POINTS, alpha=1e-3, v_x=2.0, v_y=1.0, n=80)[:, 1]
    clear = (x < 0.97) & (y < 0.97)  # of the layers at the outflow
    assert np.linalg.norm((ours - expected)[clear]) < 0.02 * np.linalg.norm(expected[clear])


@pytest.mark.parametrize(
    ("name", "known", "spread"),
    [
        ("boundary-layer", {"eps": 0.278}, 0.35),
        ("allen-cahn-burgers", {"nu": 0.87}, 0.2),
        ("reaction-diffusion", {"alpha": 2.08, "rho": 3.97}, 0.1),
        ("smooth-advection-diffusion", {"alpha": 3.27, "v_x": 0.016, "v_y": 0.022}, 0.1),
    ],
)
def test_bounds_of_the_targets(name, known, spread):
    bound = task(name).bound(seed=0)
    assert bound == {n: pytest.approx(value, rel=spread) for n, value in known.items()}


def test_bound_grows_with_the_noise():
    loud, quiet = (task("boundary-layer").bound(0, noise=level)["eps"] for level in (0.005, 0.001))
    assert loud == pytest.approx(5.0 * quiet)


def test_fewer_readings_know_less():
    some, none = (task("advected-pulse").bound(0, observations=n) for n in (100, 0))
    assert all(some[n] > task("advected-pulse").bound(0)[n] for n in some)
    assert all(np.isinf(value) for value in none.values())
    with pytest.raises(tgsr.InputError, match="role"):
        task("advected-pulse").bound(0, "targets")
