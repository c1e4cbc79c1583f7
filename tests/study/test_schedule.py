"""The schedule: order, bounds, what becomes of the others when a run fails, and Ctrl-C."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worker_cases import COMMAND, new_run, new_study, starts_of, trained

from tgsr._errors import InputError, InstallationError, StorageError
from tgsr.storage import RunDirectory, RunLockedError, read_arrays
from tgsr.study import _executors, _schedule
from tgsr.study._attempts import attempts_of, starting
from tgsr.study._schedule import Event, Job, run_jobs
from tgsr.study._slot import close_idle

PATH = os.pathsep.join([str(Path(__file__).parent), *map(os.path.abspath, sys.path)])


class Instant:
    """Workers that end every run at once, in a thread of their own, as they are told."""

    def __init__(self, slots: int = 4, ends: dict[str, Any] | None = None) -> None:
        self.width, self.ends = slots, ends or {}
        self.under_way = self.most = 0
        self.asked: list[str] = []
        self.stopped: list[str] = []
        self.futures: weakref.WeakSet[Future[str]] = weakref.WeakSet()
        self.most_futures = 0

    def slots(self) -> int:
        return self.width

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Future[str]:
        self.asked.append(path)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        future: Future[str] = Future()
        self.futures.add(future)
        self.most_futures = max(self.most_futures, len(self.futures))
        end = self.ends.get(Path(path).name, "finished")
        if isinstance(end, list):
            end = end.pop(0)
        future.set_exception(end) if isinstance(end, BaseException) else future.set_result(end)
        return future

    def release(self, future: Any) -> None:
        self.under_way -= 1

    def excuses(self, error: Exception) -> bool:
        return isinstance(error, ConnectionError)

    def stop(self, paths: Collection[str], futures: Collection[Any]) -> None:
        self.stopped += paths


def job(key: str, *needs: str) -> Job:
    return Job(key, needs, lambda: Path("/nowhere") / key)


def test_a_run_begins_when_those_it_needs_are_finished() -> None:
    there = Instant(1)
    jobs = [job("d", "b", "c"), job("b", "a"), job("c", "a"), job("a")]
    ends = run_jobs(jobs, there)
    assert [Path(path).name for path in there.asked] == ["a", "b", "c", "d"]
    assert list(ends) == ["d", "b", "c", "a"]
    assert {end.state for end in ends.values()} == {"finished"}


@pytest.mark.parametrize("state", ["failed", "crashed", "timeout", StorageError("the disk is gone")])
def test_what_needs_a_failed_run_is_blocked_with_a_sentence(state: Any) -> None:
    events: list[Event] = []
    jobs = [job("source"), job("target", "source"), job("further", "target"), job("other")]
    ends = run_jobs(jobs, Instant(ends={"source": state}), on_event=events.append)
    assert ends["source"].state == ("refused" if isinstance(state, Exception) else state)
    assert ends["target"].state == ends["further"].state == "blocked"
    assert ends["target"].sentence.startswith("source did not finish, and this run starts from it")
    assert ends["other"].state == "finished"
    assert [e.key for e in events if e.state not in ("submitted", "finished")] == ["source", "target", "further"]
    if isinstance(state, Exception):
        assert ends["source"].sentence == "the disk is gone."


def test_directories_are_made_late_and_may_be_refused_or_not_needed() -> None:
    made: list[str] = []

    def directory(key: str) -> Path | None:
        made.append(key)
        if key == "bad":
            raise InputError("the file has changed")
        return None if key == "done" else Path("/nowhere") / key

    there = Instant(1)
    jobs = [Job(key, (), partial(directory, key)) for key in ("bad", "done", "one", "two")]
    first = threading.Event()
    ends = run_jobs(jobs, there, on_event=lambda event: event.key != "one" or first.set() or made.append("-"))
    assert made.index("-") < made.index("two")  # not before a place was free
    assert ends["bad"] == Event("bad", "refused", sentence="the file has changed.")
    assert ends["done"].state == "finished"
    assert len(there.asked) == 2


def test_ten_thousand_runs_are_handed_over_a_few_at_a_time_and_forgotten() -> None:
    there = Instant(8)
    began = time.perf_counter()
    ends = run_jobs((job(f"run-{i}") for i in range(10_000)), there)
    assert len(ends) == 10_000
    assert there.most <= 8
    gc.collect()
    assert there.most_futures < 64
    assert len(there.futures) <= 1
    assert time.perf_counter() - began < 20


def test_a_lost_worker_costs_another_start_but_not_for_ever() -> None:
    lost = ConnectionError("gone")
    there = Instant(ends={"once": [lost, "finished"], "always": [lost] * 10})
    ends = run_jobs([job("once"), job("always")], there, attempts=3)
    assert ends["once"].state == "finished"
    assert (ends["always"].state, ends["always"].sentence) == ("refused", "ConnectionError: gone")
    assert [Path(path).name for path in there.asked].count("always") == 3


def test_a_broken_installation_ends_everything() -> None:
    there = Instant(2, {"a": InstallationError("the canary failed")})
    with pytest.raises(InstallationError, match="the canary failed"):
        run_jobs([job("a"), *(job(f"b{i}") for i in range(50))], there)
    assert len(there.asked) < 50
    with pytest.raises(InstallationError, match="no compiler"):
        run_jobs([Job("a", (), lambda: (_ for _ in ()).throw(InstallationError("no compiler")))], there)


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([job("a"), job("a")], "two jobs are called 'a'"),
        ([job("a", "b")], "'a' needs 'b', which is no job"),
        ([job("a", "b"), job("b", "a"), job("c")], "'a' needs itself"),
    ],
)
def test_jobs_that_make_no_sense(jobs: list[Job], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_jobs(jobs, Instant())


def test_a_locked_run_is_tried_again_when_its_lock_goes_and_given_up_when_only_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_schedule, "LOCK_PATIENCE", 1.5)
    study = new_study(tmp_path / "tiny")
    soon, never = new_run(study, seed=0), new_run(study, seed=1)
    locked = RunLockedError("process 1 on here is working on this run")
    there = Instant(ends={soon.name: [locked, "finished"], never.name: locked})
    with RunDirectory(soon).lock(), RunDirectory(never).lock():
        threading.Timer(0.5, os.unlink, [soon / "lock"]).start()
        ends = run_jobs([Job("soon", (), lambda: soon), Job("never", (), lambda: never)], there)
    assert ends["soon"].state == "finished"
    assert (ends["never"].state, ends["never"].sentence) == ("refused", f"{locked}")
    assert len(there.asked) == 3


def study_of(tmp_path: Path, **specs: dict[str, Any]) -> tuple[Path, dict[str, Path], list[Job]]:
    study = new_study(tmp_path / "tiny")
    runs = {key: new_run(study, seed=seed, **spec) for seed, (key, spec) in enumerate(specs.items())}
    return study, runs, [Job(key, (), partial(Path, run)) for key, run in runs.items()]


EXECUTORS = {
    "jobs": lambda: {"jobs": 2},
    "threads": lambda: {"executor": ThreadPoolExecutor(2)},
    "processes": lambda: {"executor": ProcessPoolExecutor(2, get_context("spawn"))},
}


@pytest.mark.parametrize("kind", EXECUTORS)
def test_every_executor_does_the_same(tmp_path: Path, kind: str) -> None:
    specs = {"one": {}, "two": {"do": "die", "times": 1}, "three": {"do": "fail"}, "four": {"do": "hang"}}
    _, runs, jobs = study_of(tmp_path, **specs)
    jobs[3] = Job("four", (), jobs[3].directory, time_limit=0.5)
    where = EXECUTORS[kind]()
    with _executors.workers(command=COMMAND, **where) as there:
        ends = run_jobs(jobs, there)
    assert [end.state for end in ends.values()] == ["finished", "finished", "failed", "timeout"]
    assert ends["three"].sentence == "The loss grew."
    assert attempts_of(runs["two"]).attempts == 2
    if "executor" in where:
        where["executor"].shutdown()
    close_idle()


def test_a_starts_count_of_a_killed_study_is_not_held_against_a_run(tmp_path: Path) -> None:
    _, runs, jobs = study_of(tmp_path, one={})
    for _ in range(5):
        starting(runs["one"])
    with _executors.workers(jobs=1, command=COMMAND) as there:
        assert run_jobs(jobs, there, attempts=2)["one"].state == "finished"


def test_children_that_are_killed_all_the_time_lose_nothing(tmp_path: Path) -> None:
    _, runs, jobs = study_of(tmp_path, **{f"run{i}": {"do": "train"} for i in range(20)})
    kills = 0
    over = threading.Event()

    def kill() -> None:
        nonlocal kills
        chance = random.Random(0)
        while kills < 10 and not over.wait(chance.uniform(0.2, 0.6)):
            busy = [slot.child for slot in there.own if slot.run and slot.child and slot.child.ready]
            with suppress(ProcessLookupError, IndexError):  # it ended just now, or none is busy
                os.kill(chance.choice(busy).pid, signal.SIGKILL)
                kills += 1

    with _executors.workers(jobs=2, command=COMMAND) as there:
        killer = threading.Thread(target=kill)
        killer.start()
        ends = run_jobs(jobs, there, attempts=20)
        over.set()
        killer.join()
    assert {end.state for end in ends.values()} == {"finished"}
    assert kills >= 3
    assert sum(len(starts_of(run)) - 1 for run in runs.values()) <= kills
    assert sum(max(0, attempts_of(run).attempts - 1) for run in runs.values()) <= kills
    for run in runs.values():
        assert RunDirectory(run).verify() == []
        assert np.array_equal(read_arrays(run / "weights.npz")["weights"], trained(RunDirectory(run).seed))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"jobs": 0}, "jobs is '0'"),
        ({"executor": ThreadPoolExecutor, "scheduler": "tls://x:1"}, "executor and scheduler say different things"),
        ({"executor": 7}, "'7' is no executor"),
    ],
)
def test_places_that_make_no_sense(where: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words), _executors.workers(**where):
        pass


def test_an_executor_that_lost_a_process_is_told_apart_from_a_run_that_failed(tmp_path: Path) -> None:
    _, runs, jobs = study_of(tmp_path, one={"do": "hang"})
    pool = ProcessPoolExecutor(1, get_context("spawn"))
    killer = threading.Thread(target=kill_when_begun, args=(runs["one"], pool))
    killer.start()
    gave_up = pytest.raises(InputError, match="the executor gave up")
    with pool, _executors.workers(executor=pool, command=COMMAND) as there, gave_up:
        run_jobs(jobs, there)
    killer.join()


def kill_when_begun(run: Path, pool: ProcessPoolExecutor) -> None:
    while not starts_of(run):
        time.sleep(0.02)
    for process in list(pool._processes.values()):
        process.kill()


COORDINATOR = """
import sys
from functools import partial
from pathlib import Path
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from worker_cases import COMMAND
from tgsr.study._executors import workers
from tgsr.study._schedule import Job, run_jobs
if __name__ == "__main__":
    kind, *runs = sys.argv[1:]
    where = {"jobs": lambda: {"jobs": 2}, "threads": lambda: {"executor": ThreadPoolExecutor(2)},
             "processes": lambda: {"executor": ProcessPoolExecutor(2, get_context("spawn"))}}[kind]()
    jobs = [Job(run, (), partial(Path, run)) for run in runs]
    try:
        with workers(command=COMMAND, **where) as there:
            run_jobs(jobs, there)
    except KeyboardInterrupt:
        print("interrupted")
"""


@contextmanager
def coordinator(tmp_path: Path, kind: str, runs: Collection[Path]) -> Iterator[subprocess.Popen[str]]:
    script = tmp_path / "coordinator.py"
    script.write_text(COORDINATOR)
    command = [sys.executable, str(script), kind, *map(str, runs)]
    environment = os.environ | {"PYTHONPATH": PATH}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            begun(runs, 2)
            time.sleep(0.2)
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes of its pool


def begun(runs: Collection[Path], count: int) -> None:
    end = time.monotonic() + 20
    while sum(bool(starts_of(run)) for run in runs) < count:
        assert time.monotonic() < end, "the runs never began"
        time.sleep(0.02)


@pytest.mark.parametrize("kind", EXECUTORS)
def test_ctrl_c_saves_what_is_under_way_and_the_same_again_goes_on(tmp_path: Path, kind: str) -> None:
    study, runs, jobs = study_of(tmp_path, **{f"run{i}": {"do": "count"} for i in range(4)})
    with coordinator(tmp_path, kind, runs.values()) as process:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert "interrupted" in said
    states = [RunDirectory(run).status().state for run in runs.values()]
    assert set(states) == {"interrupted", "new"}
    assert states.count("interrupted") >= 2  # a pool of processes takes some ahead
    saved = [RunDirectory(run).load_checkpoint() for run in runs.values()]
    assert not any(attempts_of(run).attempts for run in runs.values())
    (study / "go").touch()
    with _executors.workers(jobs=2, command=COMMAND) as there:
        ends = run_jobs(jobs, there)
    assert {end.state for end in ends.values()} == {"finished"}
    for run, before in zip(runs.values(), saved, strict=True):
        assert RunDirectory(run).result()["number"] == (0 if before is None else before.meta["number"])


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    _, runs, _ = study_of(tmp_path, **{f"run{i}": {"do": "count", "deaf": True} for i in range(2)})
    with coordinator(tmp_path, "jobs", runs.values()) as process:
        process.send_signal(signal.SIGINT)
        time.sleep(0.7)
        assert process.poll() is None
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert time.monotonic() - began < 5
    for run in runs.values():
        assert RunDirectory(run).status().state == "new"
