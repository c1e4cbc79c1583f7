"""One trial: from its recipe to the request that `tgsr.transfer` would make of it, and carried out in its directory.

The request is built twice, by whoever makes the run directory and by the process that computes, and both must get the
same id. Of a built-in task's case, or a user's file, only the problem is read here, never the truth.
"""

from __future__ import annotations

import copy
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError, InstallationError, StorageError, TgsrError, plain
from tgsr._held_out import _rows
from tgsr._outcomes import Outcome
from tgsr._problem_file import UserFile, read_problem
from tgsr._random import stream
from tgsr._request import Request, solve_request, transfer_request
from tgsr.methods import Method, needs_source
from tgsr.network._manifest import read_network
from tgsr.network._propagate import MLP
from tgsr.network._saved import SavedNetwork
from tgsr.problem import Problem
from tgsr.storage import RunDirectory, canonical_json, read_sealed, write_sealed
from tgsr.storage._atomic import digest_of
from tgsr.storage._checkpoint import discard
from tgsr.storage._identity import run_id
from tgsr.study._grid import Trial
from tgsr.study._settings import method_of, network_of, training_of
from tgsr.tasks import task
from tgsr.training import Training

TRIAL = "trial.json"
FORMAT = 1


@dataclass(frozen=True, eq=False)
class Start:
    """A problem, and how it is trained if nothing else is said."""

    problem: Problem
    network: MLP | None
    training: Training | None  # of the profile; a file has none


class Problems:
    """The problems of a study's trials, each built once: all arms get the very same readings and first guesses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, UserFile] = {}
        self._methods: dict[str, Method] = {}
        self._starts: dict[tuple[Any, ...], Start] = {}

    def request(self, trial: Trial, source: SavedNetwork | None) -> Request:
        """What `tgsr.solve` (a source) or `tgsr.transfer` (a target) would run."""
        start = self.start(trial)
        training = training_of(trial.training, start.training)
        network = start.network if trial.network is None else network_of(trial.network)
        if trial.role == "source":
            return solve_request(start.problem, network, training, trial.seed)
        if trial.network is None and trial.given is not None and source is not None:
            network = MLP(source.widths[1:-1], source.activation)
        method = self._method(trial)
        budget = trial.budget or "matched"
        read = source if needs_source(method) else None  # of the others it is the architecture alone
        return transfer_request(start.problem, read, method, network, training, budget, trial.seed)

    def _method(self, trial: Trial) -> Method:
        key = trial.method + canonical_json(dict(trial.options))
        if key not in self._methods:
            self._methods[key] = method_of(trial.method, trial.options)
        return self._methods[key]

    def start(self, trial: Trial) -> Start:
        """The trial's problem."""
        key = (trial.task, trial.file, trial.role, trial.profile, trial.seed, trial.observations, trial.noise)
        if key not in self._starts:
            if len(self._starts) > 64:
                self._starts.clear()
            self._starts[key] = self._build(trial)
        return self._starts[key]

    def file(self, trial: Trial) -> UserFile:
        """The user's file, run once."""
        assert trial.file is not None  # asked by the callers
        if trial.file not in self._files:
            self._files[trial.file] = read_problem(located(trial.file, self.folder))
        return self._files[trial.file]

    def _build(self, trial: Trial) -> Start:
        if trial.file is not None:
            return Start(drawn(self.file(trial).problem, trial.observations, trial.seed), None, None)
        case = task(trial.task).case(
            trial.seed, trial.profile, trial.role, observations=trial.observations, noise=trial.noise
        )
        return Start(case.problem, case.network, case.training)


def located(file: str, folder: Path) -> str:
    """`FILE.py` or `FILE.py:name`, from the study's folder to an absolute path."""
    head, colon, tail = file.rpartition(":")
    path, name = (head, tail) if colon and head.endswith(".py") else (file, "")
    whole = str((folder / path).resolve())
    return f"{whole}:{name}" if name else whole


def drawn(problem: Problem, count: int | None, seed: int) -> Problem:
    """`problem` with `count` of its readings, by lot: the same at a seed for every arm, fewer a part of more."""
    total = sum(len(data) for data in problem.data)
    if count is None or count == total:
        return problem
    if count > total:
        what = f"asks for {count} readings, and {problem.name} has {total}"
        raise InputError(what, field="observations", remedy='Give fewer, or "all"')
    chosen = np.zeros(total, dtype=bool)
    chosen[stream(seed, "observations").permutation(total)[:count]] = True
    ends = np.cumsum([len(data) for data in problem.data])[:-1]
    parts = zip(problem.data, np.split(chosen, ends), strict=True)
    fewer = copy.copy(problem)
    fewer.data = tuple(_rows(data, which) for data, which in parts if which.any())
    return fewer


def identity(request: Request) -> str:
    """The name of the directory that the request makes."""
    spec, data, source = request.inputs
    inputs = {"spec": spec, "data": digest_of(data), "source": digest_of(source), "seed": request.seed}
    return run_id(request.problem.name, inputs)


def write_trial(run: RunDirectory, trial: Trial, source: str | None) -> None:
    """Keep in the run directory what its process needs: the recipe, and where in the study its source lies."""
    write_sealed(run.path / TRIAL, {"format": FORMAT, "recipe": trial.recipe(), "source": source})


def read_trial(run: RunDirectory) -> tuple[Trial, str | None]:
    """The recipe of a run directory, and its source."""
    asked = read_sealed(run.path / TRIAL)
    if asked.get("format") != FORMAT:
        remedy = "Run the study with the release that made it, or a later one"
        raise StorageError("is of another format", file=run.path / TRIAL, remedy=remedy)
    return Trial.from_json(asked["recipe"]), asked["source"]


def carry_out(path: str) -> str:
    """Compute the run directory at `path`, which a study has made, and write its record; 'finished' or 'failed'.

    Raises where the run is not to blame: a full disk, another process at work, a damaged or changed recipe.
    """
    from tgsr.study._evaluate import keep_record

    run = RunDirectory.open(path)
    trial, source = read_trial(run)
    folder = run.path.parent.parent
    problems = Problems(folder)
    if run.status().state != "finished":
        _compute(run, problems, trial, None if source is None else read_network(folder / source))
    keep_record(run, trial, problems)
    return "finished" if run.status().state == "finished" else "failed"


def _compute(run: RunDirectory, problems: Problems, trial: Trial, source: SavedNetwork | None) -> None:
    from tgsr._solve import carried_out

    request = problems.request(trial, source)
    if identity(request) != run.id:
        raise InputError(
            "the recipe of this run no longer gives this run: a file, a source or the program has changed",
            file=run.path,
            remedy="Give `tgsr study run` again: it makes the run anew",
        )
    _begin_anew_elsewhere(run)
    try:
        carried_out(request, run)
    except (StorageError, InstallationError):
        raise
    except Exception as error:
        # Whatever a problem raises in the midst of its run is this run's failure: recorded, and the study goes on.
        sentence = str(error) if isinstance(error, TgsrError) else f"{type(error).__name__}: {plain(error, 500)}"
        with run.lock():
            run.log("error", traceback="".join(traceback.format_exception(error))[-1900:])
            run.record_failure(Outcome.FAILED.label, sentence, {})


def _begin_anew_elsewhere(run: RunDirectory) -> None:
    """A checkpoint from another environment, or a damaged one, is given up: half a run cannot be mended here."""
    from tgsr._provenance import differences, environment

    try:
        if run.load_checkpoint() is None:
            return
        why = "; ".join(differences(run.environment() or {}, environment()))
    except StorageError as error:
        why = str(error)
    if why:
        with run.lock():
            discard(run.path / "checkpoint")
            run.log("begun anew", why=why)
