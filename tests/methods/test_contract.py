"""What every method of the catalogue promises, whatever it does; how a stage that fails is told; what stages cost."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import method_cases
import numpy as np
import pytest
from method_cases import SEED, Observe, Seen, observer, own_objective, setting, source, target

import tgsr
from tgsr._errors import InputError
from tgsr._outcomes import Outcome
from tgsr.methods import Method, Scratch, Tgsr, TgsrOptions, as_method, gate_check, methods, resolved_budget
from tgsr.methods import _tgsr as algorithm
from tgsr.methods._tgsr import AdaptOnly
from tgsr.network._saved import SavedNetwork
from tgsr.training import Start, Stopping, Training, train

NAMES = list(methods())
FREEZING = ("lightweight", "bitfit", "lora", "linear-head")


@cache
def once(name: str) -> Seen:
    with pytest.MonkeyPatch.context() as patch:
        return observer(patch)(name)


@pytest.fixture
def observe(monkeypatch: pytest.MonkeyPatch) -> Observe:
    return observer(monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_same_input_same_kind_of_answer(name: str, observe: Observe) -> None:
    before = source().fingerprint()
    problem = target().data[0].values["u"].copy()
    seen, again = once(name), observe(name)
    result = seen.result
    assert isinstance(as_method(name), Method)
    assert isinstance(result, tgsr.Result)
    assert result.outcome.ok
    assert (result.method, list(result.unknowns), result.network.widths) == (name, ["k"], (1, 5, 5, 1))
    assert result.fingerprint == again.result.fingerprint
    assert result.closures == again.result.closures
    for stage, arrays in result.stages.items():
        for key, array in arrays.items():
            if key not in ("seconds", "peak_mib"):
                np.testing.assert_array_equal(array, again.result.stages[stage][key])
    assert result.history["loss"][-1] < result.history["loss"][0]
    assert source().fingerprint() == before
    np.testing.assert_array_equal(target().data[0].values["u"], problem)


@pytest.mark.parametrize("name", NAMES)
def test_main_training_sees_the_same_points_readings_and_first_guess(name: str) -> None:
    seen = once(name)
    wanted, found = (jax.tree.leaves(batch) for batch in (own_objective().draw(SEED), seen.trained.batch))
    for a, b in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(a, b)
    fresh = setting().fresh
    if "adaptation" not in seen.result.stages:
        assert seen.start.theta[-1] == fresh[-1]  # the unknown's own first guess, never the source's value


@pytest.mark.parametrize("name", NAMES)
def test_what_is_frozen_keeps_its_bits(name: str) -> None:
    seen = once(name)
    assert (seen.start.mask is not None) == (name in FREEZING)
    frozen = np.zeros(len(seen.start.theta), bool) if seen.start.mask is None else seen.start.mask == 0
    before, after = np.asarray(seen.start.theta), np.asarray(seen.trained.theta)
    assert before[frozen].tobytes() == after[frozen].tobytes()
    assert not frozen[-1]
    assert np.mean(before[~frozen] != after[~frozen]) > 0.9


PHASES = (
    tgsr.LevenbergMarquardt(9, 3),  # as long as the matched budget makes it: compiled already
    tgsr.LBFGS(1, 20, 50, 0.1, Stopping(0.0, 1)),  # the adaptation's: compiled already
    tgsr.MatrixFreeLM(2, 3, hold=0, sample=9, iterations=4),
    tgsr.SSBroyden(2, 5, hold=0),
    tgsr.Adam(2, 5),
    tgsr.SOAP(2, 5, every=3),
    tgsr.PaperLBFGS(2, 5, 5),
)


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.name)
def test_every_optimiser_keeps_frozen_bits(phase: tgsr.Training) -> None:
    objective, theta = own_objective(), setting().fresh
    mask = (np.random.default_rng(0).random(theta.size) < 0.5).astype(float)
    biases = np.arange(theta.size)[objective.surrogate.entries()["net0.1.bias"]]
    theta = theta.at[biases[mask[biases] == 0]].set(-0.0)  # a sign is a bit, too
    assert np.signbit(theta[biases]).any()
    batch = objective.draw(SEED)
    ended = train(objective, Start(theta, mask), Training(phases=(phase,)), SEED, batch=batch)
    before, after = np.asarray(theta), np.asarray(ended.theta)
    assert before[mask == 0].tobytes() == after[mask == 0].tobytes()
    assert np.all(before[mask == 1] != after[mask == 1])


@pytest.mark.parametrize("name", NAMES)
def test_no_method_spends_more_than_the_matched_budget(name: str) -> None:
    whole = resolved_budget(own_objective(), method_cases.TRAINING, "matched")
    assert whole.closures == 20 + 5 * 6  # one outer epoch of adaptation, five of main training
    result = once(name).result
    assert 0 < result.history.closures <= result.closures <= whole.closures
    if "correction" in result.stages:
        spent = result.stages["overhead"]["closures"]
        assert list(spent) == [result.stages["adaptation"]["closures"][-1], 3, 0]
        assert result.closures == sum(spent) + result.history.closures


CONTROLS = ("adapt-only", "random-reset", "random-decay", "score-shuffled", "magnitude-decay")


@pytest.mark.parametrize("name", NAMES)
def test_streams_are_shared_until_methods_differ(name: str) -> None:
    drawn = [call for call in once(name).streams if call[1] not in ("resets", "scoring")]
    like = "tgsr" if name in CONTROLS else "full" if name != "tgsr" else "adapt-only"
    assert drawn == [call for call in once(like).streams if call[1] != "scoring"]
    if name in CONTROLS[1:]:
        assert [c for c in once(name).streams if c[1] != "resets"] == once("tgsr").streams
    assert {call[0] for call in once(name).streams} == {SEED}
    assert any(call[1] == "init" for call in drawn)


@pytest.mark.parametrize("name", CONTROLS[1:])
def test_a_control_starts_where_tgsr_does_until_the_correction(name: str) -> None:
    mine, tgsr_ = once(name).result.stages, once("tgsr").result.stages
    np.testing.assert_array_equal(mine["adaptation"]["values"], tgsr_["adaptation"]["values"])
    for key in ("layer1.T", "layer2.V"):
        np.testing.assert_array_equal(mine["correction"][key], tgsr_["correction"][key])
    assert once(name).result.fingerprint != once("tgsr").result.fingerprint


@pytest.mark.parametrize("budget", ["matched", "paper"])
def test_without_decay_tgsr_is_the_adaptation_alone(budget: str, observe: Observe) -> None:
    options = TgsrOptions(gamma_m=1.0, gamma_min=1.0)
    off, alone = (observe(kind(options), budget=budget).result for kind in (Tgsr, AdaptOnly))
    assert off.fingerprint == alone.fingerprint
    assert off.closures == alone.closures
    np.testing.assert_array_equal(off.history["loss"], alone.history["loss"])
    assert off.fingerprint != observe("tgsr", budget=budget).result.fingerprint


class Untouchable(SavedNetwork):
    """A source that cannot be looked at."""

    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(f"the source's {name} was read")


def test_scratch_never_reads_the_source() -> None:
    here = setting(source=Untouchable())
    np.testing.assert_array_equal(Scratch().prepare(here).start.theta, here.fresh)
    with pytest.raises(AssertionError, match="was read"):
        as_method("full").prepare(here)


# ---- failures and diagnostics


def test_a_score_that_is_not_finite_ends_the_transfer_with_its_layer(
    observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect = algorithm.collect

    def spoilt(*args: Any) -> Any:
        evidence = collect(*args)
        first, second = evidence.sensitivity
        return replace(evidence, sensitivity=(first, np.where(np.arange(5) == 3, np.inf, second)))

    monkeypatch.setattr(algorithm, "collect", spoilt)
    seen = observe("tgsr")
    assert seen.result.outcome is Outcome.SCORING
    assert seen.result.sentence.startswith("Neuron scoring failed: the sensitivity of hidden layer 2 is not finite")
    assert len(seen.result.history) == 0
    assert seen.result.closures == seen.result.stages["adaptation"]["closures"][-1] + 3
    np.testing.assert_array_equal(seen.start.theta, seen.trained.theta)
    assert observe("adapt-only").result.outcome.ok


@pytest.mark.parametrize("name", ["tgsr", "adapt-only", "magnitude-decay"])
def test_a_failed_adaptation_ends_the_transfer_with_its_stage(
    name: str, observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapt = algorithm.adapt
    monkeypatch.setattr(algorithm, "adapt", lambda *args: replace(adapt(*args), outcome=Outcome.DIVERGED))
    seen = observe(name)
    assert (seen.result.outcome, len(seen.result.history)) == (Outcome.DIVERGED, 0)
    assert "short adaptation failed, so nothing was scored or trained: The loss grew" in seen.result.sentence


def test_gate_check() -> None:
    """Close to 1 the first-order predictions are what happens; at 0.9 the check sees most neurons rightly."""
    here = setting(source=source())
    close = gate_check(here, probes=7, factor=0.9999)
    for predicted, seen in (
        (close.predicted_loss_change, close.loss_change),
        (close.predicted_gradient_change, close.gradient_change),
    ):
        np.testing.assert_allclose(predicted, seen, rtol=2e-2, atol=1e-6 * seen.max())
    assert (len(close.score), list(close.layer)) == (7, [1, 1, 1, 1, 2, 2, 2])
    assert close.gradient_correlation > 0.99
    paper = gate_check(here)
    assert len(paper.score) == 10  # no neuron twice
    assert paper.gradient_correlation > 0.8
    assert -1.0 <= paper.score_correlation <= 1.0
    assert "Spearman" in str(paper)
    with pytest.raises(InputError, match="probes = 0"):
        gate_check(here, probes=0)


def test_overhead_is_recorded_and_moves_no_bit(observe: Observe, monkeypatch: pytest.MonkeyPatch) -> None:
    result = observe("tgsr").result
    cost = result.stages["overhead"]
    assert list(cost["stage"]) == ["adaptation", "scoring", "correction"]
    assert (cost["seconds"] > 0).all()
    assert (cost["peak_mib"] > 50).all()
    monkeypatch.setattr("tgsr.methods._overhead.time.perf_counter", lambda: 0.0)
    monkeypatch.setattr("tgsr.methods._overhead.PEAK_UNIT", 1e9)
    assert observe(as_method("tgsr")).result.fingerprint == result.fingerprint
