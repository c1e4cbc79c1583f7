"""Readings kept out of training, and how well a result meets them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np

from tgsr._random import stream
from tgsr._result import Result
from tgsr.problem import Data, Problem
from tgsr.problem._noise import Noise

LEAST = 10  # readings: of fewer, none can be spared


def split(problem: Problem, fraction: float, seed: int) -> tuple[Problem, tuple[Data, ...]]:
    """(the problem with the readings to train on, the others): the share `fraction` of each data set, by lot.

    The lot falls by `stream(seed, "observations")`, so every method sees the same rows at a seed. A field keeps at
    least one reading in each data set. With fewer than 10 readings nothing is held out.
    """
    draw = stream(seed, "observations")
    if fraction == 0 or sum(len(data) for data in problem.data) < LEAST:
        return problem, ()
    kept, held = [], []
    for data in problem.data:
        out = np.zeros(len(data), dtype=bool)
        out[draw.permutation(len(data))[: round(fraction * len(data))]] = True
        for column in data.values.values():
            if np.isnan(column[~out]).all():
                out[~np.isnan(column)] = False
        kept.append(_rows(data, ~out))
        held += [_rows(data, out)] if out.any() else []
    trained = copy.copy(problem)
    trained.data = tuple(kept)
    return trained, tuple(held)


def residuals(result: Result, held: Sequence[Data]) -> list[np.ndarray]:
    """Computed minus measured, per held-out data set and measured field."""
    out = []
    for data in held:
        computed = result.predict(**data.points)
        out += [(computed[name] - values)[~np.isnan(values)] for name, values in data.values.items()]
    return out


def deviances(held: Sequence[Data], found: Mapping[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """`2 rho(z)` of every held-out reading, z = residual / scale of its noise, for each named list of residuals.

    For Gaussian noise this is z^2. Noise that was not stated takes the scale of whoever fits best, the same for all.
    """
    noises: list[Noise] = [data.noise[name] for data in held for name in data.values]
    out: dict[str, list[np.ndarray]] = {who: [np.zeros(0)] for who in found}
    for number, noise in enumerate(noises):
        best = min((each[number] for each in found.values()), key=lambda r: float(np.sum(r**2)), default=np.zeros(0))
        scale = noise.scale or (noise.fitted(best).scale if np.any(best) else None) or 1.0
        for who, each in found.items():
            out[who].append(2.0 * noise.rho(each[number] / scale))
    return {who: np.concatenate(parts) for who, parts in out.items()}


def _rows(data: Data, which: np.ndarray) -> Data:
    """Some rows of a data set, their numbers kept."""
    part = copy.copy(data)
    columns = ({k: c[which] for k, c in side.items()} for side in (data.points, data.values))
    part._store(**dict(zip(("points", "values"), columns, strict=True)), rows=data.rows[which])
    return part
