"""Which run directories can be carried out now: for batch systems that start each run as a job of their own."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import Future
from pathlib import Path
from typing import Any


def ready_directories(study: str | os.PathLike[str], *, out: str | os.PathLike[str] = "studies") -> list[str]:
    """Make the run directories of a study (a file, or its folder) whose sources are finished; those yet to be run.

    Nothing is run. Give it again when these have ended: then it names the runs that start from them.
    """
    from tgsr.study._campaign import Campaign
    from tgsr.study._check import checked
    from tgsr.study._folder import StudyFolder
    from tgsr.study._read import read_study
    from tgsr.study._schedule import run_jobs
    from tgsr.study._trial import Problems

    if Path(study).is_dir():
        folder = StudyFolder.open(study)
        asked = checked(folder.study)
    else:
        asked = read_study(study)
        folder = StudyFolder(Path(out) / asked.name)
    found = _Listed()
    with folder.coordinating():
        folder.ask(asked)
        run_jobs(Campaign(folder, Problems(folder.path)).jobs(), found)
    return found.paths


class _Listed:
    """Workers that only take note: a run that is listed is not finished, so what needs it waits."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def slots(self) -> int:
        return 1

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Future[str]:
        self.paths.append(path)
        listed: Future[str] = Future()
        listed.set_result("listed")
        return listed

    def release(self, future: Any) -> None: ...

    def excuses(self, error: Exception) -> bool:
        return False

    def stop(self, paths: Collection[str], futures: Collection[Any]) -> None: ...
