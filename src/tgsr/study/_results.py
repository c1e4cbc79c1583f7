"""A study as its report reads it: what was asked, the records of its runs, and what has no result yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tgsr.study._record import Record

if TYPE_CHECKING:
    from tgsr._result import Result
    from tgsr.study._folder import StudyFolder
    from tgsr.study._probes import Probes


@dataclass(frozen=True)
class Pending:
    """A trial without a result yet."""

    task: str
    role: str
    arm: str
    seed: int
    state: str  # "new", "running", "interrupted", "damaged"
    reason: str


@dataclass(frozen=True, eq=False)
class StudyResults:
    """Everything that tables, figures and the page are made from."""

    name: str
    title: str
    about: str
    profile: str
    budget: str
    preset: str  # in words: the network and the optimiser behind the profile
    records: tuple[Record, ...]  # sources and targets, in the order of the grid
    pending: tuple[Pending, ...] = ()
    folder: Path | None = None  # of the study; None: there are records only
    spec: str = ""  # the text of study.toml
    seeds: tuple[int, ...] = ()

    def result(self, record: Record) -> Result | None:
        """The run behind a record, read back and verified; None where only the record was kept."""
        if self.folder is None or not record.run or not (self.folder / record.run / "spec.json").is_file():
            return None
        from tgsr._runs import load
        from tgsr.storage import RunDirectory

        run = RunDirectory(self.folder / record.run)
        failure = run.failure()
        if failure is not None and not failure["details"]:
            return None  # the process itself ended: there is nothing but its sentence
        return load(run.path)

    def probes(self, record: Record) -> Probes | None:
        """The gate check of a run, computed once; None where only the record was kept, or nothing was scored."""
        from tgsr.study._gate import probed

        return None if self.folder is None else probed(self.folder, record)


def results_of(folder: StudyFolder, reasons: Mapping[str, str] | None = None) -> StudyResults:
    """What a study's folder holds by now. `reasons` says by key why a run could not be carried out."""
    from tgsr.study._preset import preset_words

    records, pending = [], []
    for trial in folder.trials:
        standing = folder.standing(trial)
        record = folder.record(trial, standing)
        if record is not None:
            records.append(record)
        else:
            why = (reasons or {}).get(trial.key, standing.reason)
            pending.append(Pending(trial.task, trial.role, trial.arm, trial.seed, standing.state, why))
    study = folder.study
    budgets = dict.fromkeys(trial.budget for trial in folder.trials if trial.budget is not None)
    return StudyResults(
        name=study.name,
        title=study.title,
        about=study.about,
        profile=study.profile if any(task.builtin for task in study.tasks) else "",
        budget=" and ".join(budgets),
        preset=preset_words(study),
        records=tuple(records),
        pending=tuple(pending),
        folder=folder.path,
        spec=(folder.path / "study.toml").read_text(encoding="utf-8"),
        seeds=tuple(dict.fromkeys(trial.seed for trial in folder.trials if trial.role == "target")),
    )
