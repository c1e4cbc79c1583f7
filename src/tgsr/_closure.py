"""One evaluation of a problem's loss and its gradient: what optimisers spend their time on, as a function to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from tgsr._errors import InputError, plain
from tgsr._jax import computing
from tgsr._random import stream
from tgsr._ranks import spread_over
from tgsr._request import solve_request
from tgsr.loss import Batch, Controls, Objective, build_objective
from tgsr.network._propagate import MLP
from tgsr.problem import Problem
from tgsr.problem._names import nearest
from tgsr.training import Training
from tgsr.training._controls import Weighing

PRECISIONS = ("float64", "float32")


@dataclass(frozen=True, eq=False)
class Closure:
    """The loss of a problem as a function of all trainable numbers: `loss, gradient = closure(theta)`.

    `theta` is one flat vector: every weight matrix (inputs, outputs) and bias in order, then the raw number behind each
    unknown (its `Transform`); `entries` says where each stands, `start` is a first theta, `theta(...)` builds others.
    """

    objective: Objective
    batch: Batch
    controls: Controls
    start: np.ndarray
    precision: str = "float64"

    def __call__(self, theta: ArrayLike | None = None) -> tuple[float, np.ndarray]:
        """(loss, gradient) at `theta`, by default at `start`."""
        given = self.start if theta is None else theta
        with computing(), jax.enable_x64(self.precision == "float64"):
            flat = np.asarray(given, dtype=self.precision)
            if flat.shape != self.start.shape:
                raise InputError(
                    f"theta has shape {flat.shape}", field="theta", remedy=f"Give {self.start.size} numbers"
                )
            batch, controls = self._placed
            (loss, _), gradient = self._program(self._given(flat), batch, controls)
            return float(loss), np.asarray(gradient)

    @cached_property
    def _program(self) -> Any:
        return jax.jit(self.objective.closure)

    @cached_property
    def _placed(self) -> tuple[Batch, Controls]:
        return self.objective.placed(self.batch), self._given(self.controls)

    def _given(self, tree: Any) -> Any:
        spread = self.objective.spread
        return jax.tree.map(jax.numpy.asarray, tree) if spread is None else spread.everywhere(tree)

    @property
    def entries(self) -> dict[str, slice]:
        """Where each array stands in theta: `net0.<layer>.weight`, `net0.<layer>.bias`, `unknown.<name>`."""
        return self.objective.surrogate.entries()

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each part's mean square in the loss."""
        given = np.asarray(self.controls.weights, dtype=float)
        return {part.name: float(w) for part, w in zip(self.objective.parts, given, strict=True)}

    @property
    def points(self) -> dict[str, np.ndarray]:
        """The points (points, coordinates) of each term of the loss."""
        terms = enumerate(self.objective.plans)
        return {plan.term.name: self.objective.points_of(self.batch, number) for number, plan in terms}

    def theta(
        self, layers: Sequence[tuple[ArrayLike, ArrayLike]], unknowns: Mapping[str, float] | None = None
    ) -> np.ndarray:
        """A theta from the field network's (weight, bias) pairs; unknowns (physical values) stay at their guess."""
        shapes = self.objective.surrogate.nets[0].shapes
        given = [(np.shape(weight), np.shape(bias)) for weight, bias in layers]
        if given != [(shape, shape[1:]) for shape in shapes]:
            raise InputError(f"the layers have shapes {given}", field="layers", remedy=f"This network has {shapes}")
        theta, entries = self.start.copy(), self.entries
        for number, pair in enumerate(layers):
            for kind, array in zip(("weight", "bias"), pair, strict=True):
                theta[entries[f"net0.{number}.{kind}"]] = np.ravel(np.asarray(array))
        transforms = {t.unknown.name: t for t in self.objective.surrogate.transforms}
        for name, value in (unknowns or {}).items():
            if name not in transforms:
                raise InputError(f"no unknown is called {name!r}", field=name, remedy=nearest(name, transforms))
            theta[entries[f"unknown.{name}"]] = transforms[name].raw(value)
        return theta


def closure(
    problem: Problem,
    *,
    network: MLP | None = None,
    training: Training | str | None = None,
    seed: int = 0,
    precision: str = "float64",
    engine: str = "auto",
    devices: int = 1,
) -> Closure:
    """The loss and gradient that `solve` would minimise with these arguments, to time it or to minimise it otherwise.

    `precision` is "float64" or "float32": all points, weights and products are of that type. `engine` is "jax",
    "native" (compiled for this processor with g++), or "auto": native where it runs and the work is large enough. The
    points are spread over so many `devices` of this process; the bits are those of one.
    """
    if precision not in PRECISIONS:
        raise InputError(
            f"precision is {plain(precision, 40)!r}", field="precision", remedy=nearest(str(precision), PRECISIONS)
        )
    request = solve_request(problem, network, training, seed, engine, devices)
    with computing():
        single, points = precision == "float32", request.training.points
        spread = spread_over(request.devices)
        objective = build_objective(
            problem, request.network, points, engine=request.engine, single=single, spread=spread
        )
        theta = objective.surrogate.initial(stream(request.seed, "init"))
        weighing = Weighing(objective, request.training.weight_table)
        made = objective.draw(request.seed), weighing.controls(weighing.first_sigma(), theta)
        batch, controls = jax.tree.map(lambda array: array.astype(precision), made)
        return Closure(objective, batch, controls, np.asarray(theta, dtype=precision), precision)
