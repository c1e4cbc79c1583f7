"""Points spread over devices and processes: the same bits, one collective, and a lost process started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
from click.testing import CliRunner

import tgsr
from tgsr._supervisor import _free_port
from tgsr.cli import main
from tgsr.loss import reason_against
from tgsr.loss._spread import SLOTS, per_slot, whole_slots

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *map(os.path.abspath, sys.path)])}
PROBLEM = """
import os
import scale_cases
from tgsr.training import _keeper

_keeper.SAVE_EVERY = 0.0
scale_cases.in_blocks(5)
problem = scale_cases.problem()
"""


def child(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "scale_cases.py"), *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def last_line(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return out.splitlines()[-1]


def test_slots_follow_from_the_number_of_blocks() -> None:
    for blocks in range(1, 2000):
        whole = whole_slots(blocks)
        assert whole // per_slot(blocks) <= SLOTS
        assert whole % per_slot(blocks) == 0
        assert per_slot(whole) == per_slot(blocks)
        assert blocks <= whole < blocks + per_slot(blocks)


def test_loss_and_gradient_take_one_collective_and_their_bits_do_not_depend_on_how_many_share() -> None:
    out, errors = child("closures", 3, "jax" if reason_against() else "native").communicate()
    digests: dict[str, set[str]] = defaultdict(set)
    for line in out.splitlines():
        precision, blocks, devices, distance, digest, *collectives = line.split()
        assert collectives == ([] if devices == "1" or blocks == "1" else ["all-gather"]), line
        assert float(distance) < {"float64": 1e-13, "float32": 1e-5}[precision]
        if devices != "1":
            digests[f"{precision} {blocks}"].add(digest)
    assert len(digests) == 3, errors
    assert all(len(found) == 1 for found in digests.values()), digests


def test_two_processes_train_to_the_bits_of_two_devices() -> None:
    where = f"127.0.0.1:{_free_port()}"
    one, *two = child("train", 2, "adam"), *(child("train", 1, "adam", where, rank, 2) for rank in range(2))
    assert len({last_line(process) for process in (one, *two)}) == 1


def rank_of(supervisor: int, rank: int) -> int:
    """The process that a supervisor started as this rank."""
    for pid in map(int, Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()):
        if f"TGSR_RANK={rank}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return pid
    raise AssertionError("no such rank")


@pytest.mark.slow
def test_a_million_points_take_less_than_a_gigabyte() -> None:
    assert int(last_line(child("a_million", 1, "-"))) < 1000


@pytest.mark.slow
def test_a_killed_process_is_started_again_from_the_checkpoint(tmp_path: Path) -> None:
    Path("rod.py").write_text(PROBLEM)
    command = [sys.executable, "-m", "tgsr", "solve", "rod.py", "--training", "paper", "--budget", "1000", "--quiet"]
    command += ["--widths", "8,8"]
    straight = subprocess.run([*command, "--devices", "2", "--out", "one"], env=ENVIRONMENT, check=False)
    process = subprocess.Popen(
        [*command, "--processes", "2", "--out", "two"], env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    while not list(Path("two").glob("*/checkpoint/current/state.safetensors")):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(rank_of(process.pid, 1), signal.SIGKILL)
    _, errors = process.communicate()
    assert (straight.returncode, process.returncode) == (0, 0), errors
    assert "Process 1 of the training was lost (SIGKILL); all 2 start again" in errors
    (one,), (two,) = Path("one").iterdir(), Path("two").iterdir()
    assert one.name == two.name
    assert (one / "network.safetensors").read_bytes() == (two / "network.safetensors").read_bytes()
    environment = json.loads((two / "env.json").read_text())
    assert (environment["devices"], environment["processes"]) == (2, 2)


def test_what_does_not_fit_is_refused() -> None:
    problem = tgsr.Problem("p", coordinates={"t": (0.0, 1.0)}, fields=["u"], residuals=[lambda u: u.t])
    with pytest.raises(tgsr.InputError, match="devices is '0'"):
        tgsr.closure(problem, devices=0)
    with pytest.raises(tgsr.InputError, match=r"64 devices are asked for.*xla_force_host_platform_device_count=64"):
        tgsr.closure(problem, devices=64)
    for options, words in ((["--rank", "0"], "belong together"), (["--rank", "2", "--ranks", "2"], "belong together")):
        result = CliRunner().invoke(main, ["solve", "no.py", *options])
        assert result.exit_code == 2
        assert words in result.output


def test_a_jacobian_is_not_spread() -> None:
    out, errors = child("train", 2, "levenberg-marquardt").communicate()
    assert not out
    assert "works with a Jacobian, which is not spread" in errors.splitlines()[-1]
