"""One kept child per worker: how runs end in it, who survives whom, and what is counted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from worker_cases import COMMAND, new_run, new_study, starts_of

from tgsr._errors import InputError, InstallationError
from tgsr._runs import load
from tgsr.storage import RunDirectory, RunLockedError
from tgsr.study import _child, _slot, run_one
from tgsr.study._attempts import Attempts, attempts_of, forget_starts, forgive, starting
from tgsr.study._child import run_directory
from tgsr.study._slot import close_idle, own_slot

carried_out = partial(run_directory, command=COMMAND)
PATH = os.pathsep.join([str(Path(__file__).parent), *map(os.path.abspath, sys.path)])


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Path]:
    yield new_study(tmp_path / "tiny")
    close_idle()


def gone(pid: int, within: float = 5.0) -> bool:
    """Whether a process ends within some seconds (a zombie has ended)."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


def until(condition, within: float = 20.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def test_a_child_is_kept_and_has_its_threads_set(study: Path) -> None:
    runs = [new_run(study, seed=seed) for seed in range(3)]
    assert [carried_out(run, threads=1) for run in runs[:2]] == ["finished"] * 2
    assert carried_out(runs[2], threads=2) == "finished"
    starts = [starts_of(run)[0] for run in runs]
    assert starts[0]["pid"] == starts[1]["pid"] != starts[2]["pid"]
    assert [start["threads"] for start in starts] == ["1", "1", "2"]
    assert all(start["leader"] for start in starts)


@pytest.mark.parametrize(("name", "value"), [("RUNS", 2), ("MEMORY", 1)])
def test_a_worn_child_is_replaced(study: Path, name: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_slot, name, value)
    runs = [new_run(study, seed=seed) for seed in range(3)]
    for run in runs:
        carried_out(run)
    pids = [starts_of(run)[0]["pid"] for run in runs]
    assert len(set(pids)) == (2 if name == "RUNS" else 3)
    assert gone(pids[0])


ENDS = [
    # what the run does, its state, its starts, the outcome on disk, a word of the sentence
    ({"do": "finish"}, "finished", 1, None, ""),
    ({"do": "fail"}, "failed", 1, "diverged", "The loss grew"),
    ({"do": "die", "times": 2}, "finished", 3, None, ""),
    ({"do": "die"}, "crashed", 3, "crashed", "started 3 times.*SIGKILL.*the last words.*Memory"),
    ({"do": "die", "how": "exit"}, "crashed", 3, "crashed", "exit code 7"),
    ({"do": "die_after"}, "finished", 1, None, ""),
    ({"do": "raising"}, "failed", 1, "failed", "ValueError: not like this"),
    ({"do": "raising", "what": "SystemExit"}, "failed", 1, "failed", "SystemExit"),
    ({"do": "raising", "what": "MemoryError"}, "crashed", 3, "crashed", "ran out of memory"),
    ({"do": "talk"}, "finished", 1, None, ""),
    ({"do": "hang"}, "timeout", 1, "timeout", "time limit of 0.6 seconds"),
]


@pytest.mark.parametrize(("spec", "state", "starts", "outcome", "words"), ENDS, ids=lambda v: str(v)[:30])
def test_how_a_run_ends(study: Path, spec: dict, state: str, starts: int, outcome: str | None, words: str) -> None:
    run = new_run(study, **spec)
    limit = 0.6 if spec["do"] == "hang" else 60.0
    assert carried_out(run, attempts=3, time_limit=limit) == state
    assert len(starts_of(run)) == starts
    failure = RunDirectory(run).failure()
    assert (failure and failure["outcome"]) == outcome
    if failure is not None:
        assert re.search(words, failure["sentence"])
    assert RunDirectory(run).status().state == ("failed" if outcome else "finished")
    # what is left in failures/: nothing of runs that ended in order at once, the count of the others
    kept = study / "failures" / f"{run.name}.json"
    assert kept.exists() == (starts > 1 or state == "timeout")
    assert attempts_of(run).attempts == (starts if kept.exists() else 0)
    assert carried_out(new_run(study, seed=1)) == "finished"  # and the next one is well


def test_a_crashed_run_is_not_started_again_until_it_is_forgiven(study: Path) -> None:
    run = new_run(study, "die", times=3)
    assert carried_out(run, attempts=2) == "crashed"
    assert carried_out(run, attempts=2) == "crashed"
    assert len(starts_of(run)) == 2
    assert forgive(run)
    assert RunDirectory(run).status().state == "new"
    assert carried_out(run, attempts=2) == "finished"
    assert not forgive(run) or attempts_of(run) == Attempts()


def test_a_crashed_run_has_no_result_and_says_so(study: Path) -> None:
    run = new_run(study, "die")
    carried_out(run, attempts=1)
    with pytest.raises(InputError, match=r"left no result \(crashed: The run was started once.*tgsr study resume"):
        load(run)


def test_a_failure_of_the_computation_is_not_forgiven(study: Path) -> None:
    run = new_run(study, "fail")
    carried_out(run)
    assert not forgive(run)
    assert RunDirectory(run).status().state == "failed"


def test_starts_that_a_killed_study_left_are_no_fault_of_the_run(study: Path) -> None:
    run = new_run(study)
    assert [starting(run), starting(run)] == [1, 2]
    forget_starts(run)
    assert attempts_of(run) == Attempts()


def test_a_count_that_cannot_be_read_begins_again(study: Path) -> None:
    run = new_run(study)
    starting(run)
    (study / "failures" / f"{run.name}.json").write_text("{}")
    assert attempts_of(run) == Attempts()
    assert carried_out(run) == "finished"


def test_outside_a_study_starts_are_counted_in_the_process(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "alone", "tiny", {"do": "die"}, b"", b"", 0).path
    assert carried_out(run, attempts=2) == "crashed"
    assert attempts_of(run).attempts == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alone"]
    assert forgive(run)
    assert attempts_of(run) == Attempts()


def test_a_time_limit_also_ends_what_the_run_has_started(study: Path) -> None:
    run = new_run(study, "hang", helper=True)
    assert carried_out(run, time_limit=1.0) == "timeout"
    helper = next(line["pid"] for line in RunDirectory(run).read_log() if line["event"] == "helper")
    assert gone(helper)


def test_no_child_outlives_its_parent_even_in_the_midst_of_a_run(study: Path) -> None:
    run = new_run(study, "hang", helper=True)
    code = f"from tgsr.study._child import run_directory; run_directory({str(run)!r}, command={COMMAND!r})"
    with subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": PATH}) as parent:
        until(lambda: any(line["event"] == "helper" for line in RunDirectory(run).read_log()))
        pid = starts_of(run)[0]["pid"]
        helper = next(line["pid"] for line in RunDirectory(run).read_log() if line["event"] == "helper")
        assert (run / "lock").exists()
        parent.kill()
    assert gone(pid)
    assert gone(helper)
    assert not (run / "lock").exists()  # another host could not see that its holder is gone
    assert attempts_of(run) == Attempts(1, "started")


def test_a_child_ends_with_its_thread(study: Path) -> None:
    run = new_run(study)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(carried_out, run).result() == "finished"
    assert gone(starts_of(run)[0]["pid"])


def test_a_locked_run_is_waited_for(study: Path) -> None:
    run = new_run(study)
    with RunDirectory(run).lock():
        waiting = threading.Timer(0.5, os.unlink, [run / "lock"])
        waiting.start()
        assert carried_out(run) == "finished"
    assert attempts_of(run) == Attempts()


def test_a_run_that_stays_locked_is_an_error_that_names_the_process(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_child, "LOCK_PATIENCE", 0.3)
    run = new_run(study)
    with RunDirectory(run).lock(), pytest.raises(RunLockedError, match=f"process {os.getpid()} on .* Wait for it"):
        carried_out(run)
    assert starts_of(run) == []


def test_a_directory_that_is_not_there(study: Path) -> None:
    with pytest.raises(InputError, match="every worker needs the study's folder under the same path"):
        carried_out(study / "runs" / "nothing")


def test_a_child_that_cannot_start_is_a_broken_installation_not_a_crash_of_the_run(study: Path) -> None:
    run = new_run(study)
    command = (sys.executable, "-c", "import a_package_that_is_not_there")
    with pytest.raises(InstallationError, match="No module named 'a_package_that_is_not_there'"):
        run_directory(run, command=command)
    with pytest.raises(InstallationError, match="could not be started"):
        run_directory(run, command=("/no/such/python",))
    with pytest.raises(InstallationError, match="in a row were killed"):
        run_directory(run, command=(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"))
    assert attempts_of(run) == Attempts()


def test_a_child_that_was_killed_while_idle_is_replaced(study: Path) -> None:
    runs = [new_run(study, seed=seed) for seed in range(2)]
    carried_out(runs[0])
    child = own_slot().child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: not child.alive)
    assert carried_out(runs[1]) == "finished"
    assert attempts_of(runs[1]) == Attempts()


def test_the_command_for_shells(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_child, "run_directory", carried_out)
    good, bad, dying = new_run(study), new_run(study, "fail"), new_run(study, "die", times=2)
    assert run_one.main([str(good)]) == 0
    assert run_one.main([str(good), str(bad)]) == 1
    assert run_one.main([str(study / "nothing"), str(good)]) == 2
    assert run_one.main(["--attempts", "2", str(dying)]) == 1
    assert run_one.main(["--attempts", "2", "--again", str(dying)]) == 0
    with pytest.raises(SystemExit, match="2"):
        run_one.main([])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{good}: finished"
    assert lines[2] == f"{bad}: failed: The loss grew."
    assert "there is no run directory here" in lines[3]
    assert "crashed: The run was started 2 times" in lines[5]


def test_what_a_batch_system_sends_before_it_kills_saves_a_checkpoint(study: Path) -> None:
    run = new_run(study, "count")
    code = (
        "import sys; from functools import partial; from tgsr.study import _child, run_one\n"
        f"_child.run_directory = partial(_child.run_directory, command={COMMAND!r})\n"
        f"sys.exit(run_one.main([{str(run)!r}]))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": PATH}, stdout=subprocess.PIPE, text=True
    ) as process:
        until(lambda: starts_of(run))
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in said
    assert RunDirectory(run).status().state == "interrupted"
    assert attempts_of(run) == Attempts()
    assert gone(starts_of(run)[0]["pid"])
