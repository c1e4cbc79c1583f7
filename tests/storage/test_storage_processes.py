"""Real processes: killed at any instant, racing for the lock, out of room."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from storage_cases import state, step_of

from tgsr._errors import StorageError
from tgsr.storage import RunDirectory, RunLockedError, write_sealed

PATH = os.pathsep.join([str(Path(__file__).parent), *map(os.path.abspath, sys.path)])

SAVER = """
import sys
from storage_cases import state, step_of
from tgsr.storage import RunDirectory
run = RunDirectory.open(sys.argv[1])
with run.lock():
    step = step_of(run)
    print(step, flush=True)
    while True:
        step += 1
        run.save_checkpoint(*state(step))
        print(step, flush=True)
"""

RACER = """
import os, random, sys, time
from pathlib import Path
from tgsr.storage import RunDirectory, RunLockedError, read_sealed, write_sealed
run, dead, seed = RunDirectory.open(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
choice, inside, entered = random.Random(seed), run.path / "inside", 0
end = time.monotonic() + 1.2
while time.monotonic() < end:
    try:
        with run.lock():
            os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if the other one is here too
            entered += 1
            os.unlink(inside)
            if choice.random() < 0.5:  # as if killed here: the lock stays, its process is gone
                write_sealed(run.path / "lock", {**read_sealed(run.path / "lock"), "pid": dead})
    except RunLockedError:
        pass
print(entered)
"""

CRAMPED = """
import resource, sys
import numpy as np
from storage_cases import state
from tgsr._errors import StorageError
from tgsr.storage import RunDirectory
run = RunDirectory.open(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, resource.RLIM_INFINITY))
try:
    run.save_checkpoint({"weights": np.zeros(100_000)}, {})
except StorageError as error:
    print(error)
run.save_checkpoint(*state(2))  # what fits is saved, without a restart
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": PATH},
        stdout=subprocess.PIPE,
        text=True,
    )


def dead_pid() -> int:
    with subprocess.Popen(["true"]) as child:
        return child.pid


def holder(run: RunDirectory, **changes: object) -> dict[str, object]:
    """The lock as this process would write it, with changes."""
    from tgsr.storage import read_sealed

    with run.lock():
        return read_sealed(run.path / "lock") | changes


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_a_kill_at_any_instant_loses_no_saved_state(run: RunDirectory, kills: int) -> None:
    rng = random.Random(kills)
    for _ in range(kills):
        before = step_of(run)
        with start(SAVER, run.path) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == before  # it takes the dead one's lock and state over
            time.sleep(rng.uniform(0.0, 0.15))
            process.send_signal(signal.SIGKILL)
            reported = [int(line) for line in process.stdout.read().split()]
        last = max([before, *reported])
        assert step_of(run) in (last, last + 1)
        assert run.status().state in ("interrupted", "new")
    with run.lock():
        run.save_checkpoint(*state(10**6))
    assert step_of(run) == 10**6
    assert not list(run.path.rglob("*.tmp"))


def test_two_processes_never_hold_the_lock_together_even_while_taking_it_over(run: RunDirectory) -> None:
    pid = dead_pid()
    racers = [start(RACER, run.path, pid, seed) for seed in (1, 2)]
    entered = [int(racer.communicate(timeout=60)[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert min(entered) > 5


def test_a_live_lock_is_an_error_that_names_its_process(run: RunDirectory) -> None:
    with run.lock():
        with (
            pytest.raises(RunLockedError, match=rf"process {os.getpid()} on {os.uname().nodename}"),
            run.lock(),
        ):
            pass
        assert (run.path / "lock").exists()
    assert not (run.path / "lock").exists()


def test_stale_locks_are_taken_over_and_doubtful_ones_are_not(run: RunDirectory) -> None:
    stale = [
        holder(run, pid=dead_pid()),
        holder(run, boot="another boot"),
        holder(run, started="1"),  # another process had this number before
        holder(run, pid=0),
    ]
    for lock in stale:
        write_sealed(run.path / "lock", lock)
        assert run.status().state == "new"
        with run.lock():
            assert run.status().state == "running"
    write_sealed(run.path / "lock", holder(run, host="elsewhere", pid=dead_pid(), boot="another boot"))
    with pytest.raises(RunLockedError, match="elsewhere"), run.lock():
        pass
    (run.path / "lock").write_bytes(b"garbage")
    with pytest.raises(StorageError, match="cannot be read"), run.lock():
        pass


def test_a_killed_child_that_nobody_has_waited_for_yet_is_dead(run: RunDirectory) -> None:
    with start(SAVER, run.path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
        with run.lock():
            pass


def test_a_file_size_limit_gives_a_clear_error_and_keeps_the_last_state(run: RunDirectory) -> None:
    run.save_checkpoint(*state(1))
    process = start(CRAMPED, run.path)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "larger than this process may write" in said
    assert "then resume" in said
    checkpoint = run.load_checkpoint()
    assert checkpoint is not None
    assert (step_of(run), checkpoint.note) == (2, None)
    assert not list(run.path.rglob("*.tmp"))


def test_a_full_disk_gives_a_clear_error_and_room_is_all_it_takes_to_go_on(tmp_path: Path) -> None:
    code = """
import os, sys
import numpy as np
from storage_cases import new_run, state, step_of
from tgsr._errors import StorageError
run = new_run(sys.argv[1])
run.save_checkpoint(*state(1))
run.save_checkpoint(*state(2))
fill = run.path.parent / "fill"
with open(fill, "wb", buffering=0) as handle:
    try:
        while handle.write(bytes(4096)): pass
    except OSError: pass
try:
    run.save_checkpoint(*state(3))
    sys.exit("no error")
except StorageError as error:
    assert "no space" in str(error) and "Free space" in str(error), error
assert step_of(run) == 2
os.unlink(fill)
run.save_checkpoint(*state(3))
assert step_of(run) == 3 and run.load_checkpoint().note is None
print("resumed")
"""
    disk = tmp_path / "disk"
    disk.mkdir()
    namespace = ["unshare", "--mount", "--map-root-user"]
    mount = f"mount -t tmpfs -o size=512k tgsr {disk}"
    try:
        if subprocess.run([*namespace, "sh", "-c", mount], capture_output=True, check=False).returncode:
            pytest.skip("this system mounts no tmpfs for tests")
    except FileNotFoundError:
        pytest.skip("there is no `unshare` here")
    done = subprocess.run(
        [*namespace, "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, "-c", code, str(disk)],
        env=os.environ | {"PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("resumed\n", 0), done.stderr
