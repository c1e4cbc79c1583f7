"""A small run, and a disk that fails at the call one chooses."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tgsr.storage import RunDirectory, npz_bytes

CALLS = "open write read close fsync stat lstat fstat scandir mkdir rmdir unlink rename replace link".split()


class Killed(BaseException):
    """The process ends here."""


class FaultyDisk:
    """Counts the I/O calls of `os` and fails the k-th (k = 0: none).

    Modes: "error" fails one call with an OSError, "abrupt" with a BaseException; "dead" lets the k-th call do
    half of its work and no later call do anything, as kill -9 would; "full" writes half and is out of space.
    """

    def __init__(self, fail_at: int = 0, mode: str = "error", code: int = errno.ENOSPC) -> None:
        self.fail_at, self.mode, self.code = fail_at, mode, code
        self.count, self.failed = 0, ""

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.fail_at and (self.count == self.fail_at or (self.mode == "dead" and self.failed)):
                first, self.failed = not self.failed, self.failed or name
                if name == "close":
                    real(*args, **kwargs)
                if name == "write" and first and self.mode in ("dead", "full"):
                    real(args[0], args[1][: len(args[1]) // 2])
                if self.mode in ("dead", "abrupt"):
                    raise Killed(name)
                raise OSError(self.code, os.strerror(self.code))
            # The page cache survives a kill: what fsync does cannot be seen here, only that it was called.
            return None if name == "fsync" else real(*args, **kwargs)

        return call

    @contextmanager
    def installed(self) -> Iterator[FaultyDisk]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self.wrap(name, getattr(os, name)))
            yield self


def state(step: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A checkpoint's content, every number of which depends on `step`."""
    arrays = {
        "weights": np.linspace(0.0, 1.0, 30).reshape(5, 6) + step,
        "single": np.full((3,), step, np.float32),
        "scalar": np.array(0.1 * step),
        "empty": np.zeros((0, 4)),
        "key": np.array([step % 256, 7], np.uint8),
        "mask": np.array([True, False, step % 2 == 0]),
    }
    return arrays, {"step": step, "loss": 1.0 / (step + 3), "cursor": [step, None, float("inf")]}


def same(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> bool:
    """Whether two sets of arrays agree in name, type, shape and every bit."""
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype
        and left[name].shape == right[name].shape
        and left[name].tobytes() == right[name].tobytes()
        for name in left
    )


def step_of(run: RunDirectory) -> int:
    """The step of the state that loads, once every bit of it is right; 0 if none was saved."""
    checkpoint = run.load_checkpoint()
    if checkpoint is None:
        return 0
    arrays, meta = state(checkpoint.meta["step"])
    assert checkpoint.meta == meta
    assert same(checkpoint.arrays, arrays)
    return meta["step"]


def new_run(root: Path, name: str = "rod", seed: int = 0) -> RunDirectory:
    data = npz_bytes({"u": np.arange(5.0)})
    return RunDirectory.create(root, name, {"width": 4, "rate": 0.1}, data, b"problem = None\n", seed)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Everything below `folder`: the bytes of files, None for folders."""
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in found}
