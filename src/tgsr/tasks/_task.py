"""What a task is: two systems, source and target, and how either becomes a problem with a truth beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tgsr
from tgsr._errors import InputError, plain
from tgsr._random import stream
from tgsr.problem._names import nearest
from tgsr.tasks._bound import cramer_rao
from tgsr.tasks._exact import Exact
from tgsr.tasks._profiles import COUNTS, ROLES, Profile, as_profile

Points = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Physics:
    """An equation with its conditions, its exact (or reference) field and constants, and how noisy it is read.

    `sensitivity` gives at points (a coordinate's array each) the derivative of the field with respect to every unknown.
    """

    coordinates: Mapping[str, tuple[float, float]]
    residual: Callable[..., Any]
    conditions: tuple[Any, ...]
    unknowns: tuple[tgsr.Unknown, ...]
    exact: Exact
    constants: Mapping[str, float]
    noise: float
    sensitivity: Callable[[Points], np.ndarray]


@dataclass(frozen=True, eq=False)
class Pool:
    """Where the field was read, what was read, and the standard deviation of the noise."""

    points: Points
    readings: np.ndarray
    sigma: float


@dataclass(frozen=True, eq=False)
class TaskCase:
    """A problem ready to be solved, and beside it what only `tgsr.evaluate` and `Task.measure` may read."""

    problem: tgsr.Problem
    truth: tgsr.Truth
    network: tgsr.MLP
    training: tgsr.Training
    budget: str  # for `tgsr.transfer`


def pool(physics: Physics, seed: int, role: str, observations: int, noise: float | None = None) -> Pool:
    """The first `observations` readings of the one pool of a seed: `u + noise * mean|u over the pool| * N(0, 1)`.

    The pool has 1,000 points (more if more are asked for), uniform in the box; fewer readings are a part of it, with
    the same noise. Source and target have a pool each.
    """
    size, index = max(observations, COUNTS.readings), ROLES[::-1].index(role)
    low, high = np.array(list(physics.coordinates.values()), dtype=float).T
    drawn = low + (high - low) * stream(seed, "observations", index).random((size, len(low)))
    points = dict(zip(physics.coordinates, drawn.T, strict=True))
    field = np.asarray(physics.exact(**points))
    sigma = (physics.noise if noise is None else noise) * float(np.mean(np.abs(field)))
    readings = field + sigma * stream(seed, "noise", index).standard_normal(size)
    return Pool({name: x[:observations] for name, x in points.items()}, readings[:observations], sigma)


def problem_of(name: str, physics: Physics, seen: Pool) -> tgsr.Problem:
    """The inverse problem. No truth goes in; every number is taken as it stands, as in the paper."""

    def readings() -> tgsr.Data:
        return tgsr.Data(seen.points, {"u": seen.readings}, noise=seen.sigma or None, name="readings")

    return tgsr.Problem(
        name,
        coordinates=physics.coordinates,
        fields=["u"],
        unknowns=physics.unknowns,
        residuals=[physics.residual],
        conditions=physics.conditions,
        data=[readings()] if len(seen.readings) else [],
        scale="none",
    )


@dataclass(frozen=True, eq=False)
class Task:
    """A benchmark: recover the target's unknowns, with a network trained on the source."""

    name: str
    target: Callable[[], Physics]
    source: Callable[[], Physics]
    local: Callable[[tgsr.Result, tgsr.Truth], dict[str, float]] | None = None

    def physics(self, role: str = "target") -> Physics:
        """The system of a role."""
        if role not in ROLES:
            raise InputError(f"there is no role {plain(role, 40)!r}", field="role", remedy=nearest(str(role), ROLES))
        return self.target() if role == "target" else self.source()

    def case(
        self,
        seed: int,
        profile: Profile | str = "laptop",
        role: str = "target",
        *,
        observations: int | None = None,
        noise: float | None = None,
    ) -> TaskCase:
        """The problem of a role at a seed. `observations=0` is the control that has the conditions and sources only.

        `noise` is a share of the mean of |u|, by default the task's own.
        """
        effort, physics = as_profile(profile), self.physics(role)
        count = _checked(effort.counts(self.name, role).readings if observations is None else observations, noise)
        seen = pool(physics, seed, role, count, noise)
        name = self.name if role == "target" else f"{self.name}-source"
        return TaskCase(
            problem_of(name, physics, seen),
            tgsr.Truth(dict(physics.constants), physics.exact),
            effort.network(),
            effort.training(self.name, role),
            effort.budget,
        )

    def bound(
        self, seed: int, role: str = "target", *, observations: int = COUNTS.readings, noise: float | None = None
    ) -> dict[str, float]:
        """The Cramér-Rao bound of the readings of a seed: the least standard error, in percent of the truth."""
        physics = self.physics(role)
        seen = pool(physics, seed, role, _checked(observations, noise), noise)
        errors = cramer_rao(physics.sensitivity(seen.points), seen.sigma)
        return {n: 100.0 * e / abs(v) for (n, v), e in zip(physics.constants.items(), errors.tolist(), strict=True)}

    def measure(self, result: tgsr.Result, truth: tgsr.Truth) -> dict[str, float]:
        """Every error of a result: percent, 'parameter' (the mean), each unknown, 'field', and what the task adds."""
        errors = tgsr.evaluate(result, truth)
        extra = {} if self.local is None else self.local(result, truth)
        return {"parameter": errors.parameter, **errors.parameters, "field": errors.fields["u"], **extra}


def _checked(observations: int, noise: float | None) -> int:
    whole = isinstance(observations, (int, np.integer)) and not isinstance(observations, bool)
    if not whole or not 0 <= observations <= 10**7:
        raise InputError(
            f"the number of observations is {plain(observations, 40)!r}",
            field="observations",
            remedy="Give a whole number from 0",
        )
    number = isinstance(noise, (int, float)) and not isinstance(noise, bool)
    if noise is not None and not (number and 0 <= noise < np.inf):
        raise InputError(
            f"the noise is {plain(noise, 40)!r}", field="noise", remedy="Give a share of the mean of |u|, as 0.005"
        )
    return int(observations)
