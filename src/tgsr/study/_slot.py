"""A thread's place for its child process: kept from run to run, replaced when worn, stopped from another thread."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Collection
from contextlib import suppress

from tgsr._errors import InstallationError
from tgsr.study._process import Child, ChildEndedError

RUNS, MEMORY = 50, 4 * 2**30  # a child is replaced after so many runs, or when it has come to hold so many bytes
BAD_STARTS = 5  # children killed before they were ready, in a row


class Slot:
    """A thread's place for a child: which run it works on, and whether it was told to stop."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.child: Child | None = None
        self.kind: tuple[int, tuple[str, ...]] | None = None
        self.run: str | None = None
        self.stopping = False
        self.busy = threading.Lock()
        with _registry:
            _slots.add(self)

    def ready_child(self, threads: int, command: tuple[str, ...]) -> Child | None:
        """The kept child, or a new one, that has loaded what it needs; None when told to stop meanwhile."""
        worn = self.child is not None and (self.child.runs >= RUNS or self.child.memory > MEMORY)
        if worn or self.kind != (threads, command):
            self.close()
        self.kind = threads, command
        for _ in range(BAD_STARTS):
            if self.child is None or not self.child.alive:
                self.close()
                self.child = Child(threads, command)
            with suppress(ChildEndedError):  # killed while it loaded: no fault of the run
                self.child.wait_ready()
                return None if self.stopping else self.child
            if self.stopping:
                return None
        raise InstallationError(f"{BAD_STARTS} worker processes in a row were killed while they started")

    def close(self) -> None:
        """End the child."""
        child, self.child = self.child, None
        if child is not None and self.owner == os.getpid():  # never that of a process which forked this one
            child.close()

    def __del__(self) -> None:  # when its thread ends
        self.close()


_registry = threading.Lock()
_slots: weakref.WeakSet[Slot] = weakref.WeakSet()
_here = threading.local()


def _all_slots() -> list[Slot]:
    with _registry:
        return [slot for slot in _slots if slot.owner == os.getpid()]


def own_slot() -> Slot:
    """The slot of the calling thread."""
    slot = getattr(_here, "slot", None)
    if slot is None or slot.owner != os.getpid():
        slot = _here.slot = Slot()
    return slot


def stop_runs(paths: Collection[str | os.PathLike[str]], *, kill: bool = False) -> set[str]:
    """Ask the children of this process that work on `paths` to save a checkpoint and end; or end them at once.

    Returns the paths that were found here.
    """
    wanted, found = {os.path.abspath(path) for path in paths}, set()
    for slot in _all_slots():
        child, run = slot.child, slot.run
        if run in wanted:
            found.add(run)
            slot.stopping = True
            if child is not None and (kill or not child.ready):
                child.kill()
            elif child is not None:
                child.interrupt()
    return found


def close_idle() -> None:
    """End the children of this process that have nothing to do; the next run starts a new one."""
    for slot in _all_slots():
        if slot.busy.acquire(blocking=False):
            try:
                slot.close()
            finally:
                slot.busy.release()


atexit.register(close_idle)
