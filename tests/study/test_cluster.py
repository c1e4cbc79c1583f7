"""Dask clusters: which addresses are safe, what workers must see, and workers that are killed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from real_cases import finished_runs, weights_of, write_real_study
from worker_cases import COMMAND, new_run, new_study, starts_of

from tgsr._errors import InputError
from tgsr.storage import RunDirectory
from tgsr.study import _cluster
from tgsr.study._attempts import attempts_of
from tgsr.study._child import run_directory
from tgsr.study._cluster import DaskWorkers, _safe
from tgsr.study._executors import workers
from tgsr.study._schedule import Event, Job, run_jobs

SAFE = [
    ("tls://far.example.org:8786", "tls://far.example.org:8786"),
    ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
    ("127.0.0.1:8786", "tcp://127.0.0.1:8786"),
    ("tcp://localhost:8786", "tcp://localhost:8786"),
    ("tcp://[::1]:8786", "tcp://[::1]:8786"),
    ("tcp://127.8.9.10:1", "tcp://127.8.9.10:1"),
    ("inproc://10.0.0.1/7/1", "inproc://10.0.0.1/7/1"),
]
UNSAFE = "tcp://10.0.0.7:8786 10.0.0.7:8786 tcp://far.example.org:1 tcp://localhost.example.org:1 ws://10.0.0.7:1 "
UNSAFE += "tcp://[2001:db8::1]:8786 tcp://0.0.0.0:8786 ucx://10.0.0.7:1 tcp://127.0.0.1.example.org:1"


@pytest.mark.parametrize(("address", "whole"), SAFE)
def test_encrypted_and_local_addresses_are_safe(address: str, whole: str) -> None:
    assert _safe(address, False) == whole


@pytest.mark.parametrize("address", UNSAFE.split())
def test_a_plain_address_elsewhere_is_refused_unless_the_network_is_trusted(address: str) -> None:
    with pytest.raises(InputError, match=r"neither encrypted nor on this machine.*tls://.*--insecure"):
        _safe(address, False)
    assert _safe(address, True).endswith(address)


def test_addresses_and_files_that_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "FILE_PATIENCE", 0.3)
    monkeypatch.setattr(_cluster, "ANSWER_PATIENCE", 0.5)
    file = tmp_path / "scheduler.json"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"scheduler": ""}, "is no address"),
        ({"scheduler": "tls://127.0.0.1:1"}, "not told which certificates"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no scheduler answers at tcp://127.0.0.1:1"),
        ({"scheduler_file": file}, "scheduler.json: is not there, or is no scheduler's file"),
        ({"client": 7}, "'7' is no client"),
    ]
    for where, words in cases:
        with pytest.raises(InputError, match=words), workers(**where):
            pass
    file.write_text(json.dumps({"address": "tcp://10.0.0.7:8786"}))
    with pytest.raises(InputError, match="neither encrypted"), workers(scheduler_file=file):
        pass
    file.write_text("{")
    with pytest.raises(InputError, match="no scheduler's file"), workers(scheduler_file=file):
        pass


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'tgsr\[cluster\]'"), workers(scheduler="tls://x:1"):
        pass


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=None
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return new_study(tmp_path / "tiny")


def jobs_of(runs: list[Path]) -> list[Job]:
    return [Job(run.name, (), partial(Path, run)) for run in runs]


def test_runs_end_as_on_this_machine_and_nothing_stays_in_the_cluster(client: Any, study: Path) -> None:
    specs = [{}, {"do": "die", "times": 1}, {"do": "fail"}, {"do": "raising"}, *[{} for _ in range(12)]]
    runs = [new_run(study, seed=seed, **spec) for seed, spec in enumerate(specs)]
    with workers(client=client, folder=study, command=COMMAND) as there:
        assert there.slots() == 8
        ends = list(run_jobs(jobs_of(runs), there).values())
    assert [end.state for end in ends] == ["finished", "finished", "failed", "failed", *["finished"] * 12]
    assert ends[2].sentence == "The loss grew."
    assert not client.futures
    pids = {start["pid"] for run in runs for start in starts_of(run)}
    assert len(pids) == 3  # one child a worker, and the one that died
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)  # closed with the study
    assert client.run_on_scheduler(allowed) >= 1000


def allowed(dask_scheduler: Any = None) -> int:
    return dask_scheduler.allowed_failures


def test_a_killed_worker_costs_one_more_start(client: Any, study: Path) -> None:
    runs = [new_run(study, seed=seed, seconds=0.4) for seed in range(6)]
    before = dict(client.run(os.getpid))
    killed: list[int] = []

    def kill_one(event: Event) -> None:
        if event.state == "finished" and not killed:
            killed.append(next(iter(before.values())))
            os.kill(killed[0], signal.SIGKILL)

    with workers(client=client, folder=study, command=COMMAND) as there:
        ends = run_jobs(jobs_of(runs), there, on_event=kill_one)
    assert {end.state for end in ends.values()} == {"finished"}
    assert sum(len(starts_of(run)) for run in runs) <= len(runs) + 1
    assert sum(max(0, attempts_of(run).attempts - 1) for run in runs) <= 1
    client.wait_for_workers(2, timeout=200)


def test_ctrl_c_lets_the_workers_save(client: Any, study: Path) -> None:
    runs = [new_run(study, "count", seed=seed) for seed in range(4)]
    main = threading.main_thread().ident
    assert main is not None

    def press() -> None:
        while sum(bool(starts_of(run)) for run in runs) < 2:
            time.sleep(0.02)
        time.sleep(0.2)
        signal.pthread_kill(main, signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    with pytest.raises(KeyboardInterrupt), workers(client=client, folder=study, command=COMMAND) as there:
        run_jobs(jobs_of(runs), there)
    pressing.join()
    assert not any((run / "lock").exists() for run in runs)
    assert sorted(RunDirectory(run).status().state for run in runs) == ["interrupted", "interrupted", "new", "new"]
    (study / "go").touch()
    with workers(client=client, folder=study, command=COMMAND) as there:
        assert {end.state for end in run_jobs(jobs_of(runs), there).values()} == {"finished"}


def test_workers_that_see_another_disk_are_refused(client: Any, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = _cluster.look_around(str(study))
    monkeypatch.setattr(_cluster, "look_around", lambda folder: here | {"study": "another"})
    there = DaskWorkers(client, print, study)
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"tiny: the worker at .* does not see the study's folder.* same path"):
        there.slots()


def test_workers_that_compute_otherwise_are_told_of_once(
    client: Any, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _cluster.look_around(str(study))
    other = here | {"alike": here["alike"] | {"processor": "a slide rule", "jaxlib": "0.10.0"}}
    monkeypatch.setattr(_cluster, "look_around", lambda folder: other)
    there = DaskWorkers(client, print, study)
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="has another") as seen:
        assert there.slots() == 8
    assert len(seen) == 2
    assert "the last digits of results may depend on where" in str(seen[0].message)
    assert there.slots() == 8


def test_a_study_waits_for_the_first_worker(study: Path) -> None:
    from distributed import Client, LocalCluster

    runs = [new_run(study)]
    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        with pytest.warns(UserWarning, match="No worker has joined"):
            there = DaskWorkers(client, partial(run_directory, command=COMMAND), study)
        assert there.slots() == 0
        threading.Timer(0.5, cluster.scale, [1]).start()
        assert run_jobs(jobs_of(runs), there)[runs[0].name].state == "finished"


def test_a_scheduler_that_goes_away_ends_the_study_with_a_sentence(study: Path) -> None:
    from distributed import Client, LocalCluster

    runs = [new_run(study, "hang")]
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=None
    )
    lost = pytest.raises(InputError, match=r"scheduler is lost.*run the study again")
    with Client(cluster, set_as_default=False) as client, workers(client=client, command=COMMAND) as there, lost:
        threading.Timer(1.5, cluster.close).start()
        run_jobs(jobs_of(runs), there)


# ---- the pages' own commands

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
STUBS = {
    "srun": '#!/bin/bash\nexec "$@"\n',
    "sbatch": """#!/bin/bash
for argument; do case $argument in --array=1-*) last=${argument#--array=1-};; esac; done
for task in $(seq 1 "$last"); do SLURM_ARRAY_TASK_ID=$task bash "$argument" || exit 1; done
""",
}


def block(first: str) -> str:
    """The shell block of the page that has this in it."""
    return next(text for text in re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL) if first in text)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty home, the commands of this installation, and a batch system that does it at once."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name, text in STUBS.items():
        (stubs / name).write_text(text)
        (stubs / name).chmod(0o755)
    path = os.pathsep.join([str(stubs), str(Path(sys.executable).parent), os.environ["PATH"]])
    write_real_study(tmp_path / "layer.toml")
    return {**os.environ, "HOME": str(tmp_path), "PATH": path}


def sh(text: str, environment: dict[str, str], within: float = 240.0) -> str:
    done = subprocess.run(["bash", "-ec", text], env=environment, capture_output=True, text=True, timeout=within)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def running(text: str, environment: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(["bash", "-ec", f"exec {text.strip()}"], env=environment, stderr=subprocess.DEVNULL) as one:
        try:
            yield
        finally:
            one.terminate()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_pages_two_workers_with_tls(tmp_path: Path, shell: dict[str, str]) -> None:
    ports = {"8786": str(free_port()), "8787": str(free_port())}

    def told(first: str, then: str = "") -> str:
        return re.sub("878[67]", lambda found: ports[found[0]], block(first)) + then

    sh(told("openssl req"), shell)
    assert (tmp_path / ".config/dask/tls/key.pem").stat().st_mode & 0o077 == 0
    scheduler = told("dask scheduler --protocol tls --host 127.0.0.1").strip() + " --scheduler-file scheduler.json"
    with running(scheduler, shell), running(told("dask worker tls"), shell):
        sh(told("tgsr study run layer.toml --scheduler tls"), shell)
        assert finished_runs(tmp_path / "studies" / "layer") == 4
        sh("tgsr study run layer.toml --scheduler-file scheduler.json --out again", shell)
        assert weights_of(tmp_path / "again" / "layer") == weights_of(tmp_path / "studies" / "layer")
        # without the certificate there is nothing to talk to, and it is said in one line
        plain = subprocess.run(
            ["tgsr", "study", "run", "layer.toml", "--scheduler", f"tls://127.0.0.1:{ports['8786']}", "--out", "third"],
            env=shell | {"HOME": str(tmp_path / "stubs")}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert plain.returncode == 2
        assert "Dask was not told which certificates to use" in plain.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_pages_array_of_batch_jobs(tmp_path: Path, shell: dict[str, str]) -> None:
    (tmp_path / "run.sh").write_text(block("SLURM_ARRAY_TASK_ID"))
    for wave in (2, 2, 0):
        sh(block("run_one --ready"), shell)
        assert len((tmp_path / "ready.txt").read_text().splitlines()) == wave
    assert finished_runs(tmp_path / "studies" / "layer") == 4
    assert "4 runs finished, 0 failed" in sh("tgsr study run layer.toml", shell)
    sh("tgsr study run layer.toml --out again --jobs 1", shell)
    assert weights_of(tmp_path / "again" / "layer") == weights_of(tmp_path / "studies" / "layer")
