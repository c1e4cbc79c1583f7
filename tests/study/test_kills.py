"""`kill -9` at random instants, serial, local and on a cluster: nothing finished is lost, and the bits are the same.

Once with studies that train for real, once with runs that only save and commit (many more instants of those in the same
time). They take half an hour: `pytest -m slow tests/study/test_kills.py -n0 -s` shows the counts.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from real_cases import finished_runs, runs_of, weights_of, write_real_study

from tgsr.storage import RunDirectory

pytestmark = [pytest.mark.slow, pytest.mark.timeout(4 * 3600)]
SEEDS, EPOCHS, RUNS = 10, 60, 20
KILLS = int(os.environ.get("TGSR_TEST_KILLS", "200"))
PATH = os.pathsep.join([str(Path(__file__).parent), *map(os.path.abspath, sys.path)])

# Checkpoints every 15 seconds would leave runs of a second without any.
CHILD = """
import tgsr.training._keeper
tgsr.training._keeper.SAVE_EVERY = 0.2
from tgsr.study.run_one import serve
serve()
"""
TRAINING = """
import json, sys
import tgsr.training._keeper
from tgsr.study import _executors, read_study, run_study
tgsr.training._keeper.SAVE_EVERY = 0.2
_executors.workers.__wrapped__.__kwdefaults__["command"] = (sys.executable, "child.py")
run_study(read_study("layer.toml"), out=sys.argv[1], **json.loads(sys.argv[2]))
"""
SAVING = """
import json, sys
from functools import partial
from pathlib import Path
from tgsr.storage import RunDirectory
from tgsr.study._executors import workers
from tgsr.study._schedule import Job, run_jobs
from worker_cases import carry_out, new_run, new_study
study, where = Path(sys.argv[1], "layer"), json.loads(sys.argv[2])
if not (study / "study.toml").exists():
    new_study(study)
runs = [new_run(study, "train", seed) for seed in range(20)]
if where.get("jobs") == 0:
    [carry_out(str(run)) for run in runs if RunDirectory(run).status().state != "finished"]
else:
    jobs = [Job(run.name, (), partial(Path, run)) for run in runs]
    with workers(folder=study, command=(sys.executable, "child.py"), **where) as there:
        ends = run_jobs(jobs, there, attempts=1000)
    sys.exit(any(end.state != "finished" for end in ends.values()))
"""
SAVING_CHILD = """
from tgsr.study.run_one import serve
from worker_cases import carry_out
serve(carry_out)
"""


@dataclass
class Place:
    """A folder with a study to run, how long that takes undisturbed, and what it then gives."""

    folder: Path
    weights: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def start(self, out: str, where: dict[str, object]) -> subprocess.Popen[bytes]:
        """Begin, or go on with, the study in the folder `out`."""
        with (self.folder / f"{out}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "coordinator.py", out, json.dumps(where)],
                cwd=self.folder, env=os.environ | {"PYTHONPATH": PATH}, stdout=log, stderr=log,
            )  # fmt: skip


@pytest.fixture(scope="module", params=["saving", "training"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    made, trains = Place(tmp_path_factory.mktemp("kills")), request.param == "training"
    write_real_study(made.folder / "layer.toml", SEEDS, EPOCHS)
    (made.folder / "child.py").write_text(CHILD if trains else SAVING_CHILD)
    (made.folder / "coordinator.py").write_text(TRAINING if trains else SAVING)
    began = time.monotonic()
    with made.start("undisturbed", {"jobs": 2}) as process:
        assert process.wait() == 0
    made.seconds = time.monotonic() - began
    made.weights = weights_of(made.folder / "undisturbed" / "layer")
    assert len(made.weights) == RUNS
    print(f"\n{request.param}, undisturbed: {made.seconds:.1f} s")
    return made


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A scheduler with two workers, whose nannies replace them when they die.

    A nanny whose worker dies while it starts gives up, and `dask worker` ends: then it is started again, as what
    manages a cluster would do.
    """
    file, ended = folder / "scheduler.json", threading.Event()
    file.unlink(missing_ok=True)

    def start(*more: str) -> subprocess.Popen[bytes]:
        local = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "dask"), *more, *local],
            cwd=folder, env=os.environ | {"PYTHONPATH": PATH}, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def keep_workers() -> None:
        while not ended.is_set():
            with start("worker", "--nworkers", "2", "--nthreads", "1") as process:
                while process.poll() is None and not ended.wait(0.2):
                    pass
                process.terminate()

    with start("scheduler", "--port", "0") as scheduler:
        keeper = threading.Thread(target=keep_workers)
        keeper.start()
        try:
            yield str(file)
        finally:
            ended.set()
            keeper.join()
            scheduler.terminate()


def named(part: str, above: int | None = None) -> list[psutil.Process]:
    """The live processes with this in their command line, below a process of ours."""
    found = []
    for process in psutil.Process(above or os.getpid()).children(recursive=True):
        with suppress(psutil.Error):
            if any(part in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def orphans() -> list[psutil.Process]:
    """Children that compute although what they belong to is gone."""
    found = []
    for process in psutil.process_iter(["ppid", "cmdline"]):
        words = process.info["cmdline"] or []
        if process.info["ppid"] == 1 and "child.py" in words:
            found.append(process)
    return found


def verified(study: Path) -> set[str]:
    """The finished runs; each must verify, whatever has happened."""
    found = set()
    for run in runs_of(study):
        if (run.path / "result.json").exists():
            assert run.verify() == []
            found.add(run.id)
    return found


@pytest.mark.parametrize("victims", ["child.py", "spawn_main"], ids=["a child", "a Dask worker"])
def test_a_worker_killed_every_few_seconds_costs_at_most_a_start_each(place: Place, victims: str) -> None:
    chance, kills, dask = random.Random(1), 0, victims == "spawn_main"
    pause = place.seconds / 15 * (1.6 if dask else 1.0)  # "every few seconds" on two quiet cores
    out = f"killed-{victims[:5]}"
    with ExitStack() as stack:
        where: dict[str, object] = {"jobs": 2}
        if dask:
            where = {"scheduler_file": stack.enter_context(cluster(place.folder))}
        process = stack.enter_context(place.start(out, where))
        while process.poll() is None:
            time.sleep(pause * chance.uniform(4.0, 8.0))
            alive = named(victims)
            if alive and process.poll() is None:
                chance.choice(alive).send_signal(signal.SIGKILL)
                kills += 1
        assert process.returncode == 0
    study = place.folder / out / "layer"
    extra = sum(
        json.loads(file.read_text())["attempts"] - 1 for file in (study / "failures").glob("*.json")
    )  # of runs that were started once nothing is kept
    print(f"\n{victims}: {kills} kills, {extra} extra starts")
    assert finished_runs(study) == RUNS
    assert kills >= 2
    assert extra <= kills
    assert weights_of(study) == place.weights


@pytest.mark.parametrize("kind", ["serial", "local", "cluster"])
def test_two_hundred_kills_lose_nothing(place: Place, kind: str) -> None:
    chance, kills, studies = random.Random(kind), 0, 0
    who = {"serial": ["coordinator.py"], "local": ["coordinator.py", "child.py"]}
    victims = who.get(kind, ["coordinator.py", "child.py", "spawn_main"])
    enough = -(-KILLS // 3)
    with ExitStack() as stack:
        where: dict[str, object] = {"serial": {"jobs": 0}, "local": {"jobs": 2}}.get(kind, {})
        if kind == "cluster":
            where = {"scheduler_file": stack.enter_context(cluster(place.folder))}
        while kills < enough:
            out = f"{kind}-{studies}"
            kills += killed_until_finished(place, out, where, victims, chance, enough - kills)
            assert finished_runs(place.folder / out / "layer") == RUNS
            assert weights_of(place.folder / out / "layer") == place.weights
            studies += 1
    print(f"\n{kind}: {kills} kills in {studies} studies of {RUNS} runs, none lost, the same weights")
    time.sleep(1.0)
    assert orphans() == []


def killed_until_finished(
    place: Place, out: str, where: dict[str, object], victims: list[str], chance: random.Random, most: int
) -> int:
    """Run a study to its end, with up to so many kills on the way; how many there were."""
    kills, before, study = 0, set[str](), place.folder / out / "layer"
    process = place.start(out, where)
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(chance.uniform(0.0, place.seconds) if kills < most else None)
                assert code == 0, (place.folder / f"{out}.log").read_text()[-2000:]
                return kills
            alive = named(chance.choice(victims))
            if not alive:
                continue
            victim = chance.choice(alive)
            victim.send_signal(signal.SIGKILL)
            kills += 1
            if victim.pid == process.pid:
                process.wait()
                assert verified(study) >= before
                before = verified(study)
                process = place.start(out, where)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("place", ["training"], indirect=True)
def test_ctrl_c_saves_and_the_same_command_goes_on_to_the_same_bits(place: Place) -> None:
    study, chance, times = place.folder / "stopped" / "layer", random.Random(2), 0
    while True:
        with place.start("stopped", {"jobs": 2}) as process:
            with suppress(subprocess.TimeoutExpired):
                if process.wait(place.seconds * chance.uniform(0.5, 0.9) if times < 4 else None) == 0:
                    break
            process.send_signal(signal.SIGINT)
            assert process.wait(60) != 0
            times += 1
        assert not any((run.path / "lock").exists() for run in runs_of(study))
    assert times == 4
    assert weights_of(study) == place.weights
    assert not list((study / "failures").glob("*.json"))
    assert all(RunDirectory(run.path).verify() == [] for run in runs_of(study))
