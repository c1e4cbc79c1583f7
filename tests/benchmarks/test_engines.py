"""The comparison of engines: its formulas, its protocol, and a page that says what the results say."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tgsr.storage import read_json

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results" / "engines.json"
TALKER = """
from worker import arguments, flat, serve
work, chosen = arguments("one", "two")
print("a library says hello")
calls = []
def evaluate():
    calls.append(chosen)
    return len(calls)
def result(count):
    print("and again")
    return float(count), flat(work.layers, work["unknowns"])
serve(evaluate, result, "numpy", chosen=chosen)
"""


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("engines_report")


def made_up(report: ModuleType, rival_ms: float, our_ms: float) -> dict[str, Any]:
    """Results in which every rival and every engine takes the same time."""
    ms = {name: our_ms if name in report.OURS else rival_ms for name in report.COMPETITORS}
    versions = {"torch": "2.13.0+cpu", "pina-mathlab": "0.3.2", "deepxde": "1.15.0", "jinns": "1.10.2"}
    about = dict.fromkeys(ms, versions)
    one = {"ms": ms, "gradient": dict.fromkeys(ms, 1e-12), "peak": 100.0}
    case = {"float32": one, "float64": one}
    memory = {name: {"10000": 400, "100000": 500, "1000000": 700} for name in ms}
    far = {p: {"ms": {name: 100 * our_ms for name in report.OURS}} for p in report.PRECISIONS}
    parts = {
        "rivals": {"points": 10_000, "about": about, **case},
        "cases": {"cases": dict.fromkeys(report.CASES, case)},
        "scaling": {"10000": case, "1000000": far},
        "memory": {"float32": memory, "float64": memory},
    }
    machine = {"processor": "Some CPU [0123]", "threads": 2}
    return {"machine": machine} | {name: {"others": [0.01, 0.12], "found": found} for name, found in parts.items()}


def test_the_flops_by_a_count_of_every_multiplication(report: ModuleType) -> None:
    rows, sizes, count = 3, (2, 5, 4, 1), 0
    for inputs, outputs in ((5, 4), (4, 1)):
        count += 2 * rows * outputs * inputs  # the product
        count += 2 * inputs * outputs * rows  # the slopes of its weights, a sum over rows
        count += 2 * rows * inputs * outputs  # the slopes of its input, a sum over outputs
    assert report.closure_flops(sizes, rows) == count
    assert report.work_rows(10_000) == 4 * 10_000 + 2500 + 2500 + 1000
    assert report.closure_flops(report.SIZES, report.work_rows(10_000)) == pytest.approx(13.8e9, rel=0.01)


def test_the_share_of_the_peak(report: ModuleType) -> None:
    results = made_up(report, 500.0, 1000.0)  # 13.8 GFLOP in a second, of 100 GFLOP/s
    assert report.share_of_peak(results["rivals"]["found"], "float32", "native") == pytest.approx(0.138, rel=0.01)


@pytest.mark.parametrize(("rival_ms", "expected"), [(1000.0, True), (250.0, False)])
def test_bars_are_met_or_missed(report: ModuleType, rival_ms: float, expected: bool) -> None:
    met = {what: met for what, _, _, met in report.bars(made_up(report, rival_ms, 100.0))}
    assert met["jax over jinns recommended, float32"] is expected
    assert met["native over PyTorch nested autograd, float64"] is expected
    assert met["native over PyTorch, kdv, float32"] is expected
    assert met["jax over PINA, float64"] is True  # 2.5 of 2.5 in the second case
    assert met["jax, time of a point at 1e6 over that at 1e4, float64"]
    assert met["native, memory at 100,000 points, float32"]
    assert len(met) == len(report.bars(made_up(report, rival_ms, 100.0)))


def test_the_section_names_versions_and_ratios(report: ModuleType) -> None:
    text = report.section(made_up(report, 1234.5, 100.0))
    assert "| PyTorch 2.13.0, nested autograd | 1,234 | 12.3 \N{MULTIPLICATION SIGN} | 12.3 " in text
    assert "DeepXDE 1.15.0 on JAX" in text
    assert "other processes used 0.12 cores at most" in text.replace("\n", " ")
    assert "at 138 % and 138 % of that peak" in text.replace("\n", " ")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.count("|") for line in rows}
    assert widths == {10, 8}  # tables of 9, 7 and 9 columns


def test_parts_that_were_not_measured_are_left_out(report: ModuleType) -> None:
    results = made_up(report, 500.0, 100.0)
    only = {"machine": results["machine"], "memory": results["memory"]}
    assert {what.split(",")[0] for what, *_ in report.bars(only)} == {"jax", "native"}
    assert "PyTorch" not in report.section(only)


def test_an_svg_comes_out_twice_the_same(report: ModuleType) -> None:
    figure = importlib.import_module("engines_figure").figure
    results = made_up(report, 500.0, 100.0)
    drawn = figure(results)
    assert drawn == figure(results)
    assert drawn.startswith(b"<?xml")


def test_a_worker_answers_though_its_library_talks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shapes = {"weight 0": (2, 3), "bias 0": (3,), "weight 1": (3, 1), "bias 1": (1,)}
    arrays: dict[str, Any] = {name: rng.random(shape) for name, shape in shapes.items()}
    np.savez(tmp_path / "work.npz", case=np.array("work"), unknowns=np.array([7.0, 8.0]), **arrays)
    (tmp_path / "talker.py").write_text(f"import sys; sys.path.insert(0, {str(BENCHMARKS / 'rivals')!r})\n{TALKER}")
    run = subprocess.run(
        [sys.executable, "talker.py", "work.npz", "--with", "two"],
        input="time\ngradient slope.npy\n", capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    about, first, second = map(json.loads, run.stdout.splitlines())
    assert about["chosen"] == "two"
    assert about["numpy"] == np.__version__
    assert 0 <= first["seconds"] < 60
    assert second["mebibytes"] > 1
    assert "hello" in run.stderr
    expected = [2.0, *(x for array in arrays.values() for x in array.ravel()), 7.0, 8.0]
    np.testing.assert_array_equal(np.load(tmp_path / "slope.npy"), expected)


def test_the_page_says_what_was_measured(report: ModuleType) -> None:
    page = (ROOT / "docs" / "engine.md").read_text()
    assert page[page.index(report.HEADING) :] == report.section(read_json(RESULTS))
    assert (ROOT / "docs" / "assets" / "engine.svg").exists()
