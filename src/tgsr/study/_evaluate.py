"""From a run that has ended to its record: the only place of a study where a truth is read, after the run's commit.

Records are derived: they can be deleted, and are made again from the run directories.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tgsr._errors import plain
from tgsr._result import Estimate, Result
from tgsr._runs import load
from tgsr._truth import Truth, evaluate
from tgsr.methods import resolved_budget
from tgsr.problem import Problem
from tgsr.storage import RunDirectory
from tgsr.storage._atomic import present
from tgsr.study._grid import Trial
from tgsr.study._kept import write_record
from tgsr.study._record import Found, Record
from tgsr.study._trial import Problems
from tgsr.tasks import task
from tgsr.training._phases import PHASES


def keep_record(run: RunDirectory, trial: Trial, problems: Problems) -> Record:
    """Make the record of a run that has ended, and keep it."""
    record = evaluated(run, trial, problems)
    write_record(run.path, record)
    return record


def evaluated(run: RunDirectory, trial: Trial, problems: Problems) -> Record:
    """The record of a run that has ended, finished or failed."""
    failure = None if present(run.path / "result.json") else run.failure()
    problem = problems.start(trial).problem
    known: dict[str, Any] = {
        "task": trial.task,
        "role": trial.role,
        "arm": trial.arm,
        "method": trial.method,
        "seed": trial.seed,
        "run": f"{run.path.parent.name}/{run.path.name}",
        "options": dict(trial.options),
        "profile": trial.profile,
        "budget": trial.budget or "",
        "observations": sum(len(data) for data in problem.data),
        "noise": _noise(problem),
    }
    if failure is not None and not failure["details"]:
        names, _ = infinite_errors(trial, problems)
        return Record(
            **known, outcome=failure["outcome"], ok=False, sentence=failure["sentence"],
            errors=names, environment=run.environment() or {},
        )  # fmt: skip
    result = load(run.path)
    errors, wrong = _errors(result, trial, problems) if result.outcome.ok else infinite_errors(trial, problems)
    bounds, odd = _bounds(trial)
    return Record(
        **known,
        outcome=result.outcome.label,
        ok=result.outcome.ok,
        sentence=result.sentence,
        errors=errors,
        bounds=bounds,
        unknowns={name: _found(estimate) for name, estimate in result.unknowns.items()},
        closures=result.closures,
        allowed=_allowed(result, trial, problems, run),
        stages=stages_of(result),
        seconds=result.seconds,
        warnings=(*result.warnings, *wrong, *odd),
        weights=result.fingerprint,
        environment=result.provenance,
    )


def _truth(trial: Trial, problems: Problems) -> Truth | None:
    if trial.file is not None:
        return problems.file(trial).truth
    return task(trial.task).case(trial.seed, trial.profile, trial.role, observations=0).truth


def _errors(result: Result, trial: Trial, problems: Problems) -> tuple[dict[str, float], tuple[str, ...]]:
    """Errors against the truth, where there is one; a truth that cannot be used must not cost the run."""
    try:
        truth = _truth(trial, problems)
        if truth is None:
            return {}, ()
        if trial.file is None:
            return task(trial.task).measure(result, truth), ()
        return _of_file(result, truth), ()
    except Exception as error:
        return {}, (f"Errors against the truth could not be computed: {type(error).__name__}: {plain(error)}",)


def _of_file(result: Result, truth: Truth) -> dict[str, float]:
    """As for a task: 'parameter' (the mean), each unknown, 'field' (the mean over fields), and each of several."""
    found = evaluate(result, truth)
    errors = {"parameter": found.parameter, **found.parameters} if found.parameters else {}
    if found.fields:
        errors["field"] = float(np.mean(list(found.fields.values())))
        errors |= found.fields if len(found.fields) > 1 else {}
    return errors


def infinite_errors(trial: Trial, problems: Problems) -> tuple[dict[str, float], tuple[str, ...]]:
    """Infinite errors, where a truth is known: a failed run counts, and counts as the worst."""
    try:
        truth = _truth(trial, problems)
        names = [] if truth is None else [*(["parameter", *truth.unknowns] if truth.unknowns else [])]
        names += ["field"] if truth is not None and truth.field is not None else []
    except Exception as error:
        return {}, (f"The truth could not be read: {type(error).__name__}: {plain(error)}",)
    return dict.fromkeys(names, math.inf), ()


def _bounds(trial: Trial) -> tuple[dict[str, float], tuple[str, ...]]:
    """The Cramér-Rao bound of a built-in task's readings."""
    if trial.file is not None or trial.observations == 0:
        return {}, ()
    from tgsr.tasks import as_profile

    count = as_profile(trial.profile).readings if trial.observations is None else trial.observations
    try:
        return task(trial.task).bound(trial.seed, trial.role, observations=count, noise=trial.noise), ()
    except Exception as error:
        return {}, (f"The statistical limit could not be computed: {type(error).__name__}: {plain(error)}",)


def _noise(problem: Problem) -> float:
    """The standard deviation of the readings, where it is stated and one for all."""
    scales = {noise.scale for data in problem.data for noise in data.noise.values()}
    scale = next(iter(scales)) if len(scales) == 1 else None
    return math.nan if scale is None else float(scale)


def _found(e: Estimate) -> Found:
    return Found(e.value, e.se, e.interval[0], e.interval[1], e.unit, e.identifiable)


def _allowed(result: Result, trial: Trial, problems: Problems, run: RunDirectory) -> int:
    """The closures that the budget let the run spend; 0 where nothing limits them."""
    from tgsr.study._settings import training_of

    training = training_of(trial.training, problems.start(trial).training)
    if not training.phases:  # chosen by the size of the problem: the history says what was
        chosen = [PHASES[name]() for name in result.history.phases if name in PHASES]
        if not chosen:
            return 0
        training = type(training)((chosen[0],), training.points, training.weight_table, None, training.budget)
    # With its phases named, the budget asks nothing of the objective.
    return resolved_budget(None, training, trial.budget).closures or 0  # type: ignore[arg-type]


def stages_of(result: Result) -> dict[str, Mapping[str, float]]:
    """Seconds, closures and memory of every stage that was measured, and of main training, which is the rest."""
    found: dict[str, Mapping[str, float]] = {}
    cost = result.stages.get("overhead")
    if cost is not None:
        rows = zip(cost["stage"], cost["seconds"], cost["closures"], cost["peak_mib"], strict=True)
        for name, seconds, closures, peak in rows:
            found[str(name)] = {"seconds": float(seconds), "closures": float(closures), "memory": float(peak) * 2**20}
    before = sum(stage["seconds"] for stage in found.values())
    found["main"] = {"seconds": max(result.seconds - before, 0.0), "closures": float(result.history.closures)}
    return found
