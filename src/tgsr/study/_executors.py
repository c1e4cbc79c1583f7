"""Where runs are carried out: processes on this machine, a Dask cluster, or any `concurrent.futures` executor.

All three call the same function with the path of a run directory, and differ in nothing that a run depends on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tgsr._errors import InputError, plain
from tgsr.study._child import SAVE_PATIENCE, run_directory, stop_holders
from tgsr.study._process import COMMAND
from tgsr.study._schedule import AHEAD as AHEAD
from tgsr.study._schedule import Workers
from tgsr.study._slot import Slot, own_slot, stop_runs

if TYPE_CHECKING:
    from distributed import Client

UNKNOWN = 16  # workers assumed of an executor that does not say


@contextmanager
def workers(
    *,
    jobs: int | None = None,
    client: Client | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    folder: str | os.PathLike[str] | None = None,
    threads: int = 1,
    command: tuple[str, ...] = COMMAND,
) -> Iterator[Workers]:
    """The workers that the arguments mean, closed at the end; by default `jobs` processes (2) on this machine.

    `folder` is the study's: the workers of a cluster are asked whether they see it.
    """
    given = {"client": client, "executor": executor, "scheduler": scheduler, "scheduler_file": scheduler_file}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        what = f"{' and '.join(named)} say different things about where to run"
        raise InputError(what, field=named[1], remedy="Give one of them")
    task = partial(run_directory, threads=threads, command=command)
    if executor is not None:
        yield OtherWorkers(executor, task)
    elif named:
        from tgsr.study._cluster import cluster

        with cluster(client, scheduler, scheduler_file, insecure=insecure, folder=folder, task=task) as there:
            yield there
    else:
        with LocalWorkers(2 if jobs is None else jobs, task) as here:
            yield here


class LocalWorkers:
    """Threads of this process, each with a child. Nothing listens on a port."""

    def __init__(self, jobs: int, task: Callable[..., str]) -> None:
        if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= 4096:
            raise InputError(f"jobs is {plain(jobs, 40)!r}", field="jobs", remedy="Give a whole number from 1")
        self.jobs, self.task = jobs, task
        self.own: list[Slot] = []
        self.pool = ThreadPoolExecutor(jobs, "tgsr-run", initializer=lambda: self.own.append(own_slot()))

    def slots(self) -> int:
        """Twice as many as there are children: the next run's directory is made while the last one is computed."""
        return 2 * self.jobs

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Future[str]:
        """Queue a run."""
        return self.pool.submit(self.task, path, time_limit=time_limit, attempts=attempts)

    def release(self, future: Future[str]) -> None:
        """Nothing is kept."""

    def excuses(self, error: Exception) -> bool:
        """A child that dies never shows here."""
        return False

    def stop(self, paths: Collection[str], futures: Collection[Future[str]]) -> None:
        """Let the children save a checkpoint; end those that do not."""
        try:
            self._tell(kill=False)
            end = time.monotonic() + SAVE_PATIENCE
            while any(slot.run for slot in self.own) and time.monotonic() < end:
                time.sleep(0.05)
        finally:  # also at a second Ctrl-C
            self._tell(kill=True)

    def _tell(self, *, kill: bool) -> None:
        # by what the slots work on: the interrupt may have come before the schedule knew of a run
        self.pool.shutdown(wait=False, cancel_futures=True)
        stop_runs([slot.run for slot in self.own if slot.run], kill=kill)

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)
        for slot in self.own:
            slot.close()


class OtherWorkers:
    """An executor of the user's: threads or processes here or elsewhere. It stays open."""

    def __init__(self, executor: Executor, task: Callable[..., str]) -> None:
        if not callable(getattr(executor, "submit", None)):
            raise InputError(f"{plain(executor, 60)!r} is no executor", field="executor", remedy="It needs `submit`")
        self.executor, self.task = executor, task

    def slots(self) -> int:
        """A few for each worker, as far as the executor says how many it has."""
        count = getattr(self.executor, "_max_workers", None)
        return AHEAD * (count if isinstance(count, int) and count > 0 else UNKNOWN)

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Future[str]:
        """Queue a run."""
        return self.executor.submit(self.task, path, time_limit=time_limit, attempts=attempts)

    def release(self, future: Future[str]) -> None:
        """The schedule holds the last reference."""

    def excuses(self, error: Exception) -> bool:
        """An executor that has lost a process takes no more work."""
        if isinstance(error, (BrokenExecutor, CancelledError)):
            raise InputError(
                f"the executor gave up: {plain(error) or type(error).__name__}",
                remedy="Finished runs are kept; run the study again. With jobs=N a lost process is replaced",
            ) from error
        return False

    def stop(self, paths: Collection[str], futures: Collection[Future[str]]) -> None:
        """Let runs on this machine save a checkpoint; those elsewhere go on to their end."""
        elsewhere = set(map(os.path.abspath, paths)) - stop_runs(paths)
        end = time.monotonic() + SAVE_PATIENCE
        while not all(future.done() for future in futures) and time.monotonic() < end:
            elsewhere -= stop_holders(elsewhere)  # again: a pool of processes begins what it has taken already
            time.sleep(0.05)
