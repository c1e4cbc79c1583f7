"""A study on disk. What is asked for and every run are the truth; places, records and the index follow from them.

    study.toml                   the study             grid.json            its trials (derived)
    sources/<run>/ runs/<run>/   the run directories   trials.jsonl         which run a trial is (derived)
    failures/<run>.json          processes that died   records/<run>.json   what came out (derived)
    coordinator/                 who runs it now       index.parquet        all records as a table (derived)

Nothing here loads what computes, except making records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tgsr._errors import InputError, StorageError, TgsrError, shown_path
from tgsr.storage import RunDirectory, RunLockedError, file_digest, read_bytes, read_sealed, write_bytes, write_sealed
from tgsr.storage._atomic import present, storage_error
from tgsr.storage._lock import hold, live_holder
from tgsr.storage._log import append
from tgsr.storage._log import read as read_log
from tgsr.study._grid import Trial, expand
from tgsr.study._kept import kept_record
from tgsr.study._read import parsed_study
from tgsr.study._record import Record
from tgsr.study._spec import Study
from tgsr.study._toml import as_toml

SPEC, GRID, PLACES = "study.toml", "grid.json", "trials.jsonl"
COORDINATOR, DAMAGED = "coordinator", "damaged"
ENDED = ("finished", "failed")


@dataclass(frozen=True)
class Standing:
    """Where a trial stands: 'finished', 'failed', 'running', 'interrupted', 'damaged', 'new' or 'blocked'."""

    state: str
    reason: str
    run: Path | None = None
    record: Record | None = None


class StudyFolder:
    """The folder of a study."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StudyFolder:
        """The folder at `path`, which must hold a study."""
        folder = cls(path)
        if not present(folder.path / SPEC):
            remedy = "Give the folder of a study, such as studies/layer, or its file"
            raise InputError(f"holds no {SPEC}", file=shown_path(folder.path), remedy=remedy)
        return folder

    def ask(self, study: Study) -> None:
        """Make this the folder of `study`; what other specs of the same name have left in it stays."""
        for part in ("runs", "sources", "failures", "records", COORDINATOR):
            self._made(part)
        text = as_toml(study, self.path).encode()
        if not present(self.path / SPEC) or read_bytes(self.path / SPEC) != text:
            write_bytes(self.path / SPEC, text)
        trials = expand(study, self.path)
        grid = {"study": file_digest(self.path / SPEC), "trials": [trial.as_json() for trial in trials]}
        write_sealed(self.path / GRID, grid)
        self.__dict__.pop("study", None)
        self.__dict__["trials"] = trials

    def _made(self, part: str) -> Path:
        try:
            os.makedirs(self.path / part, exist_ok=True)
        except OSError as error:
            raise storage_error(error, self.path / part) from error
        return self.path / part

    @cached_property
    def study(self) -> Study:
        """What is asked for."""
        return parsed_study(self.path / SPEC)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All runs that are asked for, sources first."""
        with suppress(StorageError, KeyError, TypeError):  # derived: expanded again where it cannot be read
            grid = read_sealed(self.path / GRID)
            if grid["study"] == file_digest(self.path / SPEC):
                return tuple(Trial.from_json(one) for one in grid["trials"])
        return expand(self.study, self.path)

    @cached_property
    def by_key(self) -> dict[str, Trial]:
        """The trials by key."""
        return {trial.key: trial for trial in self.trials}

    @cached_property
    def places(self) -> dict[str, str]:
        """The run directories of the trials by key, as far as they have been made."""
        found = {}
        for line in read_log(self.path / PLACES):
            if isinstance(line.get("key"), str) and isinstance(line.get("run"), str):
                found[line["key"]] = line["run"]
        return {key: run for key, run in found.items() if run}

    def place(self, trial: Trial) -> Path | None:
        """The run directory of a trial, where it has been made."""
        run = self.places.get(trial.key)
        return None if run is None else self.path / run

    def put(self, trial: Trial, run: Path) -> None:
        """Remember the run directory of a trial. Where a source has changed, its targets have none any more."""
        name = run.relative_to(self.path).as_posix()
        if self.places.get(trial.key) != name:
            for other in self.trials if trial.key in self.places else ():
                if other.source == trial.key:
                    self.forget(other)
            append(self.path / PLACES, "made", {"key": trial.key, "run": name})
            self.places[trial.key] = name

    def forget(self, trial: Trial) -> None:
        """The trial is no longer the run that it was."""
        if self.places.pop(trial.key, None) is not None:
            append(self.path / PLACES, "changed", {"key": trial.key, "run": ""})

    def standing(self, trial: Trial) -> Standing:
        """Where a trial stands. Of a run that has its record nothing else is read; `verify` reads everything."""
        place = self.place(trial)
        if place is None or not present(place / "spec.json"):
            above = self.by_key.get(trial.source or "")
            if above is not None and (before := self.standing(above)).state == "failed":
                return Standing("failed", f"Its source run failed: {before.reason}")
            return Standing("new", "not begun")
        record = kept_record(place)
        if record is not None:
            return Standing("finished" if record.ok else "failed", record.sentence, place, record)
        status = RunDirectory(place).status()
        return Standing(status.state, status.reason, place)

    def record(self, trial: Trial, standing: Standing | None = None) -> Record | None:
        """The record of a trial that has ended, made now if it is not there; None for the others."""
        standing = standing or self.standing(trial)
        if standing.state not in ENDED:
            return None
        if standing.run is None:
            return self._blocked(trial, standing.reason)
        record = standing.record
        if record is None:
            from tgsr.study._evaluate import keep_record
            from tgsr.study._trial import Problems

            record = keep_record(RunDirectory(standing.run), trial, self._problems(Problems))
        return replace(record, arm=trial.arm, task=trial.task)

    def _problems(self, kind: Any) -> Any:
        return self.__dict__.setdefault("problems", kind(self.path))

    def _blocked(self, trial: Trial, reason: str) -> Record:
        from tgsr.study._evaluate import infinite_errors
        from tgsr.study._trial import Problems

        errors = infinite_errors(trial, self._problems(Problems))[0]
        return Record(
            trial.task, trial.role, trial.arm, trial.method, trial.seed, run="", outcome="failed", ok=False,
            sentence=reason, options=dict(trial.options), profile=trial.profile, budget=trial.budget or "",
            errors=errors,
        )  # fmt: skip

    @contextmanager
    def coordinating(self) -> Iterator[None]:
        """Be the one process that runs this study."""
        own = self._made(COORDINATOR)
        try:
            with hold(own):
                yield
        except RunLockedError as error:
            if error.file != str(own / "lock"):
                raise
            raise InputError(
                f"this study is being run already ({error.what.partition(' is ')[0]})",
                file=shown_path(self.path),
                remedy="Watch it with `tgsr study status`, or stop that process first",
            ) from error

    def note_jobs(self, jobs: int) -> None:
        """For `tgsr study status`: how many runs are computed at a time now."""
        write_sealed(self.path / COORDINATOR / "now.json", {"jobs": jobs})

    def coordinator(self) -> tuple[str, int] | None:
        """Which process runs the study now, and with how many jobs."""
        try:
            holder = live_holder(self.path / COORDINATOR)
            if holder is None:
                return None
            return f"process {holder.pid} on {holder.host}", int(
                read_sealed(self.path / COORDINATOR / "now.json")["jobs"]
            )
        except (TgsrError, KeyError):
            return None

    def set_aside(self, run: Path) -> Path:
        """Move a damaged run out of the way: it is made anew, and nothing is deleted."""
        number = 0
        while present(target := self._made(DAMAGED) / f"{run.name}.{number}"):
            number += 1
        try:
            os.rename(run, target)
        except OSError as error:
            raise storage_error(error, run) from error
        return target
