"""`tgsr compare` and `tgsr explain`: what they print, and how they leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_cases import Finished, Invoke

import tgsr
from tgsr._random import stream

WIDTHS = (40, 40)


def explained(finished: Finished, method: str = "tgsr", **options: Any) -> tgsr.Result:
    """The finished run as if it had been a transfer that scored two layers: the real stages on made-up evidence."""
    from tgsr.methods.tgsr._correction import corrections, stage_arrays

    rng = stream(1, "scoring")
    chosen = tgsr.TgsrOptions(**options)
    idle = np.arange(WIDTHS[0]) < 8  # neurons that the target does not use
    T, V = (np.where(idle, 1e-4, 1.0) * rng.lognormal(0, 0.4, WIDTHS[0]) for _ in "TV")
    flat = np.ones(WIDTHS[1])
    evidence: Any = [SimpleNamespace(sensitivity=(T, flat), variance=(V, flat)) for _ in range(3)]
    rows = [(1, WIDTHS[0]), WIDTHS, (WIDTHS[1], 1)]
    found = corrections(evidence, [(rng.standard_normal(s), np.zeros(s[1])) for s in rows], chosen)
    result = tgsr.load(finished.run)
    assert result.inputs is not None
    spec, data, source = result.inputs
    steps = {"loss": np.linspace(9.0, 2.0, 45), "closures": np.arange(1, 46)}
    cost = {"stage": ["adaptation", "scoring"], "seconds": [1.5, 0.25], "closures": [45, 3], "peak_mib": [9.0, 9.0]}
    return replace(
        result,
        method=method,
        closures=90,
        stages={
            "adaptation": steps,
            "correction": stage_arrays(evidence, found),
            "overhead": {k: np.array(v) for k, v in cost.items()},
        },
        inputs=({**spec, "method": {"name": method, "options": vars(chosen)}}, data, source),
    )


@pytest.fixture(scope="module")
def transferred(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return explained(finished).save(tmp_path_factory.mktemp("explained"))


def test_explain_in_words(transferred: Path, invoke: Invoke, finished: Finished) -> None:
    answer = invoke("explain", transferred)
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == str(tgsr.explain(explained(finished))) + "\n"
    gamma = tgsr.load(transferred).stages["correction"]["layer1.gamma"]
    softened = int((1 - gamma >= 0.02).sum())
    for words in (
        f"{softened} of 80 hidden neurons were softened",
        "3 outer epochs, 45 closures (50% of all); the loss went from 9 after the first step to 2",
        "Protection leaves 45% of the signal (shallow layers are softened less)",
        f"least {gamma.min():.3f}; {softened} of 40 neurons softened",
        "No signal: the scores tell no neuron from another",
        "40 neurons, 40 of them at the floor",
        "scoring 250 ms and 3 closures",
    ):
        assert words in answer.stdout
    assert 0 < softened < 40


def test_explain_as_json_names_the_idle_neurons(transferred: Path, invoke: Invoke) -> None:
    record = json.loads(invoke("explain", transferred, "--json").stdout)
    first, second = record["layers"]
    assert {one["neuron"] for one in first["most_softened"]} <= set(range(1, 9)) | set(first["softened"])
    assert all(one["why"] for one in first["most_softened"])
    assert first["mixture"]["delta_bic"] > 10
    assert (second["branch"], second["softened"], second["mixture"]) == ("degenerate", [], None)
    assert record["adaptation"] == {"epochs": 3, "closures": 45, "loss_first": 9.0, "loss_last": 2.0}


def test_each_branch_says_why(finished: Finished) -> None:
    from tgsr.report._explain import Layer, branch_words

    def words(**options: Any) -> str:
        found = explained(finished, **options)
        return branch_words(Layer.of(found.stages["correction"], 1), tgsr.TgsrOptions(**options))

    assert words(branch="rank") == "signal by rank, as the options ask"
    assert words(bic_threshold=1e6).startswith("signal by rank: two groups fit better than one by a BIC of")
    assert "but the low group holds" in words(low_weight_cap=0.01)
    assert words(low_weight_cap=0.01, branch="gmm").startswith("no signal, as the mixture alone was asked for")
    assert words(low_weight_cap=1.0).startswith("signal by mixture: two groups")


def test_a_control_gives_no_reasons_and_other_methods_a_sentence(finished: Finished) -> None:
    shuffled = tgsr.explain(explained(finished, "score-shuffled"))
    assert "dealt to other neurons" in shuffled.text
    assert "low sensitivity" not in shuffled.text
    assert shuffled.as_json()["layers"][0]["most_softened"][0]["why"] is None
    plain = tgsr.explain(finished.run)
    assert plain.text == "decay (scratch): no neuron was scored or softened. It started from random weights."
    assert len(plain.plot().axes) == 1


def test_the_figure_has_three_panels_per_layer(transferred: Path, invoke: Invoke, finished: Finished) -> None:
    figure = tgsr.explain(transferred).plot()
    assert len([ax for ax in figure.axes if ax.get_title(loc="left")]) == 6
    mixture = figure.axes[1]
    assert len(mixture.get_lines()) == 2
    answer = invoke("explain", transferred, "--plot", "why.png")
    assert answer.exit_code == 0
    assert Path("why.png").read_bytes().startswith(b"\x89PNG")


def test_explain_refuses_what_it_cannot(transferred: Path, invoke: Invoke) -> None:
    for args in ((transferred, "--plot", "why.doc"), ("nowhere",), (transferred.parent,)):
        answer = invoke("explain", *args)
        assert (answer.exit_code, answer.stdout) == (2, "")
        assert answer.stderr.count("\n") == 1
    with pytest.raises(tgsr.InputError, match="no result"):
        tgsr.explain(3)  # type: ignore[arg-type]


def test_compare(finished: Finished, invoke: Invoke, tmp_path: Path) -> None:
    args = (
        finished.run,
        finished.file,
        "--methods",
        "scratch,full",
        "--seeds",
        "1",
        "--budget",
        "30",
        "--out",
        tmp_path,
    )
    first = invoke("compare", *args)
    assert first.exit_code == 0, first.output
    assert first.stderr == ""
    assert "2 of 11 readings were held out" in first.stdout
    assert "\nfull: " in first.stdout
    assert "One seed is one draw of chance" in first.stdout
    assert "The truth (evaluation only) says" in first.stdout
    again = invoke("compare", *args, "--json")
    record = json.loads(again.stdout)
    assert [one["method"] for one in record["runs"]] == ["scratch", "full"]
    assert record["verdicts"]["full"]["reason"] in first.stdout
    assert all(Path(one["run"]).parent == tmp_path for one in record["runs"])
    assert record["runs"][1]["errors_against_truth"]["parameter"] < 20
    quiet = invoke("compare", *args, "--quiet")
    assert first.stdout.startswith(quiet.stdout.rstrip("\n"))
    assert "tgsr show" not in quiet.stdout


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--methods", "full"), "scratch"),
        (("--methods", "scratch,ful"), "full"),
        (("--seeds", "0"), "seeds"),
        (("--seeds", "1,1"), "seeds"),
        (("--seeds", "many"), "seeds"),
        (("--held-out", "0.9"), "held_out"),
        (("--held-out", "nan"), "held_out"),
    ],
)
def test_compare_refuses(finished: Finished, invoke: Invoke, options: tuple[str, str], word: str) -> None:
    answer = invoke("compare", finished.run, finished.file, *options)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert word in answer.stderr
    assert list(Path().iterdir()) == []
