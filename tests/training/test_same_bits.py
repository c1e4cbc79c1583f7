"""The same specification and seed give the same weights, whatever happens on the way."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import training_cases as cases

import tgsr
from tgsr import _jax, _solve
from tgsr.storage import RunDirectory
from tgsr.training import InterruptedRunError, Keeper, _keeper

Straight = Callable[[str], tgsr.Result]
HERE = Path(__file__).parent
SAME = ("phase", "closures", "loss", "terms", "values")  # of a history; time and memory are the machine's
PATH = os.pathsep.join([str(HERE), *map(os.path.abspath, sys.path)])


def child(*arguments: object, cores: int = 0, room: int = 0) -> subprocess.Popen[str]:
    """`training_cases` as a program: on so many cores, with files of so many bytes (0: as many as there are)."""
    command = [sys.executable, str(HERE / "training_cases.py"), *map(str, (*arguments, cores, room))]
    environment = {**os.environ, "PYTHONPATH": PATH}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def interrupting(times: list[int] | None = None) -> Callable[[tgsr.Progress], None]:
    """Ctrl-C in every outer epoch, or in those counted in `times`."""
    count = [0]

    def show(seen: tgsr.Progress) -> None:
        count[0] += 1
        if times is None or count[0] in times:
            signal.raise_signal(signal.SIGINT)

    return show


def the_run(folder: Path) -> RunDirectory:
    (path,) = (p for p in folder.iterdir() if p.is_dir())
    return RunDirectory.open(path)


# ---- repeats


def test_a_second_process_on_one_core_gives_the_same_weights(straight: Straight) -> None:
    kind = "levenberg-marquardt"
    process = child(kind, "-", 0, cores=1)
    here = straight(kind)
    out, errors = process.communicate()
    assert out.splitlines()[-1] == here.fingerprint, errors


@pytest.mark.parametrize("kind", cases.KINDS)
def test_a_repeat_gives_the_same_weights(kind: str, straight: Straight) -> None:
    again = cases.solved(kind)
    assert again.fingerprint == straight(kind).fingerprint
    for name, column in again.history.columns.items():
        if name in SAME:
            np.testing.assert_array_equal(column, straight(kind).history.columns[name])


@pytest.mark.slow
@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("cores", [1, 2])
def test_any_number_of_cores_gives_the_same_weights(kind: str, cores: int, straight: Straight) -> None:
    out, errors = child(kind, "-", 0, cores=cores).communicate()
    assert out.splitlines()[-1] == straight(kind).fingerprint, errors


# ---- Ctrl-C


@pytest.mark.parametrize("kind", cases.KINDS)
def test_ctrl_c_in_every_outer_epoch_changes_no_bit(
    kind: str, straight: Straight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, stops = signal.getsignal(signal.SIGINT), 0
    result = None
    while result is None:
        try:
            result = cases.solved(kind, out=tmp_path, progress=interrupting())
        except InterruptedRunError as stop:
            text, path = str(stop), stop.path
            assert "Give the same call again to go on from here" in text
            assert str(path) in text
            stops += 1
            assert the_run(tmp_path).status().state == "interrupted"
            with pytest.raises(tgsr.InputError, match="interrupted"):
                tgsr.load(path or "")
    # the last outer epoch of the last phase ends the run; a phase change is no place to stop
    assert stops >= sum(phase.epochs for phase in cases.KINDS[kind].phases) - 1
    assert signal.getsignal(signal.SIGINT) is before
    assert result.fingerprint == straight(kind).fingerprint
    assert result.closures == straight(kind).closures
    for name in SAME:
        np.testing.assert_array_equal(result.history.columns[name], straight(kind).history.columns[name])
    assert np.all(np.diff(result.history["seconds"]) >= 0)
    assert result.unknowns == straight(kind).unknowns  # estimates and errors, not weights alone

    monkeypatch.setattr(_solve, "_compute", lambda *_: pytest.fail("a finished run was computed again"))
    again = cases.solved(kind, out=tmp_path)
    assert again.fingerprint == result.fingerprint
    assert again.unknowns == result.unknowns


def test_ctrl_c_without_a_folder_says_how_to_keep_runs() -> None:
    with pytest.raises(InterruptedRunError, match="pass out='runs'") as stop:
        cases.solved("adam", progress=interrupting([2]))
    assert stop.value.path is None
    assert isinstance(stop.value, KeyboardInterrupt)


def test_tgsr_interrupted_in_adaptation_and_in_main_training(straight: Straight, tmp_path: Path) -> None:
    source, seen = straight("levenberg-marquardt").network, []

    def call(**options: Any) -> tgsr.Result:
        tgsr_method = tgsr.Tgsr(tgsr.TgsrOptions(adapt_fraction=0.5))
        main = cases.KINDS["levenberg-marquardt"]
        return tgsr.transfer(
            cases.problem(None), source, method=tgsr_method, training=main, budget="paper", seed=3, **options
        )

    undisturbed = call(progress=lambda p: seen.append(p.stage))
    assert seen == ["adaptation"] * 3 + ["main"] * 6
    stages = []
    for at in (
        1,
        1,
        1,
        2,
        2,
        2,
    ):  # a Ctrl-C in the last epoch of adaptation is not lost on the way to main training
        with pytest.raises(InterruptedRunError) as stop:
            call(out=tmp_path, progress=interrupting([at]))
        stages.append(str(stop.value).split("stage ")[1].split(";")[0])
    assert stages == ["'adaptation'"] * 3 + ["'main'"] * 3
    result = call(out=tmp_path)
    assert result.fingerprint == undisturbed.fingerprint
    assert result.closures == undisturbed.closures
    for stage, arrays in undisturbed.stages.items():
        for name, array in arrays.items():
            if name in SAME or stage == "correction":
                np.testing.assert_array_equal(result.stages[stage][name], array)


def test_growing_interrupted_in_the_narrow_network_and_after_it(tmp_path: Path) -> None:
    def call(**options: Any) -> tgsr.Result:
        training = tgsr.Training(cases.LBFGS, cases.POINTS, budget=140)
        return tgsr.transfer(
            cases.problem(None), None, method=tgsr.Grow(3), network=cases.MLP, training=training, seed=3, **options
        )

    seen: list[str] = []
    undisturbed = call(progress=lambda p: seen.append(p.stage))
    assert set(seen) == {"narrow", "main"}
    narrow = seen.count("narrow")
    for _ in range(narrow + 2):
        with pytest.raises(InterruptedRunError):
            call(out=tmp_path, progress=interrupting([1]))
    result = call(out=tmp_path)
    assert result.fingerprint == undisturbed.fingerprint
    assert result.closures == undisturbed.closures
    np.testing.assert_array_equal(result.stages["narrow"]["loss"], undisturbed.stages["narrow"]["loss"])


# ---- killed, damaged, elsewhere, out of room


def killed_once(folder: Path, epochs: int, wait: float) -> None:
    """Start a run, kill -9 it `wait` seconds after its first outer epochs."""
    process = child("levenberg-marquardt", folder, 0.05)
    assert process.stdout is not None
    for _ in range(epochs):  # said before it is saved: the last one may or may not be
        process.stdout.readline()
    time.sleep(wait)
    process.kill()
    process.communicate()


def test_killed_and_called_again(straight: Straight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_once(tmp_path, 3, 0.01)
    run, seen = the_run(tmp_path), []
    assert run.status().state == "interrupted"

    # not here with other threads ...
    monkeypatch.setattr(_jax, "_threads", 7)
    monkeypatch.setattr(_jax, "thread_count", lambda: 7)
    with pytest.raises(tgsr.InputError, match=r"threads was \d+ and is 7.*Resume it there, or start it anew"):
        cases.solved("levenberg-marquardt", out=tmp_path)
    monkeypatch.undo()

    # ... from the generation before when the current one is damaged ...
    copy = tmp_path / "copy"
    shutil.copytree(run.path.parent, copy, ignore=lambda *_: ["copy"])
    state = the_run(copy).path / "checkpoint" / "current" / "state.safetensors"
    data = bytearray(state.read_bytes())
    data[-9] ^= 1
    state.write_bytes(data)
    assert cases.solved("levenberg-marquardt", out=copy).fingerprint == straight("levenberg-marquardt").fingerprint
    notes = [line["note"] for line in the_run(copy).read_log() if line["event"] == "checkpoint"]
    assert notes
    assert "previous checkpoint is used" in notes[0]
    shutil.rmtree(copy)

    # ... and on from where it was
    result = cases.solved("levenberg-marquardt", out=tmp_path, progress=lambda p: seen.append(p.epoch))
    assert result.fingerprint == straight("levenberg-marquardt").fingerprint
    assert seen[0] > 1


@pytest.mark.slow
def test_killed_twenty_times(straight: Straight, tmp_path: Path) -> None:
    random.seed(1)
    for number in range(20):
        folder = tmp_path / str(number)
        killed_once(folder, 1, random.uniform(0.0, 0.4))
        if the_run(folder).status().state == "finished":
            continue
        assert (
            cases.solved("levenberg-marquardt", out=folder).fingerprint == straight("levenberg-marquardt").fingerprint
        )


@pytest.mark.slow
def test_a_full_disk_says_so_and_the_run_goes_on_later(straight: Straight, tmp_path: Path) -> None:
    out, errors = child("levenberg-marquardt", tmp_path, 0, room=3500).communicate()
    assert "StorageError" in errors.splitlines()[-1], errors
    assert "checkpoint" in errors.splitlines()[-1]
    assert out.count("\n") >= 1
    assert cases.solved("levenberg-marquardt", out=tmp_path).fingerprint == straight("levenberg-marquardt").fingerprint


def test_a_full_disk_in_the_middle_keeps_the_last_good_state(
    straight: Straight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_keeper, "SAVE_EVERY", 0.0)
    save, count = Keeper.save, []

    def no_room(self: Keeper, *arguments: Any) -> None:
        count.append(1)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000 if len(count) == 3 else soft, hard))
        try:
            save(self, *arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    monkeypatch.setattr(Keeper, "save", no_room)
    with pytest.raises(tgsr.StorageError, match="checkpoint"):
        cases.solved("levenberg-marquardt", out=tmp_path)
    assert the_run(tmp_path).status().state == "interrupted"
    seen: list[int] = []
    result = cases.solved("levenberg-marquardt", out=tmp_path, progress=lambda p: seen.append(p.epoch))
    assert seen[0] == 3
    assert result.fingerprint == straight("levenberg-marquardt").fingerprint
