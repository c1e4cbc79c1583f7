"""Hand-made runs behind the records of `study_cases`: a network, a history, and the stages of a method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from tgsr._outcomes import Outcome
from tgsr._random import stream
from tgsr._result import Estimate, Result
from tgsr.network._saved import SavedNetwork
from tgsr.storage import npz_bytes
from tgsr.study._record import Record
from tgsr.training._history import History

SCORED = ("tgsr", "random-decay", "score-shuffled", "random-reset")


@dataclass(frozen=True)
class Shape:
    """What the records of a task look like."""

    coordinates: Mapping[str, tuple[float, float]]
    truths: Mapping[str, float]
    bounds: Mapping[str, float]  # percent
    scale: float  # the smallest parameter error, percent
    field: float
    noise: float
    without: float  # error without readings over that with them
    extra: tuple[str, ...] = ()


SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
SHAPES = {
    "boundary-layer": Shape(SQUARE, {"eps": 0.01}, {"eps": 0.28}, 0.13, 0.09, 0.0025, 1.1, ("layer", "gradient")),
    "allen-cahn-burgers": Shape({"x": (-1.0, 1.0), "t": (0.0, 1.0)}, {"nu": 0.01}, {"nu": 0.87}, 0.3, 0.26, 0.015,
                                60.0),
    "reaction-diffusion": Shape({**SQUARE, "t": (0.0, 1.0)}, {"alpha": 0.05, "rho": 1.0}, {"alpha": 2.1, "rho": 4.0},
                                0.66, 0.21, 0.013, 0.4),
    "smooth-advection-diffusion": Shape({**SQUARE, "t": (0.0, 1.0)}, {"alpha": 0.001, "v_x": 2.0, "v_y": 1.0},
                                        {"alpha": 3.3, "v_x": 0.016, "v_y": 0.022}, 4.4, 0.08, 0.0013, 0.3),
    "advected-pulse": Shape({**SQUARE, "t": (0.0, 0.25)}, {"alpha": 0.001, "v_x": 2.0, "v_y": 1.0},
                            {"alpha": 0.06, "v_x": 0.0008, "v_y": 0.0016}, 0.3, 0.5, 0.0004, 200.0),
}  # fmt: skip
TASKS = tuple(SHAPES)


@cache
def _network(task: str, seed: int, width: int = 12, layers: int = 2) -> SavedNetwork:
    box = SHAPES[task].coordinates
    rng = stream(seed, "init", TASKS.index(task))
    widths = [len(box), *[width] * layers, 1]
    low, high = (np.array([ends[i] for ends in box.values()]) for i in (0, 1))
    return SavedNetwork(
        tuple(rng.standard_normal(pair) / math.sqrt(pair[0]) for pair in pairwise(widths)),
        tuple(0.1 * rng.standard_normal(n) for n in widths[1:]),
        "tanh", tuple(box), ("u",), (low + high) / 2, (high - low) / 2, np.zeros(1), np.ones(1),
    )  # fmt: skip


def made_result(record: Record) -> Result:
    """A run behind a record: a random network, a loss that falls, and the stages of its method."""
    shape = SHAPES[record.task]
    layers = int(record.environment.get("layers", 6))
    unknowns = {
        name: Estimate(f.value, f.se, (f.low, f.high), f.unit, f.identifiable, 3.0 * shape.truths[name])
        for name, f in record.unknowns.items()
    }
    spec = {
        "problem": {"coordinates": {c: list(ends) for c, ends in shape.coordinates.items()},
                    "fields": [{"name": "u", "unit": ""}], "data": []},
        "training": {"type": "Training", "phases": [], "points": {"type": "Points", "interior": 10}},
        "method": {"name": record.method, **record.options}, "source": None,
    }  # fmt: skip
    stages: dict[str, dict[str, np.ndarray]] = {}
    if record.method in (*SCORED, "adapt-only"):
        stages["adaptation"] = dict(_history(unknowns, 12, record.seed).arrays())
    if record.method in SCORED:
        stages["correction"] = correction_stage(record, layers)
        names = [name for name in record.stages if name != "main"]
        stages["overhead"] = {
            "stage": np.array(names), "seconds": np.array([record.stages[n]["seconds"] for n in names]),
            "closures": np.array([int(record.stages[n]["closures"]) for n in names]),
            "peak_mib": np.array([record.stages[n]["memory"] / 2**20 for n in names]),
        }  # fmt: skip
    return Result(
        record.task, unknowns, Outcome.of(record.outcome), record.sentence, _history(unknowns, 40, record.seed),
        _network(record.task, record.seed), stages=stages, method=record.method, closures=record.closures,
        seconds=record.seconds, seed=record.seed, provenance=dict(record.environment), warnings=record.warnings,
        inputs=(spec, npz_bytes({}), b""),
    )  # fmt: skip


def correction_stage(record: Record, layers: int, width: int = 12) -> dict[str, np.ndarray]:
    """What the correction of a run stored, layer by layer, as `tgsr` stores it."""
    rng = stream(record.seed, "scoring", TASKS.index(record.task), layers)
    protection = record.options.get("protection", "depth")
    arrays: dict[str, np.ndarray] = {}
    for number in range(1, layers + 1):
        score, signal = rng.uniform(0.05, 1.0, width), rng.uniform(0.0, 0.6, width)
        deep = 0.45 + 0.55 * (number - 1) / max(layers - 1, 1)
        eta = {"none": 1.0, "matched": 0.725}.get(protection, deep)
        gamma = 1.0 - 0.15 * np.minimum(1.0, 2.0 * eta * signal) ** 3
        weight, gain = float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.0, 60.0))
        arrays |= {
            f"layer{number}.T": rng.uniform(0, 1, (3, width)), f"layer{number}.V": rng.uniform(0, 1, (3, width)),
            f"layer{number}.score": score, f"layer{number}.alpha": np.array(0.5),
            f"layer{number}.at_floor": np.array(0), f"layer{number}.tau": np.array(0.1),
            f"layer{number}.chi": np.log1p(score / 0.1),
            f"layer{number}.branch": np.array("gmm" if gain > 10 and weight <= 0.5 else "rank"),
            f"layer{number}.signal": signal, f"layer{number}.confidence": np.array(0.6),
            f"layer{number}.eta": np.array(eta), f"layer{number}.protected": np.clip(eta * signal, 0, 1),
            f"layer{number}.gamma": gamma, f"layer{number}.softened": 1.0 - gamma >= 0.02,
            f"layer{number}.mixture": np.array([weight, 1.0, 2.0, 0.2, 0.3, gain]),
        }  # fmt: skip
    return arrays


def _history(unknowns: Mapping[str, Estimate], steps: int, seed: int) -> History:
    fall = 10.0 ** -np.linspace(0, 5, steps) * math.exp(0.1 * stream(seed, "main-batch").standard_normal())
    values = np.stack([e.value + (e.guess - e.value) * fall / fall[0] for e in unknowns.values()], axis=1)
    columns = {
        "phase": np.zeros(steps, dtype=np.int64), "seconds": np.linspace(0, 20, steps),
        "closures": np.arange(1, steps + 1, dtype=np.int64) * 25, "loss": 2 * fall,
        "terms": np.stack([fall, 0.7 * fall, 0.3 * fall], axis=1), "values": values,
    }  # fmt: skip
    return History(("pde", "bc", "data"), tuple(unknowns), ["levenberg-marquardt"], columns)
