"""`tgsr solve` and `tgsr transfer`: what they print, what they keep, and the codes with which they leave."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from cli_cases import DECAY, SMALL, Finished, Invoke

import tgsr


def test_json_is_the_result(finished: Finished) -> None:
    result = tgsr.load(finished.run)
    assert finished.record["unknowns"]["k"]["value"] == result.unknowns["k"].value
    assert finished.record["weights_sha256"] == result.fingerprint
    assert finished.record["outcome"] == result.outcome.label
    assert finished.record["closures"] == result.closures
    errors = finished.record["errors_against_truth"]
    assert errors["parameter"] == pytest.approx(100 * abs(result.unknowns["k"].value - 1.5) / 1.5)
    assert errors["fields"]["u"] < 5


def test_the_same_command_shows_the_finished_run(finished: Finished, invoke: Invoke) -> None:
    before = (finished.run / "result.json").stat().st_mtime_ns
    answer = invoke("solve", finished.file, *SMALL, "--out", finished.run.parent)
    assert answer.exit_code == 0
    assert answer.stderr == ""  # nobody looks: no progress
    assert str(tgsr.load(finished.run)) in answer.stdout
    assert "compared with the truth in decay.py (evaluation only)" in answer.stdout
    assert f"tgsr show {finished.run}" in answer.stdout
    assert (finished.run / "result.json").stat().st_mtime_ns == before
    quiet = invoke("solve", f"{finished.file}:problem", *SMALL, "--out", finished.run.parent, "--quiet")
    assert "tgsr show" not in quiet.stdout
    assert answer.stdout.startswith(quiet.stdout)


def test_transfer_starts_from_the_source_and_can_keep_nothing(finished: Finished, invoke: Invoke) -> None:
    args = (finished.run, finished.file, "--method", "full", "--option", "match=leading", "--budget", "30")
    answer = invoke("transfer", *args, "--seed", "3", "--no-save", "--json")
    assert answer.exit_code == 0, answer.stderr
    record = json.loads(answer.stdout)
    assert (record["method"], record["seed"], record["run"]) == ("full", 3, None)
    assert list(Path().iterdir()) == []


def test_a_run_that_fails_has_exit_code_1_and_can_be_shown(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "nan.py"
    file.write_text(
        "import jax.numpy as jnp\n" + DECAY.replace("u, k)", "u, k, t)").replace("k * u", "k * u + jnp.log(t - 0.5)")
    )
    answer = invoke("solve", file, "--widths", "3", "--json")
    assert answer.exit_code == 1, answer.output
    record = json.loads(answer.stdout)
    assert record["outcome"] == "non-finite-start"
    shown = invoke("show", record["run"])
    assert shown.exit_code == 0
    assert "failed (non-finite-start" in shown.stdout
    listed = invoke("show", "runs")
    assert "failed" in listed.stdout


def test_numbers_that_json_lacks_are_null(invoke: Invoke) -> None:
    from tgsr.cli._write import _finite

    assert _finite({"a": [math.nan, (math.inf, 1.0)], "b": 2}) == {"a": [None, [None, 1.0]], "b": 2}


def test_a_relative_data_path_and_a_neighbour_module(invoke: Invoke, tmp_path: Path) -> None:
    """Both are found beside the file, wherever the command is given; no bytecode is left there."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "readings.csv").write_text("time,temp\n0,2\n0.5,0.94\n1,0.45\n")
    (folder / "neighbour.py").write_text("NOISE = 0.01\n")
    lines = [line for line in DECAY.splitlines() if "tgsr.Data(" not in line]
    text = "\n".join(lines).replace(
        'conditions=[tgsr.Initial("u", 2.0)],',
        'conditions=[tgsr.Initial("u", 2.0)],\n'
        '    data=[tgsr.read_data("readings.csv", columns={"t": "time", "u": "temp"}, noise=NOISE)],',
    )
    (folder / "read.py").write_text("from neighbour import NOISE\nassert __name__ != '__main__'\n" + text)
    from tgsr._problem_file import read_problem

    user = read_problem(str(folder / "read.py"))
    assert len(user.problem.data[0]) == 3
    assert not list(folder.glob("__pycache__/read*"))
    assert user.module.__file__ == str(folder / "read.py")
