"""Saving a training so that it can go on to the same bits, and stopping it when the user says so."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from tgsr.storage import RunDirectory

SAVE_EVERY = 15.0  # seconds between checkpoints


class InterruptedRunError(KeyboardInterrupt):
    """The user stopped the run; it is saved. The text says how to go on."""

    def __init__(self, message: str, path: Path | None) -> None:
        self.path = path
        super().__init__(message)


class Keeper:
    """Where a training is saved. Without a run directory nothing is written; one that does not write only reads."""

    def __init__(self, directory: RunDirectory | None = None, *, writes: bool = True) -> None:
        self.directory, self.writes = directory, writes and directory is not None
        self.notes: dict[str, Any] = {}  # saved with every checkpoint
        self._last = time.monotonic()

    def restore(self, stage: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The saved state of this stage, if there is one; a note about a damaged generation is logged."""
        if self.directory is None:
            return None
        saved = self.directory.load_checkpoint()
        if saved is None or saved.meta.get("stage") != stage:
            return None
        if saved.note and self.writes:
            self.directory.log("checkpoint", note=saved.note)
        return saved.arrays, saved.meta

    @property
    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.writes and time.monotonic() - self._last >= SAVE_EVERY

    def save(self, stage: str, arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Write a checkpoint."""
        if self.directory is not None and self.writes:
            plain = {name: np.asarray(value) for name, value in arrays.items()}
            self.directory.save_checkpoint(plain, {**meta, **self.notes, "stage": stage})
        self._last = time.monotonic()


def flatten_state(state: Any) -> dict[str, np.ndarray]:
    """A pytree of arrays as named arrays."""
    return {f"state.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}


def restore_state(like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The pytree of `like` with the saved leaves."""
    leaves, tree = jax.tree.flatten(like)
    saved = [arrays[f"state.{i}"] for i in range(len(leaves))]
    return jax.tree.unflatten(
        tree, [jax.numpy.asarray(s, dtype=leaf.dtype) for s, leaf in zip(saved, leaves, strict=True)]
    )


class StopFlag:
    """Set by the first Ctrl-C; the second one stops at once."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def watching_for_interrupt() -> Iterator[StopFlag]:
    """Turn Ctrl-C into a flag that the loop reads between outer epochs, so that what is saved is whole."""
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        if flag.asked:
            raise KeyboardInterrupt
        flag.asked = True

    signal.signal(signal.SIGINT, note)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
