"""Hand-made studies: records drawn from named streams, with everything that goes wrong in real ones.

`study()` is the big one: five tasks, nine methods, two controls, ten (or five) seeds, failures, arms without readings,
sources, bounds, stages, unequal seeds and trials that have no result yet. No number in here was measured.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from study_runs import SCORED, SHAPES, TASKS, made_result

from tgsr._outcomes import Outcome
from tgsr._random import stream
from tgsr._result import Result
from tgsr.study._probes import Probes
from tgsr.study._record import Found, Record
from tgsr.study._results import Pending, StudyResults
from tgsr.study._shipped import shipped_specs

HOSTILE = "<script>alert(1)</script>=1+2|`a`&$\\frac{1}$_%#{}~^\n\u202e\x1b[31m"
METHODS = ("scratch", "full", "lightweight", "partial", "tl-gpinn", "bitfit", "l2-sp", "sfp", "tgsr")
CONTROLS = ("adapt-only", "random-decay")
WITHOUT = ("scratch", "full", "tgsr")  # also run with no readings
ALL = 1000  # readings
# how much larger than the task's smallest an error is: (parameter, field)
LEVELS = {
    "scratch": (2.4, 1.5), "full": (1.7, 1.2), "lightweight": (6.0, 3.0), "partial": (2.1, 1.1), "tl-gpinn": (1.5, 1.0),
    "bitfit": (90.0, 40.0), "l2-sp": (1.6, 1.3), "sfp": (2.0, 1.4), "tgsr": (1.0, 1.0), "adapt-only": (1.5, 1.15),
    "random-decay": (1.3, 1.1), "score-shuffled": (1.35, 1.1), "random-reset": (3.5, 2.0),
}  # fmt: skip


ENVIRONMENT = {
    "tgsr": "0.1.0", "jax": "0.10.1", "jaxlib": "0.10.1", "numpy": "2.4.6", "scipy": "1.17.0", "python": "3.11.2",
    "platform": "Linux x86_64", "processor": "an ordinary processor with AVX2", "device": "cpu", "engine": "jax",
    "threads": 1, "dtype": "float64",
}  # fmt: skip


class Synthetic(StudyResults):
    """A study whose runs can be asked for, although there is no folder."""

    def result(self, record: Record) -> Result | None:
        """A made-up run that fits the record; None where the run left nothing."""
        return made_result(record) if record.run and record.task in SHAPES else None

    def probes(self, record: Record) -> Probes | None:
        """A made-up gate check of the runs that have one."""
        if record.method != "tgsr" or record.task not in SHAPES:
            return None
        rng = stream(record.seed, "probes", TASKS.index(record.task))
        score = rng.uniform(0.05, 1.0, 30)
        change, predicted = score * rng.uniform(0.5, 1.5, 30), rng.uniform(0.0, 1.0, 30)
        layer, neuron = np.repeat(np.arange(1.0, 7.0), 5), np.tile(np.arange(1.0, 6.0), 6)
        rows = [layer, neuron, score, change, change, predicted * rng.uniform(0.97, 1.03, 30), predicted]
        return Probes(record.task, record.arm, record.seed, np.stack(rows, axis=1))


def study(tasks: Sequence[str] = TASKS, seeds: int = 10) -> StudyResults:
    """The big study. Three of the tasks have half the seeds."""
    records: list[Record] = []
    for number, task in enumerate(tasks):
        own = range(seeds if task in TASKS[:2] else max(1, seeds // 2))
        records += [source(task, seed) for seed in own]
        for method in (*METHODS, *CONTROLS):
            short = method == "random-decay" and task == "boundary-layer" and len(own) > 3
            records += [target(task, method, method, seed) for seed in (own[:-2] if short else own)]
        for method in WITHOUT:
            records += [target(task, f"{method}, no readings", method, seed, readings=0) for seed in own]
        if number == 0 and len(own) > 4:
            records = _accidents(records, task)
    pending = tuple(
        Pending(tasks[0], "target", "random-decay", seed, state, reason)
        for seed, state, reason in (
            (seeds - 2, "running", "412 of 1,000 closures"),
            (seeds - 1, "new", "not started yet"),
        )
    )
    return Synthetic(
        "evidence", "Transfer methods side by side", "All methods on all tasks, with controls.", "laptop", "matched",
        "6 hidden layers of 12 tanh neurons, Levenberg-Marquardt, 10 x 10 steps", tuple(records), pending,
        spec='name = "evidence"\n', seeds=tuple(range(seeds)),
    )  # fmt: skip


def shipped(name: str, seeds: int | None = None) -> StudyResults:
    """A shipped study as if it had been run: one record per task, arm and seed of its own file."""
    text = shipped_specs()[name].read_text(encoding="utf-8")
    asked: dict[str, Any] = tomllib.loads(text)
    arms = [{"label": method, "method": method} for method in asked.get("methods", ())] + asked.get("arm", [])
    readings = asked.get("observations", [ALL])
    count = asked["seeds"] if seeds is None else seeds
    records = []
    for task in asked["tasks"]:
        records += [source(task, seed) for seed in range(count)]
        for arm in arms:
            for i, n in enumerate(readings):
                label = arm["label"] if i == 0 else f"{arm['label']}, {n} readings"
                records += [
                    target(task, label, arm["method"], seed, readings=n, options=arm.get("options", {}),
                           layers=len(arm.get("network", [0] * 6)))
                    for seed in range(count)
                ]  # fmt: skip
    return Synthetic(
        name, asked["title"], asked["about"], "laptop", asked.get("budget", "matched"), "as the profile says",
        tuple(records), spec=text, seeds=tuple(range(count)),
    )  # fmt: skip


def one_run(method: str = "tgsr") -> StudyResults:
    """A study of a single run."""
    run = target("boundary-layer", method, method, 0)
    return Synthetic("single", "", "", "smoke", "matched", "a small network", (run,), seeds=(0,))


def nothing() -> StudyResults:
    """A study that has only just been asked for."""
    waiting = Pending("boundary-layer", "target", "tgsr", 0, "new", "not started yet")
    return StudyResults("empty", "", "", "smoke", "matched", "", (), (waiting,), seeds=(0,))


def failed_everywhere() -> StudyResults:
    """Every run ended badly."""
    runs = [
        fail(target("boundary-layer", method, method, seed), "non-finite") for method in METHODS for seed in range(6)
    ]
    return StudyResults("failed", "", "", "smoke", "matched", "a small network", tuple(runs), seeds=tuple(range(6)))


def users_study(seeds: int = 4, label: str = "tgsr") -> StudyResults:
    """A user's own problem, for which no truth is known: estimates with errors, and nothing to compare them with."""
    records = []
    for arm in ("scratch", label):
        for seed in range(seeds):
            rng = stream(seed, "noise", len(arm))
            kappa, h = 0.1 + 0.0008 * rng.standard_normal(), 1.5 + 0.1 * rng.standard_normal()
            unknowns = {
                "kappa": Found(float(kappa), 0.0008, float(kappa) - 0.0016, float(kappa) + 0.0016, "m2/s"),
                "h": Found(float(h), math.inf, -math.inf, math.inf, "", False),
            }
            records.append(
                Record("rod", "target", arm, "tgsr" if arm == label else arm, seed, f"runs/rod-{seed}", "converged",
                       True, Outcome.CONVERGED.sentence, {}, "", "matched", 60, 0.5, {}, {}, unknowns, 400, 400,
                       {}, 3.0 + seed, (), "0" * 64, ENVIRONMENT)
            )  # fmt: skip
    return StudyResults("rod", "", "", "", "matched", "a small network", tuple(records), seeds=tuple(range(seeds)))


def hostile() -> StudyResults:
    """A small study whose every text is an attack on the page, the table or the reader."""
    mine = [
        replace(target("boundary-layer", arm, "tgsr", seed), task=HOSTILE, sentence=HOSTILE, warnings=(HOSTILE,))
        for arm in (HOSTILE, "@sum(a1)") for seed in range(3)
    ]  # fmt: skip
    mine[0] = replace(fail(mine[0], "diverged"), sentence=HOSTILE)
    return StudyResults(
        HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, tuple(mine),
        (Pending(HOSTILE, "target", HOSTILE, 7, "damaged", HOSTILE),), spec=HOSTILE, seeds=(0, 1, 2),
    )  # fmt: skip


def source(task: str, seed: int) -> Record:
    """The source run of a task and seed."""
    shape = SHAPES[task]
    found = {name: Found(2.0 * true, 0.01 * true, 1.98 * true, 2.02 * true) for name, true in shape.truths.items()}
    return Record(
        task, "source", "source", "scratch", seed, f"sources/{task}-source-{seed:012x}", "converged", True,
        Outcome.CONVERGED.sentence, {}, "laptop", "matched", ALL, shape.noise, {"parameter": 1.0, "field": 0.2},
        {}, found, 1000, 1000, {"main": {"seconds": 20.0, "closures": 1000, "memory": 3e8}}, 20.0, (),
        f"{seed:064x}", ENVIRONMENT,
    )  # fmt: skip


def target(
    task: str, arm: str, method: str, seed: int, *, readings: int = ALL, options: Mapping[str, Any] | None = None,
    layers: int = 6,
) -> Record:  # fmt: skip
    """A run that ended well. Runs of one seed share a factor, as paired runs do."""
    shape = SHAPES[task]
    shared = stream(seed, "observations", TASKS.index(task))
    own = stream(seed, "noise", TASKS.index(task), *(ord(c) for c in f"{arm}/{method}"[:24]))
    common = math.exp(0.25 * shared.standard_normal())
    parameter, field = LEVELS[method]
    fewer = shape.without if readings == 0 else (ALL / readings) ** 0.5
    names = list(shape.truths)
    errors = {}
    for i, name in enumerate(names):  # the first unknown is the hard one
        level = shape.scale * parameter * fewer * (len(names) if i == 0 else 0.05)
        errors[name] = float(level * common * math.exp(0.5 * own.standard_normal()))
    mean = float(np.mean([errors[name] for name in names]))
    given = {"parameter": mean, **errors, "field": float(shape.field * field * common * math.exp(0.2 * own.normal()))}
    given |= {name: given["field"] * (3.0 if name == "layer" else 0.08) for name in shape.extra}
    signs = own.choice([-1.0, 1.0], len(names))
    unknowns = {
        name: Found(float(true * (1 + sign * errors[name] / 100)), true * shape.bounds[name] / 100,
                    true * (1 - 0.02), true * (1 + 0.02))
        for sign, (name, true) in zip(signs, shape.truths.items(), strict=True)
    }  # fmt: skip
    bounds = {name: float(b * common**0.2) for name, b in shape.bounds.items()} if readings else {}
    stages: dict[str, dict[str, float]] = {}
    spent = 0
    if method in (*SCORED, "adapt-only"):
        stages["adaptation"] = {"seconds": 4.0 + own.uniform(), "closures": 166, "memory": 2.3e8}
        spent = 166
    if method in SCORED:
        stages["scoring"] = {"seconds": 0.3 + 0.1 * own.uniform(), "closures": 3, "memory": 4.7e8}
        stages["correction"] = {"seconds": 0.02, "closures": 0, "memory": 4.7e8}
        spent = 169
    closures = int(own.integers(900, 1001))
    stages["main"] = {"seconds": 20.0 + 4 * own.uniform(), "closures": closures - spent, "memory": 4e8}
    seconds = sum(stage["seconds"] for stage in stages.values()) * (2.1 if method == "tl-gpinn" else 1.0)
    run = f"runs/{task}-{method}-{int(own.integers(2**40)):012x}"
    environment = ENVIRONMENT if seed != 4 else {**ENVIRONMENT, "processor": "another processor with AVX-512"}
    warnings = ("Above 0.7 the deepest layers reward low variance.",) if (options or {}).get("alpha_s", 0) > 0.7 else ()
    outcome = Outcome.CONVERGED if closures < 990 else Outcome.BUDGET
    return Record(
        task, "target", arm, method, seed, run, outcome.label, True, outcome.sentence, dict(options or {}), "laptop",
        "matched", readings, shape.noise, given, bounds, unknowns, closures, 1000, stages, float(seconds), warnings,
        f"{int(own.integers(2**40)):064x}", {**environment, "layers": layers} if layers != 6 else environment,
    )  # fmt: skip


def fail(record: Record, outcome: str, sentence: str = "") -> Record:
    """The same run, ended badly."""
    known = {kind.label: kind.sentence for kind in Outcome}
    gone = outcome in ("crashed", "timeout")
    return replace(
        record, outcome=outcome, ok=False, sentence=sentence or known.get(outcome, "The process ended."),
        errors=dict.fromkeys(record.errors, math.inf), unknowns={} if gone else record.unknowns,
        run="" if gone else record.run, weights="",
    )  # fmt: skip


def _accidents(records: Iterable[Record], task: str) -> list[Record]:
    """A diverged scratch run, a run of another method that failed at the same seed (a tie), a crash, two runaways."""
    out = []
    for r in records:
        where = (r.arm, r.seed) if r.role == "target" and r.task == task else ("", -1)
        if where in (("scratch", 3), ("bitfit", 3)):
            r = fail(r, "diverged")
        elif where == ("lightweight", 1):
            r = fail(r, "crashed", "The process ended with signal 9 (killed) in each of 5 attempts.")
        elif where == ("partial", 2):
            r = fail(r, "timeout", "The run was stopped after 600 s.")
        elif where in (("sfp", 0), ("sfp", 4)):
            r = replace(r, errors={name: value * 3e4 for name, value in r.errors.items()})
        out.append(r)
    return out
