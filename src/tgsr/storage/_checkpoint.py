"""Two generations of a run's state, one of which loads at every instant, whatever stops the process.

    checkpoint/next/{state.safetensors, manifest.json}     written first; complete once its manifest is there
    remove previous;  current -> previous;  next -> current

A complete `next` is the new state already: loading takes it, and the following save finishes the moves before
it does anything else. A damaged `current` is dropped, not moved, so it never pushes out a good `previous`.
Only one process may save at a time; `RunDirectory.lock` sees to that.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tgsr._errors import StorageError
from tgsr.storage._arrays import Arrays, read_tensors, tensor_bytes
from tgsr.storage._atomic import digest_of, file_digest, present, storage_error, sync_folder, write_bytes
from tgsr.storage._json import read_sealed, write_sealed

STATE, MANIFEST = "state.safetensors", "manifest.json"
_NEWEST_FIRST = ("next", "current", "previous")


@dataclass(frozen=True)
class Checkpoint:
    """A verified state. `note` is a sentence for the user when it is not simply the last one saved."""

    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]
    generation: Literal["current", "previous"]
    note: str | None


def save(folder: Path, run: str, arrays: Arrays, meta: Mapping[str, object]) -> None:
    """Make `arrays` and `meta` the current state of `run`."""
    data = tensor_bytes(arrays)
    fresh = folder / "next"
    try:
        os.makedirs(folder, exist_ok=True)
        if present(fresh):
            _promote(folder, run) if _intact(fresh, run) else _remove(fresh)
        try:
            os.mkdir(fresh)
            manifest = {
                "format": 1,
                "run": run,
                "sequence": 1 + max((_sequence(folder / name, run) for name in _NEWEST_FIRST), default=0),
                "meta": dict(meta),
                "file": write_bytes(fresh / STATE, data),
                "arrays": _described(arrays),
            }
            write_sealed(fresh / MANIFEST, manifest)
            sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                _remove(fresh)
            raise
        _promote(folder, run)
        sync_folder(folder.parent)
    except OSError as error:
        raise storage_error(error, folder) from error


def load(folder: Path, run: str) -> Checkpoint | None:
    """The newest state of `run` that verifies; None if none was ever saved; never anything else.

    Changes nothing on disk.
    """
    problems: list[str] = []
    found: list[tuple[int, str, dict[str, Any]]] = []
    for name in _NEWEST_FIRST:
        if not present(folder / name) or (name == "next" and not present(folder / name / MANIFEST)):
            continue  # a `next` without its manifest is a save that was cut short: the one before it counts
        try:
            manifest = _manifest(folder / name, run)
            found.append((manifest["sequence"], name, manifest))
        except StorageError as error:
            problems.append(f"{name}: {_damage(error)}")
    found.sort(key=lambda one: -one[0])
    newest = found[0][1] if found else ""
    if newest == "previous" and not problems:
        # The order of the numbers is the truth; the names can have been exchanged, or one folder removed.
        problems.append("current: is missing or older than previous")
    for _, name, manifest in found:
        try:
            arrays = _verified(folder / name, manifest)
        except StorageError as error:
            problems.append(f"{name}: {_damage(error)}")
            continue
        generation = "previous" if name == "previous" else "current"
        note = f"The {generation} checkpoint is used. Not used: {' | '.join(problems)}" if problems else None
        return Checkpoint(arrays, manifest["meta"], generation, note)
    if problems:
        raise StorageError(
            f"no saved state can be used ({' | '.join(problems)})",
            file=folder,
            remedy="Restore the folder from a copy, or delete the run to start it from the beginning",
        )
    return None


def _promote(folder: Path, run: str) -> None:
    """Move a complete `next` into place; can be stopped anywhere and done again."""
    fresh, current, previous = (folder / name for name in _NEWEST_FIRST)
    if _intact(current, run):
        _remove(previous)
        os.rename(current, previous)
    else:
        _remove(current)
    os.rename(fresh, current)
    sync_folder(folder)


def _manifest(generation: Path, run: str) -> dict[str, Any]:
    manifest = read_sealed(generation / MANIFEST)
    if manifest.get("run") != run:
        raise StorageError(f"belongs to the run {manifest.get('run')}, not {run}", file=generation / MANIFEST)
    sound = manifest.get("format") == 1 and type(manifest.get("sequence")) is int
    if not sound or not isinstance(manifest.get("meta"), dict):
        raise StorageError("is not a manifest that this version reads", file=generation / MANIFEST)
    return manifest


def _verified(generation: Path, manifest: dict[str, Any]) -> dict[str, NDArray[Any]]:
    path = generation / STATE
    arrays = read_tensors(path, digest=str(manifest.get("file")))
    if _described(arrays) != manifest.get("arrays"):
        raise StorageError("does not hold the arrays that its manifest names", file=path)
    return arrays


def _intact(generation: Path, run: str) -> bool:
    try:
        return file_digest(generation / STATE) == _manifest(generation, run).get("file")
    except StorageError as error:
        _damage(error)
        return False


def _sequence(generation: Path, run: str) -> int:
    try:
        return _manifest(generation, run)["sequence"]
    except StorageError as error:
        _damage(error)
        return 0


def _damage(error: StorageError) -> StorageError:
    """`error`, if it says that a file is damaged; raised, if the file could only not be read just now."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EIO):
        raise error
    return error


def _described(arrays: Arrays) -> dict[str, dict[str, Any]]:
    return {name: _description(np.asarray(array, order="C")) for name, array in arrays.items()}


def _description(array: NDArray[Any]) -> dict[str, Any]:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": digest_of(little.tobytes())}


def _remove(generation: Path) -> None:
    # The manifest first: half a generation must not look like a damaged one.
    with suppress(FileNotFoundError):
        os.unlink(generation / MANIFEST)
    with suppress(FileNotFoundError):
        shutil.rmtree(generation)


def discard(folder: Path) -> None:
    """Remove all generations, the manifests first."""
    for name in _NEWEST_FIRST:
        _remove(folder / name)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
