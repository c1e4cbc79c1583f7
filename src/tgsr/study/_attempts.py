"""How often a run was started, counted on disk before each start: a run that ends its process cannot do so for ever.

The count lies in the study's folder, `failures/<run>.json`, not in the run directory: the run's own process may be
dead, and the count must outlive it. A run that ends in order on its first start leaves nothing there.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tgsr._errors import StorageError
from tgsr.storage import RunDirectory, read_sealed, write_sealed
from tgsr.storage._atomic import present, storage_error

STARTED, DIED, CRASHED, TIMEOUT = "started", "died", "crashed", "timeout"
BY_PROCESS = (CRASHED, TIMEOUT)  # outcomes of a process, not of a computation: another start may end otherwise


@dataclass(frozen=True)
class Attempts:
    """Starts of a run that did not end in order, the last outcome, and the sentence about it."""

    attempts: int = 0
    outcome: str = ""
    sentence: str = ""


_elsewhere: dict[Path, Attempts] = {}  # of run directories that belong to no study, for this process only


def attempts_of(run: str | os.PathLike[str]) -> Attempts:
    """What is known of the starts of the run at `run`. A count that cannot be read begins again."""
    file = _file(run)
    if file is None:
        return _elsewhere.get(Path(run).absolute(), Attempts())
    if not present(file):
        return Attempts()
    try:
        return Attempts(**read_sealed(file))
    except (StorageError, TypeError):  # it only guards against endless starts, and one more study is not endless
        return Attempts()


def starting(run: str | os.PathLike[str]) -> int:
    """Count a start, before it happens; returns how many there are now."""
    number = attempts_of(run).attempts + 1
    _keep(run, Attempts(number, STARTED))
    return number


def died(run: str | os.PathLike[str], sentence: str) -> None:
    """The process of the last start ended in the midst of the run."""
    _keep(run, Attempts(attempts_of(run).attempts, DIED, sentence))


def ended(run: str | os.PathLike[str], outcome: str, sentence: str = "") -> None:
    """The last start ended in order. Kept only where an earlier one did not, or the process was the reason."""
    before = attempts_of(run).attempts
    if before <= 1 and outcome not in BY_PROCESS:
        _forget(run)
    else:
        _keep(run, Attempts(before, outcome, sentence))


def taken_back(run: str | os.PathLike[str]) -> None:
    """The last start does not count: the user stopped it, or it could not begin."""
    before = attempts_of(run)
    if before.attempts <= 1:
        _forget(run)
    else:
        _keep(run, Attempts(before.attempts - 1, DIED, before.sentence))


def forget_starts(run: str | os.PathLike[str]) -> None:
    """Drop the count of starts that a study left when it was killed itself: those are no fault of the run."""
    if attempts_of(run).outcome in (STARTED, DIED):
        _forget(run)


def forgive(run: str | os.PathLike[str]) -> bool:
    """Give a run that crashed or took too long another chance; returns whether it needed one."""
    directory = RunDirectory(Path(run))
    failure = directory.failure()
    guilty = failure is not None and failure["outcome"] in BY_PROCESS
    if guilty:
        directory.clear_failure()
    needed = guilty or attempts_of(run).attempts > 0
    _forget(run)
    return needed


def failure_of(run: str | os.PathLike[str]) -> str:
    """The sentence of the failure that the run directory records; "" where there is none."""
    try:
        failure = RunDirectory(Path(run)).failure()
    except StorageError as error:
        return str(error)
    return "" if failure is None else str(failure["sentence"])


def _file(run: str | os.PathLike[str]) -> Path | None:
    path = Path(run).absolute()
    study = path.parent.parent
    inside = path.parent.name in ("runs", "sources") and present(study / "study.toml")
    return study / "failures" / f"{path.name}.json" if inside else None


def _keep(run: str | os.PathLike[str], known: Attempts) -> None:
    file = _file(run)
    if file is None:
        _elsewhere[Path(run).absolute()] = known
        return
    try:
        os.makedirs(file.parent, exist_ok=True)
    except OSError as error:
        raise storage_error(error, file.parent) from error
    write_sealed(file, asdict(known))


def _forget(run: str | os.PathLike[str]) -> None:
    file = _file(run)
    _elsewhere.pop(Path(run).absolute(), None)
    try:
        if file is not None:
            os.unlink(file)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(error, file or run) from error
