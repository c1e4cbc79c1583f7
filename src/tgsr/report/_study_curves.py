"""What figures need of the runs themselves, read once: how the parameters came about, and the networks.

The truth is asked of the tasks, for evaluation only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr._errors import InputError, TgsrError
from tgsr.network._saved import SavedNetwork
from tgsr.report._history_panels import closures_of
from tgsr.study._record import Record
from tgsr.study._results import StudyResults

if TYPE_CHECKING:
    from tgsr._result import Result


@dataclass(frozen=True, eq=False)
class Curve:
    """The parameter error of a run in percent, after every closure count at which it is known; it starts at 0."""

    closures: np.ndarray
    error: np.ndarray
    adapted: int | None  # closures spent when the short adaptation ended; None where there was none

    def at(self, closures: np.ndarray | float) -> np.ndarray:
        """The error once so many closures are spent: the last one known, to the end and beyond."""
        return self.error[np.searchsorted(self.closures, closures, side="right") - 1]


class Runs:
    """The runs of a study, each read at most once."""

    def __init__(self, results: StudyResults) -> None:
        self._results = results
        self._curves: dict[str, Curve | None] = {}
        self._networks: dict[str, SavedNetwork | None] = {}

    def curve(self, record: Record) -> Curve | None:
        """None where the run cannot be read or no truth is known."""
        self._read(record)
        return self._curves[record.run]

    def network(self, record: Record) -> SavedNetwork | None:
        """The trained network; None where the run cannot be read."""
        self._read(record)
        return self._networks[record.run]

    def _read(self, record: Record) -> None:
        if record.run in self._curves:
            return
        try:
            result = self._results.result(record) if record.run and record.ok else None
        except TgsrError:
            result = None  # damaged since its record was made: `tgsr study verify` names it
        truth = truth_of(record.task)
        self._networks[record.run] = None if result is None else result.network
        self._curves[record.run] = None if result is None or truth is None else _curve(result, truth.constants)


@dataclass(frozen=True, eq=False)
class KnownTruth:
    """The constants of a task and its exact field."""

    constants: Mapping[str, float]
    field: Callable[..., Any]
    coordinates: Mapping[str, tuple[float, float]]


@lru_cache(maxsize=16)
def truth_of(task: str, role: str = "target") -> KnownTruth | None:
    """That of a built-in task; None for any other."""
    from tgsr.tasks import task as named

    try:
        physics = named(task).physics(role)
    except InputError:
        return None
    return KnownTruth(dict(physics.constants), physics.exact, dict(physics.coordinates))


def _curve(result: Result, truth: Mapping[str, float]) -> Curve | None:
    if not truth or any(name not in result.unknowns for name in truth):
        return None
    guess = np.array([[result.unknowns[name].guess for name in truth]])
    pieces, adapted = [(np.zeros(1), guess)], None
    stage = result.stages.get("adaptation", {})
    if len(stage.get("closures", ())):
        names = [str(name) for name in stage["unknown_names"]]
        pieces.append((stage["closures"], stage["values"][:, [names.index(name) for name in truth]]))
        adapted = int(stage["closures"][-1])
    if len(result.history) and all(name in result.history.unknowns for name in truth):
        main = np.stack([result.history[name] for name in truth], axis=1)
        later = closures_of(result) > (adapted or 0)
        pieces.append((closures_of(result)[later], main[later]))
    final = np.array([[result.unknowns[name].value for name in truth]])
    pieces.append((np.array([max(result.closures, *(float(at.max(initial=0)) for at, _ in pieces))]), final))
    closures, values = (np.concatenate(column) for column in zip(*pieces, strict=True))
    known = np.array([list(truth.values())])
    with np.errstate(over="ignore", invalid="ignore"):
        error = 100.0 * np.mean(np.abs(values - known) / np.where(known == 0, 1.0, np.abs(known)), axis=1)
    order = np.argsort(closures, kind="stable")
    return Curve(closures[order].astype(float), np.where(np.isfinite(error), error, np.inf)[order], adapted)
