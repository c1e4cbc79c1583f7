"""Which run comes when: each once those it needs are finished, a bounded number at a time, none lost."""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tgsr._errors import InputError, InstallationError, TgsrError, plain
from tgsr.storage import RunLockedError
from tgsr.storage._lock import live_holder
from tgsr.study._attempts import failure_of, forget_starts

OK = "finished"
AHEAD = 4  # runs handed over for each worker elsewhere: none waits for the next, and no scheduler holds thousands
_TICK = 1.0
LOCK_PATIENCE = 10.0  # seconds that a run may stay locked by another process once all others are done


@dataclass(frozen=True)
class Job:
    """One run: what must be finished before it, and how its directory is had once that is so.

    `directory` makes the run directory, or gives None where there is nothing left to do; it is called just before the
    run is handed to a worker. A TgsrError from it is the job's failure.
    """

    key: str
    needs: tuple[str, ...]
    directory: Callable[[], Path | None]
    time_limit: float | None = None


@dataclass(frozen=True)
class Event:
    """What became of a job.

    "submitted": handed to a worker. Final: "finished"; "failed", "crashed", "timeout": recorded in the run directory;
    "refused": it could not be run and nothing was recorded, the sentence says why; "blocked": a run that it needs did
    not finish; "interrupted".
    """

    key: str
    state: str
    path: Path | None = None
    sentence: str = ""


class Future(Protocol):
    """The part of `concurrent.futures.Future` that is used."""

    def add_done_callback(self, fn: Callable[[Any], Any], /) -> Any: ...
    def result(self) -> Any: ...
    def cancel(self) -> Any: ...


class Workers(Protocol):
    """Where runs are carried out."""

    def slots(self) -> int:
        """How many runs may be handed over at a time."""
        ...

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Future:
        """Begin or queue a run."""
        ...

    def release(self, future: Any) -> None:
        """Forget a future that is done."""
        ...

    def excuses(self, error: Exception) -> bool:
        """Whether `error` means that a worker was lost and the run is to be submitted again; raises if all are."""
        ...

    def stop(self, paths: Collection[str], futures: Collection[Any]) -> None:
        """Let these runs save a checkpoint and end."""
        ...


def run_jobs(
    jobs: Iterable[Job],
    workers: Workers,
    *,
    attempts: int = 5,
    on_event: Callable[[Event], None] | None = None,
) -> dict[str, Event]:
    """Carry out all jobs; what became of each, in their order.

    Ctrl-C lets the runs under way save a checkpoint, and goes on as KeyboardInterrupt. A broken installation ends
    everything: every run would meet it.
    """
    return _Schedule(jobs, workers, attempts, on_event or (lambda event: None)).run()


class _Schedule:
    def __init__(self, jobs: Iterable[Job], workers: Workers, attempts: int, on_event: Callable[[Event], None]) -> None:
        self.workers, self.attempts, self.on_event = workers, attempts, on_event
        self.jobs: dict[str, Job] = {}
        for job in jobs:
            if job.key in self.jobs:
                raise InputError(f"two jobs are called {plain(job.key, 80)!r}")
            self.jobs[job.key] = job
        self.missing = {key: set(job.needs) for key, job in self.jobs.items()}
        self.dependents: dict[str, list[str]] = {key: [] for key in self.jobs}
        for job in self.jobs.values():
            for need in self.missing[job.key]:
                if need not in self.jobs:
                    raise InputError(f"{plain(job.key, 80)!r} needs {plain(need, 80)!r}, which is no job")
                self.dependents[need].append(job.key)
        self.ready = deque(key for key, needs in self.missing.items() if not needs)
        self.flying: dict[str, tuple[Future, Path]] = {}
        self.locked: dict[str, tuple[Path, RunLockedError]] = {}
        self.landed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.starts: Counter[str] = Counter()
        self.ends: dict[str, Event] = {}
        self.idle_since: float | None = None

    def run(self) -> dict[str, Event]:
        try:
            while self.ready or self.flying or self.locked:
                self._look_at_locked()
                while self.ready and len(self.flying) < self.workers.slots():
                    self._begin(self.ready.popleft())
                self._wait()
        except BaseException:
            self._stop()
            raise
        if len(self.ends) < len(self.jobs):
            circle = next(key for key in self.jobs if key not in self.ends)
            raise InputError(f"{plain(circle, 80)!r} needs itself, by a detour")
        return {key: self.ends[key] for key in self.jobs}

    def _begin(self, key: str) -> None:
        job = self.jobs[key]
        try:
            path = job.directory()
            if path is None:
                return self._end(Event(key, OK))
            if not self.starts[key]:
                forget_starts(path)
        except InstallationError:
            raise
        except TgsrError as error:
            return self._end(Event(key, "refused", sentence=str(error)))
        self.starts[key] += 1
        future = self.workers.submit(str(path), time_limit=job.time_limit, attempts=self.attempts)
        self.flying[key] = future, path
        self.on_event(Event(key, "submitted", path))
        future.add_done_callback(lambda _: self.landed.put(key))

    def _wait(self) -> None:
        """Take in what has ended; wait a moment if nothing has."""
        if not self.flying and not self.locked and self.ready and self.workers.slots():
            return
        with suppress(queue.Empty):
            self._land(self.landed.get(timeout=_TICK))
            while True:
                self._land(self.landed.get_nowait())

    def _land(self, key: str) -> None:
        future, path = self.flying.pop(key)
        try:
            event = Event(key, str(future.result()), path)
        except InstallationError:
            raise
        except RunLockedError as error:
            self.locked[key] = path, error
            return
        except TgsrError as error:
            event = Event(key, "refused", path, str(error))
        except Exception as error:  # of the executor: the run itself never raises anything else
            if self.workers.excuses(error) and self.starts[key] < self.attempts:
                return self.ready.append(key)
            event = Event(key, "refused", path, f"{type(error).__name__}: {plain(error)}")
        finally:
            self.workers.release(future)
        self._end(replace(event, sentence=failure_of(path)) if event.state not in (OK, "refused") else event)

    def _look_at_locked(self) -> None:
        """Runs that another process works on: once it lets go they are tried again, after all others given up."""
        others = bool(self.ready or self.flying)
        self.idle_since = None if others else self.idle_since or time.monotonic()
        for key, (path, error) in list(self.locked.items()):
            if live_holder(path) is None:
                del self.locked[key]
                self.ready.append(key)
            elif self.idle_since is not None and time.monotonic() - self.idle_since > LOCK_PATIENCE:
                del self.locked[key]
                self._end(Event(key, "refused", path, str(error)))

    def _end(self, event: Event) -> None:
        """Note an end and what follows from it."""
        todo = deque([event])
        while todo:
            event = todo.popleft()
            self.ends[event.key] = event
            self.on_event(event)
            for key in self.dependents[event.key]:
                self.missing[key].discard(event.key)
                if event.state != OK and key not in self.ends:
                    reason = f"{event.key} did not finish, and this run starts from it"
                    todo.append(
                        Event(key, "blocked", sentence=reason + (f": {event.sentence}" if event.sentence else ""))
                    )
                elif event.state == OK and not self.missing[key] and key not in self.ends:
                    self.ready.append(key)

    def _stop(self) -> None:
        """Leave nothing running."""
        flying, self.flying = self.flying, {}
        for future, _ in flying.values():
            future.cancel()
        self.workers.stop([str(path) for _, path in flying.values()], [future for future, _ in flying.values()])
