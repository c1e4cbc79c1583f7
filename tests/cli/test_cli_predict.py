"""`tgsr predict` gives what `Result.predict` gives, from every kind of points to every kind of output."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
from cli_cases import Finished, Invoke

import tgsr
from tgsr.storage import read_arrays

POINTS = np.array([0.0, 0.25, 1.0])


def _table(text: str) -> tuple[list[str], np.ndarray]:
    head, *rows = csv.reader(io.StringIO(text))
    return head, np.array(rows, dtype=float)


def test_points_written_out(finished: Finished, invoke: Invoke) -> None:
    at = [arg for t in POINTS for arg in ("--at", f"t={t}")]
    head, rows = _table(invoke("predict", finished.run, *at).stdout)
    assert head == ["t", "u"]
    np.testing.assert_array_equal(rows[:, 0], POINTS)
    np.testing.assert_array_equal(rows[:, 1], tgsr.load(finished.run).predict(t=POINTS)["u"])


def test_a_table_and_a_grid_are_the_same_points(finished: Finished, invoke: Invoke, tmp_path: Path) -> None:
    grid = invoke("predict", finished.run, "--grid", "t=0:1:5").stdout
    file = tmp_path / "points.csv"
    file.write_text("label;t\n" + "".join(f"{i};{t}\n" for i, t in enumerate(np.linspace(0, 1, 5))))
    assert invoke("predict", finished.run, "--points", file).stdout == grid
    assert len(_table(grid)[1]) == 5


def test_files_and_json_hold_the_same_numbers(finished: Finished, invoke: Invoke) -> None:
    args = ("predict", finished.run, "--grid", "t=0:1:4")
    text = invoke(*args).stdout
    for name in ("out.csv", "out.npz"):
        answer = invoke(*args, "--output", name)
        assert (answer.exit_code, answer.output) == (0, "")
    assert Path("out.csv").read_text() == text
    arrays, record = read_arrays("out.npz"), json.loads(invoke(*args, "--json").stdout)
    for i, (name, part) in enumerate((("t", "coordinates"), ("u", "fields"))):
        np.testing.assert_array_equal(arrays[name], _table(text)[1][:, i])
        assert record[part][name] == arrays[name].tolist()


def test_outside_the_box_only_when_allowed(finished: Finished, invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("t\n0.5\n1.5\n")
    refused = invoke("predict", finished.run, "--points", file)
    assert refused.exit_code == 2
    assert "row 3, 't'" in refused.stderr
    assert refused.stdout == ""
    allowed = invoke("predict", finished.run, "--points", file, "--extrapolate")
    assert _table(allowed.stdout)[1][1, 1] == tgsr.load(finished.run).predict(t=1.5)["u"]
