"""What a result prints, predicts, stores and compares. No training: a network of known weights stands in for a fit."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tgsr
from tgsr import Estimate, Outcome, Result, SavedNetwork, Truth
from tgsr._result import rounded
from tgsr.training import _history

SPEC = {"problem": {"name": "line", "coordinates": {"x": [0.0, 2.0], "t": [0.0, 1.0]}}}


def network(field: str = "u", slope: float = 0.5) -> SavedNetwork:
    """u = slope tanh(x + 2 t) + 1, seen through a scale of 2 and an offset of 10."""
    return SavedNetwork(
        (np.array([[1.0], [2.0]]), np.array([[slope]])), (np.zeros(1), np.ones(1)), "tanh", ("x", "t"), (field,),
        np.zeros(2), np.ones(2), np.array([10.0]), np.array([2.0]),
    )  # fmt: skip


def exact(x: Any, t: Any) -> Any:
    return 10.0 + 2.0 * (0.5 * np.tanh(x + 2.0 * t) + 1.0)


def history() -> _history.History:
    columns = {
        "phase": np.zeros(3, dtype=np.int64), "seconds": np.array([0.1, 0.2, 0.3]), "closures": np.array([1, 2, 4]),
        "loss": np.array([3.0, 2.0, 1.0]), "terms": np.ones((3, 2)), "values": np.array([[1.0], [1.5], [2.0]]),
    }  # fmt: skip
    return _history.History(("pde", "data"), ("k",), ["adam"], columns)


def result(value: float = 2.0, se: float = 0.013, **more: Any) -> Result:
    given = {
        "name": "line",
        "unknowns": {"k": Estimate(value, se, (value - 1.96 * se, value + 1.96 * se), "m2/s", True, 1.0)},
        "outcome": Outcome.CONVERGED,
        "sentence": Outcome.CONVERGED.sentence,
        "history": history(),
        "network": network(),
        "correlation": np.ones((1, 1)),
        "likelihood": ("data: independent normal errors",),
        "stages": {"adaptation": {"loss": np.arange(3.0)}},
        "closures": 4,
        "seconds": 0.25,
        "seed": 7,
        "provenance": {"engine": "jax"},
        "inputs": (SPEC, b"data", b"source"),
    }
    return Result(**{**given, **more})


@pytest.mark.parametrize(
    ("value", "se", "shown"),
    [
        (2.0, 0.013, ("2.000", "0.013")),
        (1.23456, 0.0987, ("1.235", "0.099")),
        (123.456, 4.4, ("123.5", "4.4")),
        (12345.6, 98.7, ("12346", "99")),
        (12345.6, 987.0, ("12346", "987")),
        (1.2345e-7, 3.4e-9, ("1.235e-07", "3.4e-09")),
        (6.5e12, 2.5e10, ("6.500e+12", "2.5e+10")),
        (-0.5, 0.02, ("-0.500", "0.020")),
        (0.0, 0.5, ("0.00", "0.50")),
        (3.0, 0.0, ("3", "0")),
    ],
)
def test_rounding_to_two_digits_of_the_error(value: float, se: float, shown: tuple[str, str]) -> None:
    assert rounded(value, se) == shown


def test_what_is_printed() -> None:
    text = str(result())
    assert text.splitlines() == [
        "line (scratch): converged after 4 closures in 0.2 s",
        "  k = 2.000 +- 0.013 m2/s   (95 %: 1.9745 to 2.0255)",
        "  data: independent normal errors",
    ]
    assert repr(result()) == text == result()._repr_mimebundle_()["text/plain"]
    lost = Estimate(2.0, math.inf, (-math.inf, math.inf), "", False)
    assert str(lost) == "2, not identifiable from this data"
    assert str(Estimate(2.5, math.nan, (math.nan, math.nan))) == "2.5 (no standard error)"
    failed = result(outcome=Outcome.DIVERGED, sentence=Outcome.DIVERGED.sentence)
    assert Outcome.DIVERGED.sentence in str(failed)


def test_predict_broadcasts_and_knows_its_coordinates() -> None:
    fit = result()
    x, t = np.linspace(0, 2, 5), np.linspace(0, 1, 4)[:, None]
    np.testing.assert_allclose(fit.predict(x=x, t=t)["u"], exact(x, t), rtol=1e-12)
    assert fit.predict(t=0.5, x=[0.1, 0.2])["u"].shape == (2,)
    assert fit.predict(x=1, t=0)["u"].shape == ()
    assert fit.predict(x=[], t=0.0)["u"].shape == (0,)
    with pytest.raises(tgsr.InputError, match=r"'y'.*Give x, t"):
        fit.predict(x=1.0, y=2.0, t=0.0)
    with pytest.raises(tgsr.InputError, match="needs coordinate 't'"):
        fit.predict(x=1.0)
    for bad in (["a"], [1.0, 2.0, 3.0], object(), [[1.0], [1.0, 2.0]]):
        with pytest.raises(tgsr.InputError, match="not numbers of matching shapes"):
            fit.predict(x=bad, t=[1.0, 2.0])
    q = dataclasses.replace(network("q"), coordinates=("t",), weights=(np.array([[2.0]]), np.ones((1, 1))),
                            centre=np.zeros(1), half_width=np.ones(1))  # fmt: skip
    both = result(unknown_fields={"q": (q, False)})
    assert both.fields == ("u", "q")
    np.testing.assert_allclose(both.predict(x=x, t=t)["q"], np.broadcast_to(12.0 + 2.0 * np.tanh(2.0 * t), (4, 5)))


@pytest.mark.parametrize("outcome", [Outcome.CONVERGED, Outcome.NON_FINITE])
def test_a_stored_result_comes_back_whole(tmp_path: Path, outcome: Outcome) -> None:
    one = result(
        outcome=outcome,
        sentence=outcome.sentence,
        warnings=("mind this",),
        correlation=np.array([[math.nan]]),
    )
    path = one.save(tmp_path)
    back = tgsr.load(path)
    assert back.fingerprint == one.fingerprint
    assert str(back) == str(one)
    for name in ("unknowns", "outcome", "stages", "seed", "closures", "warnings", "provenance", "method"):
        assert str(getattr(back, name)) == str(getattr(one, name)), name
    for name, column in one.history.columns.items():
        np.testing.assert_array_equal(back.history.columns[name], column)
    np.testing.assert_array_equal(back.predict(x=1.0, t=0.3)["u"], one.predict(x=1.0, t=0.3)["u"])
    assert back.inputs == one.inputs
    assert one.save(tmp_path) == path  # again: nothing is written twice
    assert (path / "failure.json").exists() is not outcome.ok
    assert result(seed=8).save(tmp_path) != path


def test_the_fingerprint_is_of_the_weights_and_unknowns() -> None:
    assert result().fingerprint == result(closures=99, name="other").fingerprint
    assert result().fingerprint != result(network=network(slope=math.nextafter(0.5, 1))).fingerprint
    assert result().fingerprint != result(value=math.nextafter(2.0, 3)).fingerprint


def test_comparison_in_standard_errors() -> None:
    text = str(result(2.0, 0.02).compare(result(1.97, 0.01, closures=14, method="tgsr", seconds=1.0)))
    assert "+1.50 standard errors" in text
    assert "-10" in text
    assert "line (tgsr)" in text
    assert len({len(line.split("  ")[0]) for line in text.splitlines()}) >= 1
    unsure = str(result(2.0, math.nan).compare(result(1.5, 0.01)))
    assert "+0.5" in unsure
    assert "standard errors" not in unsure


def test_errors_against_a_truth() -> None:
    errors = tgsr.evaluate(result(), Truth({"k": 1.6}, exact))
    assert errors.parameter == pytest.approx(25.0)
    assert errors.fields["u"] < 1e-10
    assert "parameter error 25 % (k 25 %)" in str(errors)
    named = tgsr.evaluate(result(), Truth({}, lambda t, x: {"u": 1.1 * exact(x, t)}), ranges={"x": (0, 1), "t": (0, 1)})
    assert named.fields["u"] == pytest.approx(100 * 0.1 / 1.1)
    assert math.isnan(named.parameter)
    assert tgsr.evaluate(result(math.nan), Truth({"k": 1.0})).parameter == math.inf
    with pytest.raises(tgsr.InputError, match="no unknown of the result"):
        tgsr.evaluate(result(), Truth({"z": 1.0}))
    with pytest.raises(tgsr.InputError, match="Give ranges"):
        tgsr.evaluate(result(inputs=None), Truth({}, exact))


def test_runs_that_have_no_result(tmp_path: Path) -> None:
    with pytest.raises(tgsr.TgsrError):
        tgsr.load(tmp_path)
    with pytest.raises(tgsr.TgsrError):
        tgsr.load(tmp_path / "nowhere")
    with pytest.raises(tgsr.InputError, match="without what identifies"):
        result(inputs=None).save(tmp_path)
