"""Whatever is wrong: one line that says what, the right exit code, nothing on stdout, nothing written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_cases import DECAY, SMALL, Finished, Invoke

FILES = {
    "decay.py": DECAY,
    "syntax.py": "import tgsr\n\n\nz = = 3\n",
    "raises.py": "import tgsr\n\n\ndef f():\n    return 1 / 0\n\n\nf()\n",
    "missing_module.py": "import tgsr\nimport no_such_module_at_all\n",
    "exits.py": "import sys\nsys.exit(0)\n",
    "none.py": "x = 1\n",
    "several.py": DECAY.replace("problem =", "first =") + "import copy\nsecond = copy.copy(first)\n",
    "not_one.py": "problem = 'decay'\n",
    "refused.py": DECAY.replace("guess=1.0", "guess=-1.0"),
    "no_data.py": "import tgsr\n\nd = tgsr.read_data('none.csv', columns={'t': 't', 'u': 'u'})\n",
    "escape.py": "raise ValueError('\\x1b[31mred\\x07\\nsecond line')\n",
    "fails_in_residual.py": DECAY.replace("u.t + k * u", "u.t + k * u.no_such_thing()"),
    "truth.py": "print('hello')\n" + DECAY.replace('Truth({"k"', 'Truth({"q"'),
    "bytes.py": "x = '\udcff'\n",
    "nul.py": "x = 1\0\n",
    "points.csv": "t\n0.5\n",
    "text.csv": "t\n0.5\nwarm\n",
    "gap.csv": "t,q\n0.5,1\n,2\n",
    "other.csv": "time\n0.5\n",
    "weights.safetensors": "not weights",
    "weights.pt": "not weights",
}
MEANING = "--activation tanh --coordinates t --fields u"

# what is typed ({run}: a finished run), the exit code, what the line says
CASES = [
    ("solv decay.py", 2, "No such command 'solv'"),
    ("--colour", 2, "No such option"),
    ("solve", 2, "Missing argument"),
    ("solve decay.py more", 2, "unexpected extra argument"),
    ("solve decay.py --sed 1", 2, "No such option"),
    ("solve decay.py --seed one", 2, "'one' is not a valid integer"),
    ("solve decay.py --seed -1", 2, "-1 is not in the range"),
    ("solve decay.py --budget 0", 2, "0 is not in the range"),
    ("solve decay.py --threads 0", 2, "0 is not in the range"),
    ("solve decay.py --training worst", 2, "'worst' is not one of 'best', 'paper'"),
    ("solve decay.py --widths 6,x", 2, "not a list of whole numbers, as in 24,24,24"),
    ("solve decay.py --widths 0", 2, "widths"),
    ("solve decay.py --activation relu", 2, "no continuous second derivative"),
    ("solve decay.py --out decay.py", 1, "decay.py"),
    ("solve nowhere.py", 2, "nowhere.py: there is no such file"),
    ("solve .", 2, "is not a Python file"),
    ("solve points.csv", 2, "is not a Python file"),
    ("solve decay.py:", 2, "'' cannot be a variable"),
    ("solve decay.py:a-b", 2, "'a-b' cannot be a variable"),
    ("solve decay.py:other", 2, "other is not defined. Problems here: problem"),
    ("solve decay.py:truth", 2, "truth is not a tgsr.Problem"),
    ("solve syntax.py", 2, "syntax.py: line 4: SyntaxError: invalid syntax"),
    ("solve raises.py", 2, "raises.py: line 5: ZeroDivisionError: division by zero"),
    ("solve missing_module.py", 2, "line 2: ModuleNotFoundError: No module named 'no_such_module_at_all'"),
    ("solve exits.py", 2, "calls sys.exit"),
    ("solve none.py", 2, "defines no tgsr.Problem"),
    ("solve several.py", 2, "none is called problem: first, second. Choose one: several.py:first"),
    ("solve not_one.py", 2, "defines no tgsr.Problem"),
    ("solve refused.py", 2, "is not positive"),
    ("solve no_data.py", 2, "no_data.py: line 3: none.csv: there is no such file"),
    ("solve escape.py", 2, "ValueError: [31mred  second line"),
    ("solve fails_in_residual.py", 2, "fails_in_residual.py: line 6: "),
    ("solve bytes.py", 2, "SyntaxError"),
    ("solve nul.py", 2, "null byte"),
    ("transfer {run}", 2, "Missing argument"),
    ("transfer nowhere decay.py", 2, "nowhere: does not exist"),
    ("transfer points.csv decay.py", 2, "points.csv"),
    ("transfer {run} decay.py --method magic", 2, "there is no method 'magic'"),
    ("transfer {run} decay.py --method full --option q=1", 2, "method 'full' has no option 'q'"),
    ("transfer {run} decay.py --option gamma_min", 2, "is not key=value, as in gamma_min=0.3"),
    ("transfer {run} decay.py --option gamma_min=low", 2, "'low' is not a value for gamma_min"),
    ("transfer {run} decay.py --option gamma_min=7", 2, "outside its legal range"),
    ("transfer {run} decay.py --option kappa=1 --option kappa=2", 2, "'kappa' is given twice"),
    ("show", 2, "Missing argument"),
    ("show nowhere", 2, "nowhere: does not exist"),
    ("show decay.py", 2, "is not a folder"),
    ("show .", 2, "holds no run"),
    ("show {runs} --plot a.png", 2, "is a folder of runs, not a run"),
    ("show {run} --plot a.gif", 2, "a figure ends in .png, .svg, .pdf"),
    ("predict {run}", 2, "exactly one of --at, --points and --grid"),
    ("predict {run} --at t=0 --grid t=0:1:2", 2, "exactly one of"),
    ("predict {runs} --at t=0", 2, "is a folder of runs, not a run"),
    ("predict {run} --at t", 2, "is not key=value"),
    ("predict {run} --at t=0,t=1", 2, "'t' is given twice"),
    ("predict {run} --at x=0", 2, "--at names 'x', which is no coordinate. The coordinates are t"),
    ("predict {run} --at t=nan", 2, "'nan' in --at is not a finite number"),
    ("predict {run} --at t=0.5 --at t=2", 2, "row 2, 't': t = 2 is outside the problem's range 0 to 1"),
    ("predict {run} --grid t=0:1", 2, "is not low:high:count"),
    ("predict {run} --grid t=0:1:0", 2, "is not a number of points"),
    ("predict {run} --grid t=0:1:99999999999999999999", 2, "is not a number of points"),
    ("predict {run} --points nowhere.csv", 2, "there is no such file"),
    ("predict {run} --points decay.py", 2, "is no table of points"),
    ("predict {run} --points text.csv", 2, "text.csv, row 3"),
    ("predict {run} --points gap.csv", 2, "gap.csv, row 3, 't'"),
    ("predict {run} --points other.csv", 2, "other.csv"),
    ("predict {run} --at t=0 --output a.xlsx", 2, "is written as .csv or .npz"),
    ("predict {run} --at t=0 --output a.csv --json", 2, "--json or --output, not both"),
    ("predict {run} --at t=0 --output no/folder/a.csv", 1, "does not exist"),
    ("convert weights.safetensors out", 2, "Missing option '--activation'"),
    ("convert nowhere.safetensors out " + MEANING, 2, "nowhere.safetensors"),
    ("convert weights.safetensors out " + MEANING, 2, "weights.safetensors"),
    ("convert weights.pt out " + MEANING, 2, "PyTorch"),
    ("convert weights.safetensors decay.py " + MEANING, 2, "exists already"),
    ("convert weights.safetensors out --centre a " + MEANING, 2, "is not a list of numbers"),
    ("methods tgsr", 2, "unexpected extra argument"),
    ("doctor --fix", 2, "No such option"),
]


@pytest.fixture
def corner(tmp_path: Path) -> set[Path]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, errors="surrogateescape")
    return set(tmp_path.rglob("*"))


@pytest.mark.parametrize(("typed", "code", "says"), CASES, ids=[case[0].replace("/", "|") for case in CASES])
def test_one_line_and_the_right_code(
    typed: str, code: int, says: str, corner: set[Path], finished: Finished, invoke: Invoke, tmp_path: Path
) -> None:
    args = [arg.format(run=finished.run, runs=finished.run.parent) for arg in typed.split()]
    answer = invoke(*args)
    assert says in answer.stderr
    assert answer.exit_code == code
    assert answer.stdout == ""
    assert re.fullmatch(r"error: [^\n]{5,1500}\n", answer.stderr)
    assert all(c.isprintable() for c in answer.stderr[:-1])
    written = set(tmp_path.rglob("*")) - corner
    assert not [path for path in written if path.parts[len(tmp_path.parts)] not in ("runs", "__pycache__")]
    assert not list(tmp_path.glob("runs/*/result.json"))


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 70


def test_an_argument_that_drives_terminals(invoke: Invoke) -> None:
    for args in (("solve", "\x1b[2J.py"), ("\x1b[2J",), ("show", "a\x00b"), ("solve", "x" * 5000 + ".py")):
        answer = invoke(*args)
        assert answer.exit_code == 2
        assert answer.stderr.count("\n") == 1
        assert "\x1b" not in answer.output


def test_a_truth_that_does_not_fit_costs_no_result(corner: set[Path], invoke: Invoke) -> None:
    """And what the user's file prints stays out of the JSON."""
    answer = invoke("solve", "truth.py", "--widths", "3", "--budget", "5", "--no-save", "--json")
    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["unknowns"]["k"]["value"] > 0
    assert answer.stderr.startswith("hello\n")
    assert "the truth names 'q'" in answer.stderr


def test_traceback_on_request(corner: set[Path], invoke: Invoke) -> None:
    answer = invoke("solve", "raises.py", "--traceback")
    assert answer.exit_code == 2
    assert "return 1 / 0" in answer.stderr
    assert answer.stderr.splitlines()[-1].startswith("error: ")


def test_our_own_mistakes_are_called_so(finished: Finished, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("tgsr._runs.load", broken)
    answer = invoke("show", finished.run)
    assert answer.exit_code == 1
    assert answer.stderr == (
        "internal error: KeyError: 'surprise'. Give the same command with --traceback to see where.\n"
    )
    assert "in broken" in invoke("show", finished.run, "--traceback").stderr


def test_a_missing_library_is_an_installation_error(
    finished: Finished, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(path: Path) -> None:
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    monkeypatch.setattr("tgsr._runs.load", missing)
    answer = invoke("show", finished.run)
    assert answer.exit_code == 3
    assert "tgsr doctor" in answer.stderr


def test_threads_cannot_change_once_computing_has_begun(finished: Finished, invoke: Invoke) -> None:
    answer = invoke("solve", finished.file, *SMALL, "--threads", "17", "--no-save")
    assert answer.exit_code == 3
    assert "thread count" in answer.stderr


def test_ctrl_c_before_anything(finished: Finished, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tgsr._runs.load", interrupted)
    answer = invoke("show", finished.run)
    assert answer.exit_code == 130
    assert f"To go on: tgsr show {finished.run}" in answer.stderr
