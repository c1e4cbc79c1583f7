"""Running a study: what is missing becomes jobs, and every run that ends becomes a record."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgsr.study._campaign import Campaign
from tgsr.study._check import checked
from tgsr.study._executors import workers
from tgsr.study._folder import StudyFolder
from tgsr.study._index import write_index
from tgsr.study._progress import StudyProgress, Watch
from tgsr.study._results import StudyResults, results_of
from tgsr.study._schedule import Workers, run_jobs
from tgsr.study._spec import Study
from tgsr.study._trial import Problems, carry_out

if TYPE_CHECKING:
    from distributed import Client

JOBS = 2


def run_study(
    study: Study,
    *,
    folder: StudyFolder | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] = "studies",
    client: Client | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    scheduler_file: str | os.PathLike[str] | None = None,
    insecure: bool = False,
    threads: int = 1,
    again: bool = False,
    progress: Callable[[StudyProgress], None] | None = None,
) -> StudyResults:
    """Run what is missing of a study, kept in `folder` or else in `out`/name: see `Study.run`."""
    folder = folder or StudyFolder(Path(out) / study.name)
    asked = checked(study)
    problems = Problems(folder.path)
    where: dict[str, Any] = {"client": client, "executor": executor, "scheduler": scheduler}
    where |= {"scheduler_file": scheduler_file, "insecure": insecure, "threads": threads}
    with folder.coordinating():
        folder.ask(asked)
        for trial in {trial.file: trial for trial in folder.trials if trial.file is not None}.values():
            problems.file(trial)  # a file that cannot be used is told before anything runs
        campaign = Campaign(folder, problems, again)
        with _here() if jobs == 0 else workers(jobs=jobs, folder=folder.path, **where) as there:
            watch = Watch(folder, there, progress)
            run_jobs(campaign.jobs(asked.time_limit), there, attempts=asked.attempts, on_event=watch.event)
        results = results_of(folder, watch.reasons)
        write_index(folder.path, results.records)
        return results


@contextmanager
def _here() -> Iterator[Workers]:
    yield InThisProcess()


class InThisProcess:
    """Runs one after the other where the study is coordinated."""

    jobs = 1

    def slots(self) -> int:
        """One at a time."""
        return 1

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Future[str]:
        """Carry the run out at once."""
        done: Future[str] = Future()
        try:
            done.set_result(carry_out(path))
        except Exception as error:  # the schedule tells what it means
            done.set_exception(error)
        return done

    def release(self, future: Future[str]) -> None:
        """Nothing is kept."""

    def excuses(self, error: Exception) -> bool:
        """An error here would be the same again."""
        return False

    def stop(self, paths: Collection[str], futures: Collection[Future[str]]) -> None:
        """Nothing runs beside."""
