"""Reading a whole study back: every file of every run, and what is kept beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tgsr._errors import TgsrError
from tgsr.network._manifest import read_network
from tgsr.storage import RunDirectory, find_runs, read_sealed
from tgsr.storage._atomic import files_below, present
from tgsr.study._folder import StudyFolder
from tgsr.study._trial import TRIAL


@dataclass(frozen=True)
class Verified:
    """How much was read, and what is not as it was written."""

    runs: int
    files: int
    problems: tuple[str, ...]


def verified(folder: StudyFolder) -> Verified:
    """Read everything back. Derived files count too: they are made again by the next run."""
    found = [run for part in ("sources", "runs") for run in find_runs(folder.path / part)]
    runs = [run for run in found if any(present(run.path / name) for name in ("spec.json", "result.json"))]
    files, problems = 0, []
    for run in runs:
        files += sum(1 for _ in files_below(run.path))
        problems += [f"{run.path.parent.name}/{run.path.name}: {problem}" for problem in _of_run(run)]
    for trial in folder.trials:
        place = folder.place(trial)
        if place is not None and not present(place / "spec.json"):
            problems.append(f"{place.relative_to(folder.path)}: the run directory is gone")
    for network in sorted((folder.path / "sources").glob("network.*")):
        files += 2
        problems += _tried(network, read_network)
    for part in ("records", "failures"):
        for file in sorted((folder.path / part).glob("[!.]*.json")):
            files += 1
            problems += _tried(file, read_sealed)
    return Verified(len(runs), files, tuple(problems))


def _of_run(run: RunDirectory) -> list[str]:
    found = run.verify()
    recipe = run.path / TRIAL
    return found or (_tried(recipe, read_sealed) if present(recipe) else [])


def _tried(path: Path, read: Callable[[Path], object]) -> list[str]:
    try:
        read(path)
    except TgsrError as error:
        return [str(error)]
    return []
