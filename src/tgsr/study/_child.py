"""`run_directory`: what every worker does, wherever it runs. It feeds one kept child process per thread.

The argument is a path, so nothing is pickled but a string. A child that dies is replaced and the run started again; the
starts are counted on disk, so that they also end where the worker itself is what dies.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from tgsr._errors import InputError, InstallationError, StorageError
from tgsr.storage import RunDirectory, RunLockedError
from tgsr.storage._atomic import present
from tgsr.storage._lock import live_holder
from tgsr.study import _attempts
from tgsr.study._process import COMMAND, Child, ChildEndedError
from tgsr.study._slot import Slot, own_slot

LOCK_PATIENCE = 3.0  # seconds that a run may be locked by another process before that is an error
SAVE_PATIENCE = 10.0  # seconds that a stopped run has to save a checkpoint

_FINISHED, _FAILED, _INTERRUPTED = "finished", "failed", "interrupted"
_KINDS = {"InstallationError": InstallationError, "StorageError": StorageError}
State = str  # "finished", "failed", "crashed", "timeout" (all recorded in the run directory), or "interrupted"


def run_directory(
    path: str | os.PathLike[str],
    *,
    threads: int = 1,
    time_limit: float | None = None,
    attempts: int = 5,
    command: tuple[str, ...] = COMMAND,
) -> State:
    """Carry out the run at `path` in this thread's child; how it ended.

    Errors are raised where nothing could be recorded in the run directory: it cannot be read or is locked, the disk is
    full, the installation is broken.
    """
    where = os.path.abspath(path)
    run = _seen(where)
    slot = own_slot()
    with slot.busy:
        slot.run, slot.stopping = where, False
        try:
            return _until_it_ends(slot, run, threads, time_limit, attempts, command)
        finally:
            slot.run = None


def stop_holders(paths: Collection[str]) -> set[str]:
    """Stop the runs of other processes of this machine, which the locks name, as Ctrl-C would.

    Returns the paths that were found; a second signal would not let them save.
    """
    found = set()
    for path in paths:
        holder = live_holder(Path(path))
        if holder is not None and holder.host == socket.gethostname() and holder.started:
            found.add(path)
            with suppress(OSError):
                os.kill(holder.pid, signal.SIGINT)
    return found


def locked(paths: Collection[str]) -> bool:
    """Whether somebody works on one of `paths`."""
    return any(live_holder(Path(path)) is not None for path in paths)


def _seen(where: str) -> RunDirectory:
    run = RunDirectory(Path(where))
    if not present(run.path / "spec.json"):
        raise InputError(
            "there is no run directory here",
            file=where,
            remedy="On a cluster every worker needs the study's folder under the same path",
        )
    return run


def _until_it_ends(
    slot: Slot, run: RunDirectory, threads: int, limit: float | None, attempts: int, command: tuple[str, ...]
) -> State:
    patience = time.monotonic() + LOCK_PATIENCE
    while True:
        if _finished(run):  # by a worker that died before it could say so, or before this study
            _attempts.ended(run.path, _FINISHED)
            return _FINISHED
        if holder := live_holder(run.path):
            if time.monotonic() > patience or slot.stopping:
                raise RunLockedError(
                    f"process {holder.pid} on {holder.host} is working on this run",
                    file=run.path,
                    remedy="Wait for it or stop it; if that machine is gone for good, delete the file lock",
                )
            time.sleep(0.2)
            continue
        before = _attempts.attempts_of(run.path)
        if before.attempts >= attempts:
            return _gave_up(run, _attempts.CRASHED, _crash_sentence(before))
        child = slot.ready_child(threads, command)
        if child is None:
            return _INTERRUPTED
        state = _one_start(slot, child, run, limit)
        if state is not None:
            return state


def _one_start(slot: Slot, child: Child, run: RunDirectory, limit: float | None) -> State | None:
    """One start of a run, counted; how it ended, or None where another one is due."""
    _attempts.starting(run.path)
    try:
        answer = child.ask(str(run.path), limit)
    except TimeoutError:
        return _gave_up(run, _attempts.TIMEOUT, f"The time limit of {limit:g} seconds was reached.")
    except ChildEndedError as error:
        if slot.stopping:
            _attempts.taken_back(run.path)
            return _INTERRUPTED
        _attempts.died(run.path, str(error))
        return None
    except KeyboardInterrupt:  # this thread is the main one, and the child heard nothing of Ctrl-C
        child.settle(SAVE_PATIENCE)
        _attempts.taken_back(run.path)
        raise
    state = answer["state"]
    if state in (_FINISHED, _FAILED):
        _attempts.ended(run.path, state)
        return state
    if state == _INTERRUPTED or answer["kind"] == "RunLockedError":  # in that instant: the caller waits for the lock
        _attempts.taken_back(run.path)
        return _INTERRUPTED if state == _INTERRUPTED else None
    if answer["kind"] == "MemoryError":  # a new process has more of it
        slot.close()
        _attempts.died(run.path, f"its process ran out of memory ({answer['sentence']})")
        return None
    if not answer["kind"]:  # neither we nor the disk: the user's code, which would do the same again
        return _gave_up(run, _FAILED, answer["sentence"])
    _attempts.taken_back(run.path)
    raise _KINDS.get(answer["kind"], InputError)(answer["sentence"])


def _finished(run: RunDirectory) -> bool:
    return present(run.path / "result.json") and run.status().state == _FINISHED


def _gave_up(run: RunDirectory, outcome: str, sentence: str) -> State:
    """Record how a run ended that could not do so itself."""
    with run.lock():
        if _finished(run):
            outcome, sentence = _FINISHED, ""
        else:
            run.record_failure(outcome, sentence, {})
    _attempts.ended(run.path, outcome, sentence)
    return outcome


def _crash_sentence(known: _attempts.Attempts) -> str:
    last = known.sentence or "nothing is known of the last time"
    return (
        f"The run was started {_times(known.attempts)}, and its process always ended before it did ({last}). "
        "Memory may have run out: try fewer points or a smaller network."
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
