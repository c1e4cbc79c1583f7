"""`tgsr show` says where a run stands, whatever its state, and lists the runs of a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cli_cases import COMMAND, ENVIRONMENT, Finished, Invoke

import tgsr
from tgsr.storage import RunDirectory


@pytest.fixture
def begun(finished: Finished) -> RunDirectory:
    """A run like the finished one that has only just been created."""
    spec, data, source = tgsr.load(finished.run).inputs or ({}, b"", b"")
    return RunDirectory.create("runs", "decay", spec, data, source, 7)


def _checkpoint(run: RunDirectory) -> None:
    history = {
        "history.values": np.array([[1.2], [1.4375]]),
        "history.loss": np.array([1.0, 0.25]),
        "history.closures": np.array([1, 9]),
        "history.seconds": np.array([0.5, 2.0]),
    }
    run.save_checkpoint(history, {"stage": "main", "phases": ["adam"], "cursor": {"epoch": 4}})


def test_finished(finished: Finished, invoke: Invoke) -> None:
    answer = invoke("show", finished.run)
    assert answer.exit_code == 0
    assert "finished" in answer.stdout
    assert str(tgsr.load(finished.run)) in answer.stdout
    record = json.loads(invoke("show", finished.run, "--json").stdout)
    assert record["state"] == "finished"
    assert record["weights_sha256"] == finished.record["weights_sha256"]
    assert record["unknowns"] == finished.record["unknowns"]


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.pdf", b"%PDF")])
def test_plot(finished: Finished, invoke: Invoke, name: str, magic: bytes) -> None:
    answer = invoke("show", finished.run, "--plot", name)
    assert answer.exit_code == 0, answer.output
    assert Path(name).read_bytes().startswith(magic)


def test_new_interrupted_and_running(begun: RunDirectory, invoke: Invoke) -> None:
    assert ": new (" in invoke("show", begun.path).stdout
    _checkpoint(begun)
    stopped = invoke("show", begun.path)
    assert ": interrupted (" in stopped.stdout
    assert "k = 1.4375 (so far)" in stopped.stdout
    assert "main, adam, epoch 4, loss 2.5000e-01, 9 closures" in stopped.stdout
    with begun.lock():
        record = json.loads(invoke("show", begun.path, "--json").stdout)
    assert record["state"] == "running"
    assert f"process {os.getpid()}" in record["reason"]
    assert record["unknowns"] == {"k": 1.4375}
    assert record["loss"] == 0.25


def test_failed_without_a_result(begun: RunDirectory, invoke: Invoke) -> None:
    begun.record_failure("failed", "It\x1b[31m broke.", {})
    answer = invoke("show", begun.path)
    assert answer.exit_code == 0
    assert "failed (failed: It [31m broke.)" in answer.stdout
    assert "\x1b" not in answer.output


@pytest.mark.parametrize("name", ["spec.json", "history.npz", "network.safetensors"])
def test_damaged(finished: Finished, invoke: Invoke, name: str) -> None:
    shutil.copytree(finished.run, finished.run.name)
    file = Path(finished.run.name, name)
    file.write_bytes(file.read_bytes()[:-7] + b"damage!")
    answer = invoke("show", finished.run.name)
    assert answer.exit_code == 1
    assert "damaged" in answer.stdout
    assert "1.5" not in answer.stdout  # no number from a damaged run
    assert json.loads(invoke("show", finished.run.name, "--json").stdout)["state"] == "damaged"
    assert invoke("show", ".").stdout.count("damaged") == 1


def test_a_folder_of_runs_newest_first(finished: Finished, begun: RunDirectory, invoke: Invoke) -> None:
    shutil.copytree(finished.run, Path("runs") / finished.run.name)
    os.utime(Path("runs") / finished.run.name, (1, 1))
    head, *rows = invoke("show", "runs").stdout.splitlines()
    assert head.split()[:3] == ["run", "state", "method"]
    assert [row.split()[0] for row in rows] == [begun.path.name, finished.run.name]
    listed = json.loads(invoke("show", "runs", "--json").stdout)["runs"]
    assert [run["state"] for run in listed] == ["new", "finished"]


def test_a_reader_that_leaves_is_no_error(finished: Finished) -> None:
    child = subprocess.Popen(
        [*COMMAND, "show", finished.run.parent],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    child.wait(60)
