"""One writer per run directory: the file `lock` says which process it is.

The file appears whole (a hard link to a finished one), so nobody reads half of it, and of two processes that
try at once one wins, on one machine or on a shared disk. A lock whose process is gone is taken over, under a
kernel lock on the folder: two that take over at once cannot remove each other's new lock.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tgsr._errors import StorageError
from tgsr.storage._atomic import storage_error, sweep
from tgsr.storage._json import read_sealed, write_sealed

LOCK = "lock"


class RunLockedError(StorageError):
    """Another live process works in this run directory."""


@dataclass(frozen=True)
class Holder:
    """The process behind a lock. `boot` and `started` tell it from a later one with the same number."""

    pid: int
    host: str
    boot: str
    started: str

    def alive(self) -> bool:
        """Whether it can still be running. On another host nobody can tell from here, so yes."""
        if self.host != socket.gethostname():
            return True
        if self.boot != _boot() or self.pid <= 0:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass  # it exists and belongs to someone else
        state, started = _process(self.pid)
        return state not in ("Z", "X") and (not self.started or not started or self.started == started)


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder` for the length of a with-block, and sweep what a killed holder left."""
    with guard(folder):
        _acquire(folder, _this_process())
        sweep(folder)
    try:
        yield
    finally:
        drop(folder)


def drop(folder: Path) -> None:
    """Give up the lock of `folder` if this process holds it; also for one that is about to end in mid-work.

    Processes on other hosts cannot see that the holder is gone; without the lock they need not.
    """
    with suppress(OSError, StorageError):
        if _read(folder) == _this_process():
            os.unlink(folder / LOCK)


def live_holder(folder: Path) -> Holder | None:
    """The live process that holds `folder`, if one does."""
    holder = _read(folder)
    return holder if holder is not None and holder.alive() else None


@contextmanager
def guard(folder: Path) -> Iterator[None]:
    """A kernel lock on the folder itself, for the moments in which `lock` changes or leftovers are swept."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, folder) from error


def _acquire(folder: Path, mine: Holder) -> None:
    _refuse_live(folder)
    with suppress(FileNotFoundError):
        os.unlink(folder / LOCK)  # what is left is stale, and under the guard nobody here can have renewed it
    offer = folder / f".{LOCK}.{secrets.token_hex(6)}.tmp"
    try:
        write_sealed(offer, asdict(mine))
        os.link(offer, folder / LOCK)
    except FileExistsError:  # a process on another host of a shared disk was faster
        _refuse_live(folder)
        raise
    finally:
        with suppress(FileNotFoundError):
            os.unlink(offer)


def _refuse_live(folder: Path) -> None:
    if (holder := live_holder(folder)) is not None:
        raise RunLockedError(
            f"process {holder.pid} on {holder.host} is working on this run",
            file=folder / LOCK,
            remedy="Wait for it or stop it; if that machine is gone for good, delete the lock file",
        )


def _read(folder: Path) -> Holder | None:
    path = folder / LOCK
    try:
        return Holder(**read_sealed(path))
    except (StorageError, TypeError) as error:
        if not os.path.lexists(path):
            return None
        raise StorageError(
            f"the lock cannot be read ({error})",
            file=path,
            remedy="If no process works on this run, delete the lock file",
        ) from error


def _this_process() -> Holder:
    return Holder(os.getpid(), socket.gethostname(), _boot(), _process(os.getpid())[1])


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _process(pid: int) -> tuple[str, str]:
    """State letter and start time of a process, as the kernel gives them; empty where it does not."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return fields[0], fields[19]
    return "", ""
