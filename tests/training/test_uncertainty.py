"""Standard errors against theory: the Cramer-Rao bound of the exact solution family, whatever the loss weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import training_cases as cases

import tgsr
from tgsr import _estimates
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Objective, build_objective
from tgsr.problem._noise import Noise, as_noise
from tgsr.training import Start, Trained, Training, _uncertainty, train, uncertainty
from tgsr.training._controls import Weighing
from tgsr.training._uncertainty import Uncertainty

LM = tgsr.LevenbergMarquardt(epochs=20, inner=6)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


@pytest.fixture(scope="module")
def objective() -> Objective:
    with computing():
        return build_objective(cases.problem(), cases.MLP, cases.POINTS)


def fit(objective: Objective, **options: Any) -> Trained:
    theta = objective.surrogate.initial(stream(0, "init"))
    return train(objective, Start(theta), Training(phases=(LM,), points=cases.POINTS, **options), 0)


@pytest.fixture
def one_program(objective: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows over sigma do not depend on the likelihood: those of one objective serve all that `under` makes."""
    rows = _uncertainty._block_rows
    monkeypatch.setattr(_uncertainty, "_block_rows", lambda _: rows(objective))


@pytest.fixture(scope="module")
def fitted(objective: Objective) -> Trained:
    with computing():
        return fit(objective)


def under(objective: Objective, noise: Any) -> Objective:
    """The same objective under another statement about its noise."""

    def part(old: Any) -> Any:
        return dataclasses.replace(old, noise=as_noise(noise)) if old.kind == "data" else old

    plans = tuple(
        dataclasses.replace(p, term=dataclasses.replace(p.term, parts=tuple(map(part, p.term.parts))))
        for p in objective.plans
    )
    return dataclasses.replace(objective, plans=plans)


def errors(objective: Objective, done: Trained, noise: Any, sigma: float | None = None) -> Uncertainty:
    """The uncertainty at the same fit under another noise."""
    other = under(objective, noise)
    weighing = Weighing(other, None)
    levels = weighing.first_sigma() if sigma is None else np.array([sigma])
    known = uncertainty(other, done.theta, done.batch, weighing.controls(levels, done.theta), levels)
    assert known is not None
    return known


def se(objective: Objective, done: Trained, known: Uncertainty | None) -> float:
    assert known is not None
    (transform,) = objective.surrogate.transforms
    raw = float(objective.surrogate.raw(done.theta)[0])
    return float(np.sqrt(known.covariance[0, 0]) * transform.slope(raw))


def bound(a: float, x0: float, sigma: float) -> float:
    """Cramer-Rao for x0 exp(-a t), both free, by central differences of the exact solution."""

    def solution(p: np.ndarray) -> np.ndarray:
        return p[1] * np.exp(-p[0] * cases.T)

    p, h = np.array([a, x0]), 1e-5
    j = np.stack([(solution(p + h * e) - solution(p - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    return float(np.sqrt(np.linalg.inv(j.T @ j)[0, 0])) * sigma


def test_the_standard_error_is_the_bound(objective: Objective, fitted: Trained) -> None:
    known = uncertainty(objective, fitted.theta, fitted.batch, fitted.controls, fitted.sigma)
    assert known is not None
    value = float(objective.surrogate.unknowns(fitted.theta)["a"])
    ratio = se(objective, fitted, known) / bound(value, cases.X0, cases.SIGMA)
    print("se / bound", ratio)
    assert 0.85 < ratio < 1.15
    assert abs(value - cases.A) < 3 * se(objective, fitted, known)
    assert not known.undetermined.any()
    assert known.readings == cases.T.size


@pytest.mark.usefixtures("one_program")
def test_twice_the_noise_is_twice_the_error(objective: Objective, fitted: Trained) -> None:
    one = errors(objective, fitted, 2 * cases.SIGMA)  # more than the residuals: nothing is scaled up
    two = errors(objective, fitted, 4 * cases.SIGMA)
    assert se(objective, fitted, two) / se(objective, fitted, one) == pytest.approx(
        2.0, rel=1e-3
    )  # equations add their own


@pytest.mark.usefixtures("one_program")
def test_understated_noise_is_noticed_and_scaled_up(objective: Objective, fitted: Trained) -> None:
    honest = errors(objective, fitted, None, cases.SIGMA)  # from the residuals
    bold = errors(objective, fitted, cases.SIGMA / 5)
    assert 4.0 < bold.misfit_ratio < 6.0
    assert se(objective, fitted, bold) == pytest.approx(se(objective, fitted, honest), rel=0.05)
    assert honest.misfit_ratio == 1.0
    _, _, warnings = _estimates.estimates_of(objective, fitted, bold)
    assert any("times the stated noise" in text for text in warnings)
    _, _, warnings = _estimates.estimates_of(objective, fitted, honest)
    assert not warnings


@pytest.mark.usefixtures("one_program")
def test_estimated_noise_gives_the_bound_at_the_residuals_level(objective: Objective, fitted: Trained) -> None:
    value = float(objective.surrogate.unknowns(fitted.theta)["a"])
    residual = cases.Y - cases.X0 * np.exp(-value * cases.T)
    known = errors(objective, fitted, None)
    assert se(objective, fitted, known) == pytest.approx(bound(value, cases.X0, float(np.std(residual))), rel=0.2)
    # the level that training happened to stand at does not matter, only how tightly equations were held
    assert se(objective, fitted, errors(objective, fitted, None, 0.03)) == pytest.approx(
        se(objective, fitted, known), rel=0.1
    )


@pytest.mark.usefixtures("one_program")
@pytest.mark.parametrize(
    "noise", [tgsr.Laplace(cases.SIGMA), tgsr.StudentT(cases.SIGMA), tgsr.StudentT(cases.SIGMA, df=1000.0)]
)
def test_robust_likelihoods(objective: Objective, fitted: Trained, noise: Noise) -> None:
    gaussian = se(objective, fitted, errors(objective, fitted, 2 * cases.SIGMA)) / 2
    z = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()
    wanted = np.sqrt(density @ noise.psi(z) ** 2) / (density @ noise.dpsi(z))  # M-estimator under normal errors
    ratio = se(objective, fitted, errors(objective, fitted, noise)) / gaussian
    print(noise, ratio, wanted)
    assert ratio == pytest.approx(wanted, rel=0.3)  # 25 residuals stand for the expectation


@pytest.mark.usefixtures("one_program")
@pytest.mark.parametrize("noise", [cases.SIGMA, None])
def test_any_loss_weights_give_the_right_error(objective: Objective, fitted: Trained, noise: Any) -> None:
    reference = se(objective, fitted, errors(objective, fitted, noise))
    other = under(objective, noise)
    done = fit(objective, weights={"pde": 10.0, "data": 50.0})
    known = uncertainty(other, done.theta, done.batch, done.controls, done.sigma)
    assert known is not None
    print("weighted / balanced", se(objective, done, known) / reference)
    assert se(objective, done, known) == pytest.approx(reference, rel=0.2)
    assert not known.undetermined.any()


def test_unknowns_that_the_data_cannot_tell() -> None:
    """a and b only as a product, c in a field without readings, g well determined."""

    def system(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any, g: Any) -> Any:
        return x.t + a * b * x, y.t + c * y, z.t + g * z

    problem = tgsr.Problem(
        coordinates={"t": (0.0, 2.0)},
        fields=["x", tgsr.Field("y", scale=1.0), "z"],
        unknowns=[tgsr.Unknown(n, guess=1.0, positive=n == "a") for n in "abcg"],
        residuals=[system],
        data=[tgsr.Data({"t": cases.T}, {"x": cases.Y, "z": cases.Y + 0.5 * np.exp(-cases.T)}, noise=cases.SIGMA)],
    )
    training = Training(phases=(LM,), points=cases.POINTS, budget=150)
    result = tgsr.solve(problem, network=cases.MLP, training=training)
    assert {n: e.identifiable for n, e in result.unknowns.items()} == {
        "a": False,
        "b": False,
        "c": False,
        "g": True,
    }
    text = str(result)
    assert text.count("not identifiable from this data") == 5  # three estimates, the pair, and the blind one
    assert any(w.startswith("a and b are not identifiable") for w in result.warnings)
    assert any(w.startswith("c is not identifiable") for w in result.warnings)
    assert np.isfinite(result.unknowns["g"].se)
    assert result.unknowns["a"].value * result.unknowns["b"].value == pytest.approx(cases.A, rel=0.05)
    assert not np.isfinite(result.unknowns["a"].se)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_of_an_oscillator_cover() -> None:
    """95 % intervals over 200 draws of the noise: 88 % to 99 % of them hold the truth."""
    t = np.linspace(0.0, 6.0, 60)
    c, k, sigma = 0.4, 4.0, 0.05
    w = np.sqrt(k - c * c / 4)
    exact = np.exp(-c / 2 * t) * (np.cos(w * t) + 0.3 * np.sin(w * t))

    def oscillator(x: Any, c: Any, k: Any) -> Any:
        return x.tt + c * x.t + k * x

    problem = tgsr.Problem(
        coordinates={"t": (0.0, 6.0)},
        fields=["x"],
        unknowns=[tgsr.Unknown("c", guess=0.2, positive=True), tgsr.Unknown("k", guess=3.0, positive=True)],
        residuals=[oscillator],
        data=[tgsr.Data({"t": t}, {"x": exact}, noise=sigma)],
    )
    covered(problem, tgsr.MLP((20, 20)), t[:, None], exact, sigma, (c, k), 200)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_intervals_of_burgers_cover() -> None:
    """The viscosity at 0.01, readings from the Cole-Hopf solution, 50 draws of the noise."""
    import jax.numpy as jnp

    nu, sigma, rng = 0.01, 0.02, np.random.default_rng(1)
    points = np.stack([rng.uniform(-1, 1, 300), rng.uniform(0, 1, 300)], axis=1)
    z, weight = np.polynomial.hermite.hermgauss(150)
    x, t = points.T
    y = x[:, None] - np.sqrt(4 * nu * t[:, None]) * z
    power = -np.cos(np.pi * y) / (2 * np.pi * nu)
    share = weight * np.exp(power - power.max(axis=1, keepdims=True))
    exact = -np.sum(share * np.sin(np.pi * y), axis=1) / share.sum(axis=1)
    problem = tgsr.Problem(
        coordinates={"x": (-1.0, 1.0), "t": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tgsr.Unknown("nu", guess=0.05, positive=True)],
        residuals=[lambda u, nu: u.t + u * u.x - nu * u.xx],
        conditions=[
            tgsr.Initial("u", lambda x: -jnp.sin(jnp.pi * x)),
            tgsr.Dirichlet("u", at=["x=-1", "x=1"]),
        ],
        data=[tgsr.Data({"x": x, "t": t}, {"u": exact}, noise=sigma)],
    )
    covered(problem, tgsr.MLP((20, 20, 20)), points, exact, sigma, (nu,), 50)


def covered(
    problem: tgsr.Problem, mlp: tgsr.MLP, points: np.ndarray, exact: np.ndarray, sigma: float, true: tuple[float, ...],
    draws: int,
) -> None:  # fmt: skip
    """One objective and one program; only the readings in the batch change."""
    objective = build_objective(problem, mlp, tgsr.Points())
    base, start = objective.draw(0), objective.surrogate.initial(stream(0, "init"))
    deviations = []
    for draw in range(draws):
        values = exact + sigma * np.random.default_rng(1000 + draw).normal(size=exact.size)
        batch = tuple(
            objective.blocked([points], {"values": values}) if plan.term.fixed else old
            for plan, old in zip(objective.plans, base, strict=True)
        )
        done = train(objective, Start(start), Training(), 0, batch=batch)
        known = uncertainty(objective, done.theta, done.batch, done.controls, done.sigma)
        assert known is not None
        assert not known.undetermined.any()
        raw = np.asarray(objective.surrogate.raw(done.theta))
        spread = np.sqrt(np.diag(known.covariance))
        wanted = [t.raw(v) for t, v in zip(objective.surrogate.transforms, true, strict=True)]
        deviations.append((raw - wanted) / spread)
    inside = (np.abs(deviations) < 1.96).mean(axis=0)
    print("covered", inside, "spread", np.std(deviations, axis=0), "mean", np.mean(deviations, axis=0))
    assert np.all((inside >= 0.88) & (inside <= 0.99))


@pytest.mark.parametrize(("rows", "strip"), [(6, 4), (6, 4096), (40, 4)])
def test_columns_of_the_inverse_in_strips_or_whole(rows: int, strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_uncertainty, "STRIP", strip)
    rng = np.random.default_rng(8)
    jacobian, scale, pull = rng.normal(size=(rows, 11)), rng.uniform(0.5, 2.0, rows), rng.uniform(0.1, 1.0, 11)
    found = _uncertainty._inverse_columns(jacobian, scale, pull, 2)
    scaled = jacobian * scale[:, None]
    curvature = scaled.T @ scaled
    ridge = _uncertainty.RIDGE * np.diag(curvature).max() + pull
    np.testing.assert_allclose(found, np.linalg.inv(curvature + np.diag(ridge))[:, -2:], rtol=1e-9, atol=1e-12)
