"""`tgsr study` and `tgsr reproduce`: what they print, what they leave, and how they exit."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_cases import COMMAND, DECAY, ENVIRONMENT, Invoke

from tgsr.study import Arm, StudyTask

STUDY = """
name = "decays"
methods = ["scratch", "full"]
seeds = 1
network = [4]
[training]
optimiser = { name = "l-bfgs", epochs = 2, inner = 5, history = 5 }
[source]
training = { optimiser = { name = "l-bfgs", epochs = 2, inner = 5, history = 5 } }
[[task]]
name = "decay"
file = "decay.py"
source = "warm.py"
"""


def write_study(folder: Path) -> Path:
    (folder / "decay.py").write_text(DECAY)
    (folder / "warm.py").write_text(DECAY.replace("-1.5", "-1.2").replace('"decay"', '"warm"'))
    (folder / "decays.toml").write_text(STUDY)
    return folder / "decays.toml"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Path:
    """A finished study; tests that change it take a copy."""
    home = tmp_path_factory.mktemp("study")
    spec = write_study(home)
    answer = invoke("study", "run", spec, "--jobs", 0, "--out", home / "studies")
    assert answer.exit_code == 0, answer.output
    assert "3 runs finished, 0 failed" in answer.stdout
    assert "3 of 3" in answer.stderr
    return home


def test_running_again_runs_nothing(invoke: Invoke, study: Path) -> None:
    for given in (study / "decays.toml", study / "studies" / "decays"):
        answer = invoke("study", "run", given, "--jobs", 0, "--out", study / "studies")
        assert answer.exit_code == 0
        assert answer.stderr == ""


def test_status_in_words_and_as_json(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    answer = invoke("study", "status", study / "decays.toml", "--out", study / "studies")
    assert answer.exit_code == 0
    assert "decays: 3 of 3 runs have ended" in answer.stdout
    shutil.copytree(study, tmp_path / "copy")
    folder = tmp_path / "copy" / "studies" / "decays"
    shutil.rmtree(next((folder / "runs").iterdir()))
    found = json.loads(invoke("study", "status", folder, "--json").stdout)
    assert (found["runs"], found["finished"], found["missing"], found["coordinator"]) == (3, 2, 1, None)
    assert found["seconds_left"] > 0
    words = invoke("study", "status", folder).stdout
    assert "To go on: tgsr study run" in words
    assert "Nobody runs it now" in words


def test_status_loads_nothing_that_computes(study: Path) -> None:
    code = (
        "import sys\nfrom tgsr.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit as leave:\n"
        "    assert leave.code == 0\nassert 'jax' not in sys.modules"
    )
    args = ["study", "status", str(study / "studies" / "decays")]
    subprocess.run([sys.executable, "-c", code, *args], env=ENVIRONMENT, capture_output=True, check=True)


def test_verify_says_what_is_damaged_and_the_next_run_makes_it_good(
    invoke: Invoke, study: Path, tmp_path: Path
) -> None:
    shutil.copytree(study, tmp_path / "copy")
    folder = tmp_path / "copy" / "studies" / "decays"
    answer = invoke("study", "verify", folder)
    assert answer.exit_code == 0
    assert "3 runs" in answer.stdout
    assert "all verify" in answer.stdout
    file = next((folder / "runs").glob("*/history.npz"))
    file.write_bytes(file.read_bytes()[:-1])
    answer = invoke("study", "verify", folder)
    assert answer.exit_code == 1
    assert "history.npz was changed" in answer.stdout
    assert json.loads(invoke("study", "verify", folder, "--json").stdout)["problems"]
    assert invoke("study", "run", folder, "--jobs", 0).exit_code == 0
    assert invoke("study", "verify", folder).exit_code == 0


def test_what_a_run_prints_as_json(invoke: Invoke, study: Path) -> None:
    found = json.loads(invoke("study", "run", study / "studies" / "decays", "--jobs", 0, "--json").stdout)
    assert (found["finished"], found["failed"], found["missing"]) == (3, 0, 0)
    assert found["records"][0]["role"] == "source"


def test_the_report(invoke: Invoke, study: Path, tmp_path: Path) -> None:
    folder = study / "studies" / "decays"
    answer = invoke("study", "report", folder)
    assert answer.exit_code == 0, answer.output
    assert "decay" in (folder / "report.html").read_text()
    answer = invoke("study", "report", folder, "--format", "csv", "--output", tmp_path / "tables")
    assert answer.exit_code == 0, answer.output
    assert list((tmp_path / "tables").rglob("*.csv"))


def test_a_failed_run_is_exit_code_1(invoke: Invoke, tmp_path: Path) -> None:
    spec = write_study(tmp_path)
    (tmp_path / "decay.py").write_text(DECAY.replace("u.t + k * u", "u.t + k * u.nothing"))
    (tmp_path / "decays.toml").write_text(STUDY.replace('["scratch", "full"]', '["scratch"]'))
    answer = invoke("study", "run", spec, "--jobs", 0, "--quiet")
    assert answer.exit_code == 1
    assert "0 runs finished, 1 failed" in answer.stdout
    assert "failed: decay, scratch, seed 0" in answer.stdout
    assert invoke("study", "status", "studies/decays").stdout.count("failed: decay, scratch, seed 0") == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "nothing.toml"], "there is no such file or folder"),
        (["run", "."], "holds no study.toml"),
        (["run", "bad.toml"], "bad.toml, 'metods'"),
        (["status", "good.toml"], "holds no study.toml"),
        (["status", "mapping"], "holds no study.toml"),  # a study that ships, and has not been run
        (["verify", "\x01"], "there is no such file or folder"),
        (["run", "good.toml", "--scheduler", "tcp://192.0.2.1:8786"], "neither encrypted nor on this machine"),
        (["run", "good.toml", "--scheduler", "tls://127.0.0.1:1", "--scheduler-file", "x"], "Give one of them"),
        (["resume", "broken.toml"], "line 2"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(invoke: Invoke, tmp_path: Path, args: list[str], said: str) -> None:
    (tmp_path / "bad.toml").write_text('name = "bad"\nmetods = ["full"]\n')
    (tmp_path / "good.toml").write_text('name = "good"\ntasks = ["boundary-layer"]\nmethods = ["scratch"]\nseeds = 1\n')
    (tmp_path / "broken.toml").write_text(STUDY)
    (tmp_path / "decay.py").write_text("x = 1\n1 / 0\n")
    (tmp_path / "warm.py").write_text(DECAY)
    answer = invoke("study", *args)
    assert answer.exit_code == 2, answer.output
    assert said in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert not list(tmp_path.glob("studies/*/runs/*"))


def test_processes_of_this_machine_run_a_users_file_with_its_own_data(tmp_path: Path) -> None:
    spec = write_study(tmp_path)
    text = DECAY.replace(
        'data=[tgsr.Data({"t": t}, {"u": 2.0 * np.exp(-1.5 * t)}, noise=0.01)]',
        'data=[tgsr.read_data("readings.csv", columns={"t": "s", "u": "V"}, noise=0.01)]',
    )
    assert "readings.csv" in text
    (tmp_path / "decay.py").write_text(text)
    rows = "\n".join(f"{t / 10},{2.0 * 0.22 ** (t / 10)}" for t in range(11))
    (tmp_path / "readings.csv").write_text(f"s,V\n{rows}\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = subprocess.run(
        [*COMMAND, "study", "run", str(spec), "--jobs", "1", "--json"],
        cwd=elsewhere, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [record["ok"] for record in found["records"]] == [True] * 3
    assert {record["environment"]["threads"] for record in found["records"]} == {1}
    assert (elsewhere / "studies" / "decays" / "index.parquet").exists()


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    spec = write_study(tmp_path)
    child = subprocess.Popen(
        [*COMMAND, "study", "run", str(spec), "--jobs", "1"],
        cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + 120
    while not list(tmp_path.glob("studies/*/sources/*/spec.json")) and time.monotonic() < end:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130, said
    assert "To go on:" in said
    assert f"study run {spec} --jobs 1" in said


def test_reproduce_is_one_study_of_the_papers_methods(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def kept(study: object, **how: object) -> object:
        asked.append((study, how))
        raise KeyboardInterrupt

    monkeypatch.setattr("tgsr.study._run.run_study", kept)
    assert invoke("reproduce", "boundary-layer", "--seeds", 2, "--profile", "smoke").exit_code == 130
    assert invoke("reproduce", "--methods", "scratch,full", "--output", tmp_path / "out").exit_code == 130
    first, second = (study for study, _ in asked)
    assert len(first.methods) == 9
    assert first.tasks == (StudyTask("boundary-layer"),)
    assert first.arms == (Arm("tgsr", "tgsr, no readings", observations=(0,)),)
    assert (first.name, first.seeds, first.profile) == ("reproduction-smoke", (0, 1), "smoke")
    assert (len(second.tasks), len(second.seeds), second.methods, second.arms) == (5, 10, ("scratch", "full"), ())
    assert [how["folder"].path.name for _, how in asked] == ["reproduction-smoke", "out"]
    assert invoke("reproduce", "nothing").exit_code == 2
    assert invoke("reproduce", "--methods", "nothing").exit_code in (2, 130)


def test_reproduce_writes_one_report(invoke: Invoke, tmp_path: Path) -> None:
    args = ["reproduce", "boundary-layer", "--profile", "smoke", "--seeds", 1, "--methods", "scratch", "--jobs", 0]
    answer = invoke(*args, "--output", tmp_path / "out", "--json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["finished"] == 1
    page = (tmp_path / "out" / "report.html").read_text()
    assert "boundary-layer" in page
    assert "smoke" in page
