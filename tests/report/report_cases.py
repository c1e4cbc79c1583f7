"""Hand-made results: no training, only what a report reads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tgsr._outcomes import Outcome
from tgsr._random import stream
from tgsr._result import Estimate, Result
from tgsr.network._saved import SavedNetwork
from tgsr.storage import npz_bytes
from tgsr.training._history import History

BOXES = {"x": (0.0, 1.0), "y": (0.0, 2.0), "t": (0.0, 3.0), "z": (-1.0, 1.0)}
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&$\\frac{1}$"


def network(coordinates: tuple[str, ...], field: str = "u", width: int = 5) -> SavedNetwork:
    """A small network of those coordinates."""
    rng = stream(3, "init", len(coordinates))
    shapes = [(len(coordinates), width), (width, 1)]
    low, high = (np.array([BOXES[c][i] for c in coordinates]) for i in (0, 1))
    return SavedNetwork(
        tuple(rng.standard_normal(s) for s in shapes),
        tuple(rng.standard_normal(s[1]) for s in shapes),
        "tanh",
        coordinates,
        (field,),
        (low + high) / 2,
        (high - low) / 2,
        np.zeros(1),
        np.ones(1),
    )


def history(unknowns: tuple[str, ...] = ("kappa", "h"), steps: int = 40) -> History:
    """A loss that falls and unknowns that settle, in two phases."""
    fall = 10.0 ** -np.linspace(0, 5, steps)
    values = 1.0 + np.outer(fall, np.arange(1, len(unknowns) + 1))
    columns = {
        "phase": (np.arange(steps) >= steps // 2).astype(np.int64),
        "seconds": np.linspace(0, 2, steps),
        "closures": np.arange(1, steps + 1, dtype=np.int64) * 3,
        "loss": 2 * fall,
        "terms": np.stack([fall, 0.7 * fall, 0.3 * fall], axis=1),
        "values": values,
    }
    return History(("heat", "initial T", "rod"), unknowns, ["adam", "l-bfgs"], columns)


def result(coordinates: tuple[str, ...] = ("x", "t"), *, readings: int = 60, **changes: Any) -> Result:
    """A result over those coordinates with two unknowns; without readings where that is 0."""
    net = network(coordinates)
    rng = stream(5, "observations")
    arrays: dict[str, np.ndarray] = {}
    if readings:
        points = {c: rng.uniform(*BOXES[c], readings) for c in coordinates}
        bare = Result("rod", {}, Outcome.CONVERGED, "", history(()), net)
        arrays = {f"0.point.{c}": column for c, column in points.items()}
        arrays["0.value.u"] = bare.predict(**points)["u"] + 0.1 * rng.standard_normal(readings)
    spec = {
        "problem": {
            "coordinates": {c: list(BOXES[c]) for c in coordinates},
            "fields": [{"name": "u", "unit": "K"}],
            "data": [{"name": "rod", "rows": readings, "sha256": "0"}] if readings else [],
        },
        "training": {
            "type": "Training",
            "phases": [],
            "points": {"type": "Points", "interior": 10, "sampling": "sobol"},
        },
        "method": {"name": "scratch"},
        "source": None,
    }
    given = Result(
        name="rod",
        unknowns={
            "kappa": Estimate(1.003, 0.02, (0.96, 1.04), "m2/s", True, 2.0),
            "h": Estimate(1.5, math.inf, (-math.inf, math.inf), "", False, 3.0),
        },
        outcome=Outcome.CONVERGED,
        sentence=Outcome.CONVERGED.sentence,
        history=history(),
        network=net,
        correlation=np.array([[1.0, -0.95], [-0.95, 1.0]]),
        likelihood=("rod: independent normal errors whose standard deviation is 0.1 (as given, 60 readings)",),
        closures=150,
        seconds=2.0,
        provenance={"tgsr": "0.1.0", "jax": "0.10.1", "threads": 2, "engine": "jax"},
        inputs=(spec, npz_bytes(arrays), b""),
    )
    return replace(given, **changes)
