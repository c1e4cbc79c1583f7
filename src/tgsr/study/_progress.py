"""How far a study is: counted from what lies on disk, with the time left guessed from the runs that have ended."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tgsr.study._executors import AHEAD
from tgsr.study._folder import ENDED, StudyFolder
from tgsr.study._grid import Trial
from tgsr.study._kept import kept_record
from tgsr.study._schedule import Event, Workers


@dataclass(frozen=True)
class StudyProgress:
    """Trials by state, and seconds: spent by this process, and left (NaN where nothing is known yet)."""

    total: int
    finished: int
    failed: int
    running: tuple[str, ...]
    seconds: float
    left: float
    latest: str = ""


class Pace:
    """Mean seconds of the runs that have ended: of the same arm, else of the same task, else of all."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])

    def add(self, trial: Trial, seconds: float) -> None:
        """Take note of a run."""
        if math.isfinite(seconds):
            for key in _keys(trial):
                self._known[key][0] += seconds
                self._known[key][1] += 1

    def left(self, trials: Iterable[Trial], jobs: int) -> float:
        """Seconds that these trials will take together."""
        total = 0.0
        for trial in trials:
            known = next((self._known[key] for key in _keys(trial) if key in self._known), None)
            if known is None:
                return math.nan
            total += known[0] / known[1]
        return total / max(jobs, 1)


def _keys(trial: Trial) -> tuple[tuple[str, ...], ...]:
    return (trial.task, trial.role, trial.arm), (trial.task, trial.role), (trial.task,), ()


class Watch:
    """Follows the events of a schedule and tells of each."""

    def __init__(self, folder: StudyFolder, there: Workers, tell: Callable[[StudyProgress], None] | None) -> None:
        self.folder, self.there, self.tell = folder, there, tell
        self.pace, self.began = Pace(), time.monotonic()
        self.states: dict[str, str] = {}
        self.reasons: dict[str, str] = {}  # of runs that could not be carried out
        self.told_jobs = 0
        for key, trial in folder.by_key.items():
            place = folder.place(trial)
            record = None if place is None else kept_record(place)
            if record is not None:
                self.pace.add(trial, record.seconds)
                self.states[key] = "finished" if record.ok else "failed"

    def event(self, event: Event) -> None:
        """What became of a trial."""
        trial, state = self.folder.by_key[event.key], event.state
        if event.path is None and state == "finished":  # it had ended before; with what, its record says
            state = self.states.get(event.key, state)
        self.states[event.key] = state
        if event.sentence:
            self.reasons[event.key] = event.sentence
        if event.state == "finished" and event.path is not None:
            record = kept_record(event.path)
            if record is not None:
                self.pace.add(trial, record.seconds)
        if self.jobs() != self.told_jobs:
            self.told_jobs = self.jobs()
            self.folder.note_jobs(self.told_jobs)
        if self.tell is not None and (event.path is not None or event.state != "finished"):
            self.tell(self._progress(trial, event))

    def jobs(self) -> int:
        """How many runs are computed at a time; workers elsewhere are handed a few each."""
        own = getattr(self.there, "jobs", None)
        return own if isinstance(own, int) else max(1, self.there.slots() // AHEAD)

    def _progress(self, trial: Trial, event: Event) -> StudyProgress:
        states, jobs = self.states, self.jobs()
        left = [one for key, one in self.folder.by_key.items() if states.get(key, "submitted") == "submitted"]
        running = [name_of(self.folder.by_key[key]) for key, state in states.items() if state == "submitted"]
        finished = sum(state == "finished" for state in states.values())
        failed = sum(state not in ("finished", "submitted") for state in states.values())
        latest = f"{name_of(trial)}: {event.state}" + (f" ({event.sentence})" if event.sentence else "")
        return StudyProgress(
            len(self.folder.by_key), finished, failed, tuple(running[:jobs]), time.monotonic() - self.began,
            self.pace.left(left, jobs), latest,
        )  # fmt: skip


def name_of(trial: Trial) -> str:
    """A trial in words."""
    return f"{trial.task}, {trial.arm}, seed {trial.seed}"


def summary(folder: StudyFolder) -> dict[str, Any]:
    """How a study stands, from its folder alone: for `tgsr study status` and its JSON."""
    standings = {key: folder.standing(trial) for key, trial in folder.by_key.items()}
    counts = {state: 0 for state in (*ENDED, "running", "interrupted", "damaged", "new")}
    pace, waiting = Pace(), []
    for key, standing in standings.items():
        trial = folder.by_key[key]
        counts[standing.state] += 1
        if standing.record is not None:
            pace.add(trial, standing.record.seconds)
        if standing.state not in ENDED:
            waiting.append(trial)
    now = folder.coordinator()
    jobs = 1 if now is None else now[1]
    failed = [
        {"trial": name_of(folder.by_key[key]), "reason": standing.reason}
        for key, standing in standings.items()
        if standing.state == "failed"
    ]
    return {
        "study": folder.study.name,
        "folder": str(folder.path),
        "runs": len(standings),
        "finished": counts["finished"],
        "failed": counts["failed"],
        "running": counts["running"],
        "interrupted": counts["interrupted"],
        "damaged": counts["damaged"],
        "missing": counts["new"],
        "seconds_left": pace.left(waiting, jobs),
        "jobs": None if now is None else now[1],
        "coordinator": None if now is None else now[0],
        "running_now": [name_of(folder.by_key[k]) for k, s in standings.items() if s.state == "running"],
        "failures": failed,
    }
