"""The demonstration: it finds eps, writes what it says it writes, and a second call trains nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tgsr.demo import METHODS, QUICK, Display, Effort, main
from tgsr.demo import run as run_demo
from tgsr.training import Progress


def test_the_time_left_counts_the_runs_to_come_and_not_the_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display(runs=3, every=0.0)
    display.begin("one")
    for epoch, seconds in ((1, 60.0), (2, 62.0), (3, 64.0)):
        display(Progress("main", "lm", epoch, 10, 1e-3, {"eps": 0.01}, 10 * epoch, None, seconds))
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].endswith("measuring the time left")
    assert lines[3].endswith("at most 54 s left")
    assert "\r" not in "".join(lines)


def test_an_unusable_folder_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = CliRunner().invoke(main, ["--out", str(tmp_path / "file")])
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output


@pytest.mark.slow
def test_the_quick_demonstration_recovers_eps_and_a_second_call_only_reads(tmp_path: Path) -> None:
    assert isinstance(QUICK, Effort)
    first = CliRunner().invoke(main, ["--out", str(tmp_path), "--quick"])
    assert first.exit_code == 0, first.output
    assert {p.name for p in tmp_path.iterdir()} == {"runs", "report.html", "source.png", *(f"{m}.png" for m in METHODS)}
    results = run_demo(tmp_path, QUICK, 0)
    assert [r.method for r in results] == list(METHODS)
    for result in results:
        assert result.unknowns["eps"].value == pytest.approx(0.01, rel=0.03)
