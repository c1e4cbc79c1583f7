"""Did transfer help? The rules on numbers, held-out readings, and two comparisons of real runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tgsr
from tgsr import InputError
from tgsr._held_out import deviances, residuals, split
from tgsr._random import stream
from tgsr._verdict import Measured, judge, judge_seed, truth_says

NOISE = stream(0, "noise").standard_normal(40)


def run(method: str = "full", seed: int = 0, *, bias: float = 0.0, **changes: Any) -> Measured:
    """A good run whose fit is off by `bias` noise levels everywhere."""
    known = {
        "loss": 1.0,
        "closures": 1000,
        "cost": 500.0,
        "estimates": {"k": (1.0, 0.01)},
        "deviances": (NOISE + bias) ** 2,
    }
    return Measured(method, seed, True, "converged", **{**known, **changes})


BASE = run("scratch")
FAILED = Measured("full", 0, False, "diverged")


@pytest.mark.parametrize(
    ("changes", "score", "by"),
    [
        ({}, 0, ""),
        ({"loss": 1.09}, 0, ""),  # within 10 %: alike
        ({"loss": 1.12}, -1, "quality"),
        ({"loss": 0.89}, 1, "quality"),
        ({"loss": 0.89, "cost": 900.0}, 1, "quality"),  # quality comes first
        ({"bias": 3.0}, -1, "quality"),
        ({"bias": 3.0, "loss": 0.5}, 0, ""),  # a lower loss and a worse test contradict each other
        ({"cost": 330.0}, 1, "cost"),
        ({"cost": 340.0}, 0, ""),  # more than 2/3
        ({"cost": 749.0}, 0, ""),
        ({"cost": 751.0}, -1, "cost"),
        ({"cost": math.inf}, -1, "cost"),  # 1000 closures spent and not arrived
        ({"cost": math.inf, "closures": 600}, 0, ""),  # it stopped early: what it would have cost is not known
        ({"estimates": {"k": (1.05, 0.01)}, "cost": 100.0}, 0, ""),  # two answers that fit alike
        ({"estimates": {"k": (1.04, 0.01)}, "cost": 100.0}, 1, "cost"),  # 2.8 combined standard errors
        ({"loss": math.nan, "cost": math.nan}, 0, ""),
    ],
)
def test_a_seed(changes: dict[str, Any], score: int, by: str) -> None:
    found = judge_seed(run(**changes), BASE)
    assert (found.score, found.by) == (score, by)
    mirrored = judge_seed(BASE, run(**changes))
    if "closures" not in changes:
        assert mirrored.score == -score


def test_pairing_sees_a_small_bias_and_leaves_a_tiny_one() -> None:
    """A bias far below the scatter of the misfit itself is certain in pairs; one too small never counts."""
    shift = NOISE - NOISE.mean()
    base = run(deviances=shift**2)
    off = run(deviances=(shift + 0.15 * np.sign(shift)) ** 2)
    assert judge_seed(off, base).by == "quality"
    assert abs(off.held_out[0] - base.held_out[0]) < 2 * math.hypot(off.held_out[1], base.held_out[1])
    certain = run(deviances=shift**2 * 1.01)
    assert judge_seed(certain, base).score == 0


def test_a_failed_run_is_the_worst() -> None:
    assert judge_seed(FAILED, BASE).score == -1
    assert judge_seed(BASE, FAILED).score == 1
    assert judge_seed(FAILED, FAILED).score == 0


BETTER, WORSE, ALIKE = run(loss=0.5), run(loss=2.0), run()


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([BETTER, BETTER, BETTER], "helped"),
        ([BETTER, BETTER, ALIKE], "helped"),
        ([BETTER, ALIKE, ALIKE], "cannot tell"),
        ([BETTER, BETTER, WORSE], "cannot tell"),
        ([WORSE, WORSE, ALIKE], "hurt"),
        ([WORSE, WORSE, BETTER], "cannot tell"),
        ([WORSE, FAILED, ALIKE], "hurt"),
        ([BETTER, run(cost=100.0), ALIKE], "helped"),
        ([ALIKE], "cannot tell"),
        ([BETTER], "helped"),
    ],
)
def test_seeds_together(runs: Sequence[Measured], verdict: str) -> None:
    found = judge("full", [(one, BASE) for one in runs])
    assert found.verdict == verdict
    assert ("One seed" in found.reason) == (len(runs) == 1)
    assert found.reason.endswith(".")


def test_the_reason_gives_the_numbers() -> None:
    apart = run(loss=4.0, estimates={"k": (2.0, 0.03)})
    reason = judge("full", [(apart, BASE)] * 3).reason
    assert "a loss 4 times" in reason
    assert "clearly worse in 3 of 3 seeds and better in 0" in reason
    assert "k differs by up to 32 combined standard errors, and the worse fit is the wrong one" in reason
    assert "0.2 times the closures" in judge("full", [(run(cost=100.0), BASE)] * 3).reason


def test_what_a_truth_says() -> None:
    assert truth_says([1.0, 1.0], [1.2, 1.2]) == "helped"
    assert truth_says([1.0, 1.0], [1.05, 0.95]) == "no difference"
    assert truth_says([1.2], [1.0]) == "hurt"
    assert truth_says([math.inf], [math.inf]) == "no difference"
    assert truth_says([1.0, 1.0], [1.2, 1.2], [0.9, 0.2]) == "no difference"  # inside the estimates' own errors
    assert truth_says([1.0, 1.0], [1.2, 1.2], [0.9, 1.2]) == "helped"
    assert truth_says([1.0, 1.0], [1.2, 1.2], [0.9, math.nan]) == "helped"


def decay(u: Any, k: Any) -> Any:
    return u.t + k * u


def problem(rows: int = 20, noise: float | tgsr.StudentT | None = 0.01, gap: bool = False) -> tgsr.Problem:
    t = np.linspace(0.0, 1.0, rows)
    u = 2.0 * np.exp(-1.5 * t) + 0.01 * stream(0, "noise").standard_normal(rows)
    if gap:
        u[1:] = np.nan
        extra = tgsr.Data({"t": t, "x": t}, {"u": u, "v": t}, noise=noise)
        fields, box = ["u", "v"], {"t": (0.0, 1.0), "x": (0.0, 1.0)}
    else:
        extra, fields, box = tgsr.Data({"t": t}, {"u": u}, noise=noise), ["u"], {"t": (0.0, 1.0)}
    return tgsr.Problem(
        "decay",
        coordinates=box,
        fields=fields,
        unknowns=[tgsr.Unknown("k", guess=1.0, positive=True)],
        residuals=[decay],
        conditions=[tgsr.Initial("u", 2.0, time="t")],
        data=[extra],
    )


def test_held_out_readings_are_others_at_each_seed_and_never_lost() -> None:
    whole = problem()
    kept, (held,) = split(whole, 0.2, 3)
    assert (len(kept.data[0]), len(held)) == (16, 4)
    assert sorted([*kept.data[0].rows, *held.rows]) == list(range(20))
    assert np.array_equal(held.values["u"], whole.data[0].values["u"][held.rows])
    assert len(whole.data[0]) == 20  # the user's own problem stays whole
    assert kept.spec() != whole.spec()
    assert list(split(whole, 0.2, 3)[1][0].rows) == list(held.rows)
    assert list(split(whole, 0.2, 4)[1][0].rows) != list(held.rows)
    assert split(problem(9), 0.2, 3)[1] == ()
    assert split(whole, 0.0, 3) == (whole, ())


def test_a_field_keeps_its_only_reading() -> None:
    for seed in range(12):
        kept, (held,) = split(problem(gap=True), 0.5, seed)
        assert np.isfinite(kept.data[0].values["u"]).sum() == 1
        assert not np.isfinite(held.values["u"]).any()


def test_misfits_follow_the_noise_model() -> None:
    held = split(problem(), 0.2, 0)[1]
    found = {"good": [np.full(4, 0.01)], "bad": [np.full(4, 0.05)]}
    assert deviances(held, found)["bad"] == pytest.approx(25 * np.ones(4))
    heavy = split(problem(noise=tgsr.StudentT(0.01)), 0.2, 0)[1]
    assert deviances(heavy, found)["bad"] == pytest.approx(4 * math.log1p(25 / 4) * np.ones(4))  # rho, not its square
    unknown = split(problem(noise=None), 0.2, 0)[1]
    one_scale = deviances(unknown, found)
    assert one_scale["good"] == pytest.approx(np.ones(4))  # the best fit's own scatter is the unit, for all
    assert one_scale["bad"] == pytest.approx(25 * np.ones(4))


TRAINING = tgsr.Training((tgsr.LevenbergMarquardt(hold=0),), tgsr.Points(interior=12), budget=44)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[tgsr.Result, tgsr.MethodComparison, Path]:
    out = tmp_path_factory.mktemp("compared")
    source = tgsr.solve(problem(), network=tgsr.MLP((5,)), training=TRAINING, seed=9)
    return (
        source,
        tgsr.compare(problem(), source, methods=("scratch", "full"), seeds=1, training=TRAINING, out=out),
        out,
    )


def test_a_source_that_has_the_answer_helps(compared: tuple[tgsr.Result, tgsr.MethodComparison, Path]) -> None:
    _, found, out = compared
    scratch, full = (found.runs[name, 0].measured for name in ("scratch", "full"))
    assert found.verdicts["full"].verdict == "helped", str(found)
    assert full.cost < scratch.cost or full.loss < scratch.loss
    assert full.deviances.shape == (4,)
    # The weighted sum of stored parts is the loss that training minimised.
    result = found.runs["full", 0].result
    assert result is not None
    assert full.loss == pytest.approx(result.history["loss"][-1], rel=1e-9)
    held = split(problem(), 0.2, 0)[1]
    assert np.sqrt(full.deviances) * 0.01 == pytest.approx(np.abs(residuals(result, held)[0]))
    assert len(list(out.iterdir())) == 2


def test_the_same_call_computes_nothing_again(
    compared: tuple[tgsr.Result, tgsr.MethodComparison, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, before, out = compared
    monkeypatch.setattr("tgsr._solve._compute", None)
    after = tgsr.compare(problem(), source, methods=("scratch", "full"), seeds=[0], training=TRAINING, out=out)
    assert str(after) == str(before)


def test_a_truth_only_stands_beside(compared: tuple[tgsr.Result, tgsr.MethodComparison, Path]) -> None:
    from tgsr._compare_text import comparison_text

    _, found, _ = compared
    right, wrong = (found.check(tgsr.Truth({"k": k})) for k in (1.5, 3.0))
    assert right.mean("full") < 2 < wrong.mean("full")
    text = comparison_text(found, wrong)
    assert "The truth (evaluation only) says" in text
    assert str(found.verdicts["full"]) in text
    record = found.as_json(right)
    assert record["verdicts"]["full"]["verdict"] == "helped"
    assert len(record["runs"]) == 2
    json.dumps(record)


def test_a_method_that_breaks_off_counts_as_worst(
    compared: tuple[tgsr.Result, tgsr.MethodComparison, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tgsr import _compare

    source, before, _ = compared

    class BrokenOffError(tgsr.TgsrError):
        exit_code = 1

    def transfer(*args: Any, method: Any, **options: Any) -> tgsr.Result:
        if method.name == "full":
            raise BrokenOffError("the scores of layer 1 are not finite")
        found = before.runs["scratch", 0].result
        assert found is not None
        return found

    monkeypatch.setattr(_compare, "transfer", transfer)
    after = tgsr.compare(problem(), source, methods=("scratch", "full"), seeds=1, training=TRAINING)
    assert not after.ok
    assert (after.verdicts["full"].verdict, after.verdicts["full"].by) == ("hurt", "outcome")
    assert "full: the scores of layer 1 are not finite." in str(after)


def test_estimated_noise_leaves_losses_out(compared: tuple[tgsr.Result, tgsr.MethodComparison, Path]) -> None:
    from tgsr._compare import _measured, _notes, _weights

    source, before, _ = compared
    loose = problem(noise=None)
    assert _weights(loose, source.network, TRAINING, 0) is None
    assert _weights(loose, source.network, replace(TRAINING, weights={"data": 1.0}), 0) == {
        "decay": 1.0,
        "initial u": 1.0,
        "data": 1.0,
    }
    result = before.runs["full", 0].result
    assert result is not None
    alone = _measured({"full": result}, 0, split(loose, 0.2, 0)[1], None)["full"]
    assert math.isnan(alone.loss)
    assert math.isnan(alone.cost)
    assert "State noise" in _notes(loose, 0.2, loose, TRAINING)[-1]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"methods": ("full", "tgsr")}, "scratch"),
        ({"methods": ("scratch",)}, "transfer method"),
        ({"methods": ("scratch", "full", "full")}, "twice"),
        ({"methods": ("scratch", "ful")}, "full"),
        ({"seeds": 0}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [0.5]}, "seeds"),
        ({"seeds": True}, "seeds"),
        ({"held_out": 0.6}, "held_out"),
        ({"held_out": "some"}, "held_out"),
        ({"budget": "much"}, "matched"),
        ({"source": 3}, "source"),
        ({"problem": 3}, "problem"),
    ],
)
def test_bad_input_is_one_line(options: dict[str, Any], word: str) -> None:
    rng = stream(0, "init")
    shapes = [(1, 4), (4, 1)]
    network = tgsr.SavedNetwork(
        tuple(rng.standard_normal(s) for s in shapes),
        tuple(np.zeros(s[1]) for s in shapes),
        "tanh",
        ("t",),
        ("u",),
        np.zeros(1),
        np.ones(1),
        np.zeros(1),
        np.ones(1),
    )
    given = {"problem": problem(), "source": network, **options}
    with pytest.raises(InputError, match=word) as error:
        tgsr.compare(given.pop("problem"), given.pop("source"), **given)
    assert "\n" not in str(error.value)
