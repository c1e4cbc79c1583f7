"""`compare`: the same problem by several methods and seeds at one budget: did transfer help?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError, StorageError, TgsrError, plain
from tgsr._held_out import LEAST, deviances, residuals, split
from tgsr._jax import computing
from tgsr._outcomes import Outcome
from tgsr._request import as_source
from tgsr._result import Result
from tgsr._solve import transfer
from tgsr._truth import Errors, Truth, evaluate
from tgsr._verdict import NEAR_BEST, Measured, Verdict, farthest, judge, truth_says
from tgsr.loss import build_objective
from tgsr.methods import Method, as_method
from tgsr.network._propagate import MLP
from tgsr.network._saved import SavedNetwork
from tgsr.problem import Data, Problem
from tgsr.training import Progress, Training, as_training
from tgsr.training._controls import Weighing

BASE = "scratch"


@dataclass(frozen=True, eq=False)
class MethodRun:
    """One method at one seed: its result (None where it broke off with an error), and what was measured of it."""

    result: Result | None
    sentence: str
    measured: Measured


@dataclass(frozen=True, eq=False)
class TruthCheck:
    """What the truth says, for evaluation only: errors of every run (None where it failed), an answer per method."""

    errors: dict[tuple[str, int], Errors | None]
    says: dict[str, str]

    def mean(self, method: str) -> float:
        """Mean parameter error of a method over seeds, in percent; infinite where a run failed."""
        found = [e for (name, _), e in self.errors.items() if name == method]
        return float(np.mean([math.inf if e is None else e.parameter for e in found]))


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Runs by seed and method, the verdict on each transfer method, and what a reader must know."""

    name: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    held_out: float
    runs: dict[tuple[str, int], MethodRun]
    verdicts: dict[str, Verdict]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every run ended well."""
        return all(run.measured.ok for run in self.runs.values())

    def check(self, truth: Truth) -> TruthCheck:
        """Errors against the truth: did a method lower, or raise, the mean parameter error, and not by chance alone?"""
        errors = {
            key: evaluate(run.result, truth) if run.result is not None and run.measured.ok else None
            for key, run in self.runs.items()
        }
        check = TruthCheck(errors, {})
        if truth.unknowns:
            mean = [
                [math.inf if (e := errors[m, s]) is None else e.parameter for s in self.seeds] for m in self.methods
            ]
            base = mean[self.methods.index(BASE)]
            for method, one in zip(self.methods, mean, strict=True):
                if method != BASE:
                    pairs = [(self.runs[method, s].measured, self.runs[BASE, s].measured) for s in self.seeds]
                    apart = [farthest(run, base_run)[1] for run, base_run in pairs]
                    check.says[method] = truth_says(one, base, apart)
        return check

    def __str__(self) -> str:
        from tgsr._compare_text import comparison_text

        return comparison_text(self)

    __repr__ = __str__

    def as_json(self, check: TruthCheck | None = None) -> dict[str, Any]:
        """Plain values, for a program."""
        from tgsr._compare_text import comparison_json

        return comparison_json(self, check)


def compare(
    problem: Problem,
    source: Result | SavedNetwork | str | Path,
    *,
    methods: Sequence[str | Method] = ("scratch", "full", "tgsr"),
    seeds: int | Sequence[int] = 3,
    held_out: float = 0.2,
    training: Training | str | None = None,
    budget: str = "matched",
    out: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> MethodComparison:
    """Solve `problem` by every method at every seed, and judge each transfer against the random start.

    The share `held_out` of each data set's readings is left out of training and only looked at afterwards. All runs
    of a seed have the same architecture (the source's), readings, points, first guesses and budget. With `out` every
    run is kept: the same call again computes only what is missing.
    """
    chosen, numbers = _methods(methods), _seeds(seeds)
    share, plan, saved = _share(held_out), as_training(training), as_source(source)
    if not isinstance(problem, Problem):
        raise InputError(f"{plain(problem, 60)!r} is no problem", field="problem", remedy="Give a tgsr.Problem")
    runs: dict[tuple[str, int], MethodRun] = {}
    notes: list[str] = []
    for k, seed in enumerate(numbers):
        part, held = split(problem, share, seed)
        found: dict[str, Result | TgsrError] = {}
        for i, method in enumerate(chosen):
            told = _telling(
                progress, f"{method.name}, seed {seed} ({k * len(chosen) + i + 1} of {len(numbers) * len(chosen)})"
            )
            try:
                found[method.name] = transfer(
                    part, saved, method=method, training=plan, budget=budget, seed=seed, out=out, progress=told
                )
            except TgsrError as error:
                if error.exit_code != 1 or isinstance(error, StorageError):
                    raise  # not a failure of the method, but of what it was given
                found[method.name] = error
        measured = _measured(found, seed, held, _weights(part, saved, plan, seed))
        for name, one in found.items():
            sentence = one.sentence if isinstance(one, Result) else str(one)
            runs[name, seed] = MethodRun(one if isinstance(one, Result) else None, sentence, measured[name])
        if not k:
            notes += _notes(problem, share, part, plan)
    names = tuple(method.name for method in chosen)
    verdicts = {
        name: judge(name, [(runs[name, s].measured, runs[BASE, s].measured) for s in numbers])
        for name in names
        if name != BASE
    }
    return MethodComparison(problem.name, names, numbers, share, runs, verdicts, tuple(notes))


def _measured(
    found: dict[str, Result | TgsrError], seed: int, held: Sequence[Data], weights: dict[str, float] | None
) -> dict[str, Measured]:
    """The numbers of one seed. The cost speaks of the best final loss among all its methods."""
    good = {name: r for name, r in found.items() if isinstance(r, Result) and r.outcome.ok}
    misfit = deviances(held, {name: residuals(r, held) for name, r in good.items()})
    curves = {name: _curve(r, weights) for name, r in good.items()} if weights is not None else {}
    level = NEAR_BEST * min((float(loss[-1]) for loss in curves.values() if len(loss)), default=math.nan)
    out = {}
    for name, r in found.items():
        if not isinstance(r, Result):
            out[name] = Measured(name, seed, False, Outcome.FAILED.label)
            continue
        loss = curves.get(name, np.zeros(0))
        arrived = np.flatnonzero(loss <= level)
        spent = r.closures - r.history.closures  # before main training
        never = math.inf if name in curves and len(loss) else math.nan
        out[name] = Measured(
            name,
            seed,
            r.outcome.ok,
            r.outcome.label,
            float(loss[-1]) if len(loss) else math.nan,
            r.closures,
            float(spent + r.history["closures"][arrived[0]]) if arrived.size else never,
            misfit.get(name, np.zeros(0)),
            {unknown: (e.value, e.se) for unknown, e in r.unknowns.items()},
        )
    return out


def _curve(result: Result, weights: dict[str, float]) -> np.ndarray:
    """The loss of data and physics along main training: a penalty that a method adds is not counted against it."""
    return np.sum([weight * result.history[name] for name, weight in weights.items()], axis=0)


def _weights(problem: Problem, source: SavedNetwork, plan: Training, seed: int) -> dict[str, float] | None:
    """Weight of every part of the loss; None where each run estimates the noise and so has its own loss."""
    with computing():
        objective = build_objective(problem, MLP(source.widths[1:-1], source.activation), plan.points)
        weighing = Weighing(objective, plan.weight_table)
        if weighing.estimating:
            return None
        weights = np.asarray(weighing.controls(weighing.first_sigma(), jnp.zeros(1)).weights)
    return {part.name: float(w) for part, w in zip(objective.parts, weights, strict=True)}


def _telling(progress: Callable[[Progress], None] | None, run: str) -> Callable[[Progress], None] | None:
    """Progress that says which of the runs it speaks of."""
    return None if progress is None else lambda p: progress(replace(p, stage=f"{run}: {p.stage}"))


def _notes(problem: Problem, share: float, part: Problem, plan: Training) -> list[str]:
    total, left = (sum(len(data) for data in p.data) for p in (problem, part))
    notes = [
        f"{total - left} of {total} readings were held out, other ones at each seed; estimates come from the rest."
    ]
    if left == total:
        why = (
            f"only {total} readings, of fewer than {LEAST} none can be spared"
            if share > 0 and total
            else "none asked for"
        )
        notes = [f"No readings were held out ({why if total else 'there are none'}): the verdict rests on the loss."]
    if plan.weights is None and any(noise.estimated for data in problem.data for noise in data.noise.values()):
        notes.append(
            "The noise is estimated by each run, so losses are not on one scale: neither they nor the costs are "
            "compared. State noise=... for a sharper verdict."
        )
    return notes


def _methods(methods: Sequence[str | Method]) -> list[Method]:
    given = [methods] if isinstance(methods, str) or not isinstance(methods, Sequence) else methods
    chosen = [as_method(method) for method in given]
    names = [method.name for method in chosen]
    if BASE not in names or len(names) < 2:
        remedy = "Name scratch and at least one transfer method, as in scratch,full,tgsr"
        raise InputError("a transfer is judged against scratch", field="methods", remedy=remedy)
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"method {name!r} is named twice", field="methods", remedy="Name it once")
    return chosen


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    whole = isinstance(seeds, (int, np.integer)) and not isinstance(seeds, bool)
    if whole and not 1 <= int(seeds) <= 1000:  # type: ignore[arg-type]
        raise InputError(
            f"seeds is {seeds}", field="seeds", remedy="Give their number, from 1 to 1000, or a list of seeds"
        )
    listed = list(range(int(seeds))) if whole else list(seeds) if isinstance(seeds, Sequence) else []  # type: ignore[arg-type]
    sound = [isinstance(s, (int, np.integer)) and not isinstance(s, bool) and 0 <= s < 2**63 for s in listed]
    if not listed or not all(sound) or len(set(listed)) < len(listed):
        remedy = "Give their number, or different whole numbers from 0"
        raise InputError(f"seeds is {plain(seeds, 60)!r}", field="seeds", remedy=remedy)
    return tuple(int(s) for s in listed)


def _share(held_out: float) -> float:
    if isinstance(held_out, bool) or not isinstance(held_out, Real) or not 0 <= float(held_out) <= 0.5:
        remedy = "Give the share of the readings to leave out, from 0 to 0.5"
        raise InputError(f"held_out is {plain(held_out, 40)!r}", field="held_out", remedy=remedy)
    return float(held_out)
