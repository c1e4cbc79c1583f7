"""Growing: the wide network begins as the narrow one's function; every random number and budget stays in its place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from method_cases import SEED, own_objective, setting, target

import tgsr
from tgsr._jax import computing
from tgsr._outcomes import Outcome
from tgsr.methods import Grow
from tgsr.methods import _grow as growing
from tgsr.methods._grow import widened
from tgsr.network._propagate import initial_layers, propagate

CHANNELS = ((), (0,), (1,), (0, 0), (0, 1))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def test_the_wide_network_computes_the_narrow_ones_function_and_derivatives() -> None:
    rng = np.random.default_rng(0)
    narrow, fresh = (
        [(np.asarray(w), np.asarray(b) + 0.1) for w, b in initial_layers(2, widths, 2, rng)]
        for widths in ((3, 4, 3), (7, 4, 9))
    )
    grown = widened(narrow, fresh)
    x = jnp.asarray(rng.uniform(-1, 1, (11, 2)))
    ours, theirs = (propagate(layers, x, CHANNELS, "tanh").outputs for layers in (narrow, grown))
    for index in CHANNELS:
        np.testing.assert_allclose(theirs[index], ours[index], rtol=1e-13, atol=1e-15)
    for (weight, bias), (wide, wide_bias), (drawn, drawn_bias) in zip(narrow, grown, fresh, strict=True):
        rows, columns = weight.shape
        np.testing.assert_array_equal(wide[:, columns:], drawn[:, columns:])  # other neurons stay as drawn
        np.testing.assert_array_equal(wide_bias[columns:], drawn_bias[columns:])
        assert wide.shape == drawn.shape
        assert bias.shape == (columns,)
        assert rows <= wide.shape[0]


def test_main_training_begins_where_the_narrow_one_ended() -> None:
    prepared = Grow(3).prepare(setting())
    narrow = prepared.stages["narrow"]
    own = own_objective()
    batch = own.draw(SEED)
    trained = tgsr.training.train(own, prepared.start, setting().training, SEED, batch=batch, budget=1)
    loss, _ = own.value(prepared.start.theta, batch, trained.controls)
    np.testing.assert_allclose(loss, narrow["loss"][-1], rtol=1e-9)
    assert prepared.spent == narrow["closures"][-1]
    assert prepared.start.mask is None


@pytest.mark.parametrize("budget", [12, 40])
def test_it_spends_at_most_half(budget: int) -> None:
    result = tgsr.transfer(
        target(), None, method=Grow(2), network=tgsr.MLP((5, 5)), training=tgsr.Training(budget=budget), seed=SEED
    )
    assert 0 < result.stages["narrow"]["closures"][-1] <= budget // 2
    assert result.closures <= budget


def test_a_network_that_is_narrow_already_starts_from_scratch() -> None:
    theta = Grow(5).prepare(setting()).start.theta
    np.testing.assert_array_equal(theta, setting().fresh)


def test_a_narrow_training_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = growing.train

    def failing(*args, **more):
        return replace(real(*args, **more), outcome=Outcome.DIVERGED)

    monkeypatch.setattr(growing, "train", failing)
    prepared = Grow(3).prepare(setting())
    assert prepared.failed is Outcome.DIVERGED
    assert "narrow network" in prepared.sentence


def test_solve_grows_large_networks_by_itself_and_only_where_nothing_is_asked() -> None:
    from tgsr._request import solve_request

    for widths, training, name in [
        ((5, 5), None, "scratch"),
        ((100, 100), None, "grow"),
        ((100, 100), "best", "grow"),
        ((100, 100), "paper", "scratch"),
        ((100, 100), tgsr.Training(tgsr.LBFGS()), "scratch"),
    ]:
        assert solve_request(target(), tgsr.MLP(widths), training).method.name == name, (widths, training)


def test_widths_are_checked() -> None:
    for wrong in (0, -3, 1.5, "12", True):
        with pytest.raises(tgsr.InputError, match="width"):
            Grow(wrong)  # type: ignore[arg-type]
    assert [Grow(w).width for w in (1, 12)] == [1, 12]
    assert list(itertools.chain(tgsr.methods.methods()))[:2] == ["scratch", "grow"]
