"""The disk fails at every single call of a save, a commit or a creation; the work so far survives."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from storage_cases import FaultyDisk, Killed, new_run, snapshot, state, step_of

from tgsr._errors import StorageError
from tgsr.storage import RunDirectory, read_bytes, write_bytes

MODES = [
    ("error", errno.EIO),
    ("error", errno.EACCES),
    ("full", errno.ENOSPC),
    ("abrupt", 0),
    ("dead", 0),
]


def restore(folder: Path, files: dict[str, bytes | None]) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).mkdir() if data is None else (folder / name).write_bytes(data)


def damaged_current(run: RunDirectory) -> None:
    path = run.path / "checkpoint/current/state.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def cut_rotation(run: RunDirectory, at: str) -> None:
    """The state a killed save leaves: `next` complete, the moves begun."""
    folder = run.path / "checkpoint"
    save(run, 3)
    (folder / "current").rename(folder / "next")
    if at == "early":
        (folder / "previous").rename(folder / "current")


def save(run: RunDirectory, step: int) -> None:
    run.save_checkpoint(*state(step))


STARTS = {
    "nothing saved": (0, lambda run: None),
    "one saved": (1, lambda run: None),
    "two saved": (2, lambda run: None),
    "current damaged": (2, damaged_current),
    "rotation to do": (2, lambda run: cut_rotation(run, "early")),
    "rotation half done": (2, lambda run: cut_rotation(run, "late")),
}


@pytest.mark.parametrize("start", STARTS)
def test_a_fault_at_every_call_of_a_save_leaves_the_old_or_the_new_state(run: RunDirectory, start: str) -> None:
    saves, prepare = STARTS[start]
    for step in range(1, saves + 1):
        save(run, step)
    prepare(run)
    folder = run.path / "checkpoint"
    folder.mkdir(exist_ok=True)
    before, old, new = snapshot(folder), step_of(run), 9
    with FaultyDisk().installed() as disk:
        save(run, new)
    assert step_of(run) == new
    assert disk.count > 30
    # The two long starts differ from "two saved" only in the moves; three modes are enough for them.
    for mode, code in MODES[::2] if start.startswith("rotation") else MODES:
        for k in range(1, disk.count + 1):
            restore(folder, before)
            with FaultyDisk(k, mode, code).installed() as faulty:
                try:
                    save(run, new)
                    finished = True
                except (StorageError, Killed):
                    finished = False
            assert faulty.failed, (mode, k)
            step = step_of(run)
            assert step == new if finished else step in (old, new), (mode, k, faulty.failed)
            if mode in ("error", "full") and faulty.failed != "unlink":
                assert not list(run.path.rglob("*.tmp")), (mode, k, faulty.failed)
            if k % 5 == 0:  # and the next save heals whatever is left
                save(run, 10)
                checkpoint = run.load_checkpoint()
                assert checkpoint is not None
                assert (checkpoint.generation, checkpoint.note, step_of(run)) == ("current", None, 10)


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_a_load_that_cannot_read_never_says_that_nothing_was_saved(run: RunDirectory, code: int) -> None:
    for step in (1, 2):
        save(run, step)
    with FaultyDisk().installed() as disk:
        run.load_checkpoint()
    for k in range(1, disk.count + 1):
        with FaultyDisk(k, "error", code).installed():
            try:
                checkpoint = run.load_checkpoint()
            except StorageError:
                continue
        assert checkpoint is not None
        assert checkpoint.meta["step"] == 2 or checkpoint.note is not None
        if code != errno.EIO:  # only a failing disk is damage; what will pass must not cost the newer state
            assert checkpoint.meta["step"] == 2


def test_a_fault_at_every_call_of_a_commit_leaves_a_resumable_or_a_finished_run(run: RunDirectory) -> None:
    save(run, 1)
    write_bytes(run.file("stages/score.npz"), b"scores")
    before = snapshot(run.path)
    with FaultyDisk().installed() as disk:
        run.commit({"kappa": 0.1})
    for mode, code in MODES:
        for k in range(1, disk.count + 1):
            restore(run.path, before)
            with FaultyDisk(k, mode, code).installed():
                try:
                    run.commit({"kappa": 0.1})
                    finished = True
                except (StorageError, Killed):
                    finished = False
            status = run.status()
            assert status.state in (("finished",) if finished else ("finished", "interrupted")), (
                mode,
                k,
                status,
            )
            assert run.result() == {"kappa": 0.1} if status.state == "finished" else step_of(run) == 1


def test_a_fault_at_every_call_of_a_creation_can_be_repeated(tmp_path: Path) -> None:
    with FaultyDisk().installed() as disk:
        new_run(tmp_path / "clean")
    for mode, code in MODES:
        for k in range(1, disk.count + 1):
            root = tmp_path / f"{mode}-{code}-{k}"
            with FaultyDisk(k, mode, code).installed(), suppress(StorageError, Killed):
                new_run(root)
            assert new_run(root).status().state == "new", (mode, k)


def test_a_failed_write_keeps_the_old_file_says_what_to_do_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    for code, words in [
        (errno.ENOSPC, "Free space"),
        (errno.EFBIG, "file size limit"),
        (errno.EACCES, "permission"),
        (errno.EROFS, "read-only"),
        (errno.EDQUOT, "quota"),
    ]:
        with (
            FaultyDisk(2, "error", code).installed() as disk,
            pytest.raises(StorageError, match=words) as caught,
        ):
            write_bytes(path, b"new")
        assert disk.failed == "write"
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert read_bytes(path) == b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_writes_other_bytes_never_replaces_the_good_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    path, real = tmp_path / "file", os.write
    write_bytes(path, b"old")
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, b"x" * len(data)))
    with pytest.raises(StorageError, match="did not read back"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
