"""One evaluation of loss and gradient, as benchmarks and foreign optimisers call it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import tgsr

RNG = np.random.default_rng(3)
X = RNG.uniform(0.0, 1.0, 8)


def decay() -> tgsr.Problem:
    return tgsr.Problem(
        "decay",
        coordinates={"t": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tgsr.Unknown("k", 0.5, positive=True)],
        residuals=[lambda u, k: u.t + k * u],
        conditions=[tgsr.Initial("u", 1.0)],
        data=[tgsr.Data({"t": X}, {"u": np.exp(-0.8 * X)}, 0.01)],
        scale="none",
    )


def small(**options: object) -> tgsr.Closure:
    training = tgsr.Training(points=tgsr.Points(interior=20), weights={"pde": 2.0, "data": 3.0})
    return tgsr.closure(decay(), network=tgsr.MLP((5,)), training=training, **options)  # type: ignore[arg-type]


def test_the_loss_by_hand() -> None:
    """A network with one live neuron: u = c tanh(w t), everything in closed form."""
    closure, w, c, k = small(), 0.7, 1.3, 0.4
    first, last = np.zeros((1, 5)), np.zeros((5, 1))
    first[0, 0], last[0, 0] = w, c
    theta = closure.theta([(first, np.zeros(5)), (last, np.zeros(1))], {"k": k})
    loss, gradient = closure(theta)
    points = {name: x[:, 0] for name, x in closure.points.items()}
    t = points["interior"]
    h = np.tanh(w * t)
    row = c * w * (1 - h**2) + k * c * h
    misfit = c * np.tanh(w * X) - np.exp(-0.8 * X)
    parts = [2.0 * np.mean(row**2), 1.0, 3.0 * np.mean(misfit**2)]  # the initial value is 0 here, and should be 1
    scale = closure.objective.surrogate.nets[0].scale[0]
    np.testing.assert_allclose(points["data"], X)
    np.testing.assert_allclose(scale, 1.0)
    np.testing.assert_allclose(loss, sum(parts), rtol=1e-12)
    assert list(closure.weights.values()) == [2.0, 1.0, 3.0]
    slope = np.mean(2.0 * 2.0 * row * c * h) * -np.expm1(-k)  # d loss / d raw, k = softplus(raw)
    np.testing.assert_allclose(gradient[closure.entries["unknown.k"]], slope, rtol=1e-12)


def test_the_gradient_against_differences_and_the_caller_keeps_his_settings() -> None:
    closure = small()
    before = jax.config.jax_enable_x64  # type: ignore[attr-defined]
    _, gradient = closure()
    for i in range(0, len(gradient), 4):
        step = 1e-6 * np.eye(len(gradient))[i]
        slope = (closure(closure.start + step)[0] - closure(closure.start - step)[0]) / 2e-6
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-6, atol=1e-7)
    assert jax.config.jax_enable_x64 == before  # type: ignore[attr-defined]


def test_single_precision_is_single_throughout() -> None:
    double, single = small(), small(precision="float32")
    (loss, gradient), (rough, rough_gradient) = double(), single()
    assert gradient.dtype == np.float64
    assert rough_gradient.dtype == single.start.dtype == np.float32
    assert loss != rough
    np.testing.assert_allclose(rough, loss, rtol=1e-5)
    np.testing.assert_allclose(rough_gradient, gradient, rtol=1e-4, atol=1e-4)
    program = jax.make_jaxpr(lambda *a: single.objective.closure(*a))
    with jax.enable_x64(False):
        assert "f64" not in str(program(single.start, single.batch, single.controls))


def test_another_seed_draws_another_start() -> None:
    assert not np.array_equal(small().start, small(seed=1).start)
    np.testing.assert_array_equal(small(seed=1)()[1], small(seed=1)()[1])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: small(precision="float16"), "precision is 'float16'"),
        (lambda: small()(np.zeros(3)), r"theta has shape \(3,\).*Give 17 numbers"),
        (lambda: small().theta([(np.zeros((1, 5)), np.zeros(4))]), "This network has"),
        (lambda: small().theta([(np.zeros((1, 5)), np.zeros(5)), (np.zeros((5, 1)), [0.0])], {"j": 1}), "called 'j'"),
    ],
)
def test_what_cannot_be_used_is_refused(call: object, text: str) -> None:
    with pytest.raises(tgsr.InputError, match=text):
        call()  # type: ignore[operator]
