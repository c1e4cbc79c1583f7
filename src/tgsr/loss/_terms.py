"""From a problem to the terms of its loss: which points, which rows vanish there, and what each part is called.

A *term* is a set of points with everything that is asked there, so that networks run over its points once. Each of its
*parts* is one row per point: an equation, a condition, a measured field. The loss is a weighted sum of mean squares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.loss._rows import Part, Place, Term, called, components, flat
from tgsr.problem._conditions import (
    AnyCondition,
    Condition,
    Dirichlet,
    Initial,
    Neumann,
    Periodic,
    Points,
)
from tgsr.problem._data import Data
from tgsr.problem._domain import Face
from tgsr.problem._fields import FieldView, Index
from tgsr.problem._names import arguments_of, describe
from tgsr.problem._problem import Problem


class _Builder:
    def __init__(self, problem: Problem, points: Points) -> None:
        self.problem, self.points = problem, points
        self.axes = problem.domain.names
        self.names: dict[str, int] = {}

    def named(self, name: str) -> str:
        """`name`, numbered from its second use on."""
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def values(self, place: Place, which: int = 0) -> dict[str, Any]:
        """What functions are bound to by name."""
        found: dict[str, Any] = {name: place.x[which][:, i] for i, name in enumerate(self.axes)}
        for name in self.problem.all_fields:
            found[name] = FieldView(name, self.axes, lambda index, name=name: place.getters[which](name, index))
        return {**found, **place.unknowns}

    def bound(self, function: Callable[..., Any] | float, what: str) -> Callable[[Place], Any]:
        """A user's function, or a number, as a function of the place."""
        if not callable(function):
            return lambda place: jnp.asarray(float(function))
        names = arguments_of(function, self.problem.argument_names, what)
        return lambda place: called(function, names, self.values(place), what)

    # ---- where the points are

    def count(self, kind: str) -> int:
        given = getattr(self.points, kind)
        if given is not None:
            return given
        d = len(self.axes)
        sizes = {"interior": (200, 1000, 2000), "boundary": (1, 200, 600), "initial": (1, 100, 400)}[kind]
        return sizes[min(d, 3) - 1]

    def on(self, face: Face | None, count: int) -> Callable[[np.random.Generator], list[np.ndarray]]:
        return lambda rng: [self.problem.domain.draw(count, rng, self.points.sampling, face)]

    # ---- the terms

    def interior(self) -> Term:
        parts = []
        for function in self.problem.residuals:
            row = self.bound(function, "a residual")
            parts += self.split(self.named(describe(function)), "pde", row, f"residual {describe(function)!r}")
        return Term("interior", tuple(parts), self.on(None, self.count("interior")))

    def split(self, name: str, kind: str, row: Callable[[Place], Any], what: str) -> list[Part]:
        """One part per component that the function returns."""
        how_many = components(row, len(self.axes), self.problem, what)
        if how_many == 0:
            return [Part(name, kind, lambda place: flat(row(place), place.points, what))]
        return [
            Part(f"{name}[{i}]", kind, lambda place, i=i: flat(row(place)[i], place.points, what))
            for i in range(how_many)
        ]

    def condition(self, condition: AnyCondition) -> list[Term]:
        if isinstance(condition, Periodic):
            return [self.periodic(condition)]
        if isinstance(condition, Initial):
            axis = self.axes.index(condition.time)
            faces = [Face(axis, float(self.problem.domain.low[axis]), 0, f"{condition.time}=start")]
            kind, label = "ic", f"initial {condition.field}" + (f" d{condition.order}" if condition.order else "")
        elif isinstance(condition.at, Mapping):
            points = self.problem.domain.listed(condition.at)
            label = condition.name or self.default_label(condition)
            parts = self.split(self.named(label), "bc", self.row(condition), f"condition {label!r}")
            return [Term(label, tuple(parts), lambda rng: [points])]
        else:
            faces, kind, label = self.problem.domain.faces(condition.at), "bc", self.default_label(condition)
        label = condition.name or label
        out = []
        for face in faces:
            here = label if kind == "ic" else f"{label} {face.name}"
            count = self.count("initial" if kind == "ic" else "boundary")
            if kind == "bc":
                count = max(1, round(count / self.boundary_faces))
            parts = self.split(self.named(here), kind, self.row(condition, face), f"condition {here!r}")
            out.append(Term(here, tuple(parts), self.on(face, count)))
        return out

    @property
    def boundary_faces(self) -> int:
        """Over how many faces the boundary points are split (each distinct face counts once)."""
        seen = set()
        for condition in self.problem.conditions:
            at = getattr(condition, "at", None)
            if at is not None and not isinstance(at, Mapping):
                seen |= {face.name for face in self.problem.domain.faces(at)}
            if isinstance(condition, Periodic):
                seen |= {f"{condition.along} ends"}
        return max(len(seen), 1)

    @staticmethod
    def default_label(condition: Any) -> str:
        if isinstance(condition, Condition):
            return describe(condition.residual)
        return f"{type(condition).__name__.lower()} {condition.field}"

    def row(self, condition: Any, face: Face | None = None) -> Callable[[Place], Any]:
        if isinstance(condition, Condition):
            return self.bound(condition.residual, "a condition")
        value = self.coefficient(condition, "value")

        def u(place: Place, index: Index = ()) -> jax.Array:
            return place.getters[0](condition.field, index)

        if isinstance(condition, Dirichlet):
            return lambda place: u(place) - value(place)
        if isinstance(condition, Initial):
            axis = self.axes.index(condition.time)
            return lambda place: u(place, (axis,) * condition.order) - value(place)
        assert face is not None  # the problem has checked it
        axis, side = face.axis, face.side
        if isinstance(condition, Neumann):
            return lambda place: side * u(place, (axis,)) - value(place)
        a, b = self.coefficient(condition, "a"), self.coefficient(condition, "b")
        return lambda place: a(place) * u(place) + b(place) * side * u(place, (axis,)) - value(place)

    def coefficient(self, condition: Any, key: str) -> Callable[[Place], jax.Array]:
        """The number or function that a condition gives for `key`, as one number per point."""
        what = f"the {key} of {type(condition).__name__} for {condition.field!r}"
        function = self.bound(getattr(condition, key), what)
        return lambda place: flat(function(place), place.points, what)

    def periodic(self, condition: Periodic) -> Term:
        axis = self.axes.index(condition.along)
        low, high = float(self.problem.domain.low[axis]), float(self.problem.domain.high[axis])
        count = max(1, round(self.count("boundary") / self.boundary_faces))

        def draw(rng: np.random.Generator) -> list[np.ndarray]:
            start = self.problem.domain.draw(count, rng, self.points.sampling, Face(axis, low, -1, "low"))
            end = start.copy()
            end[:, axis] = high
            return [start, end]

        parts = []
        for name in condition.fields or self.problem.fields:
            for order in range(condition.order):
                index = (axis,) * order
                label = self.named(condition.name or f"periodic {name}" + (f" d{order}" if order else ""))
                parts.append(Part(label, "bc", lambda p, n=name, i=index: p.getters[0](n, i) - p.getters[1](n, i)))
        return Term(f"periodic {condition.along}", tuple(parts), draw, sets=2)

    def data(self, data: Data, number: int) -> list[Term]:
        out = []
        for name, values in data.values.items():
            measured = ~np.isnan(values)
            points = np.stack([data.points[axis][measured] for axis in self.axes], axis=1)
            noise = data.noise[name]
            label = data.name if len(data.values) == 1 else f"{data.name} {name}"

            def row(place: Place, name: str = name, number: int = number) -> jax.Array:
                return (place.getters[0](name, ()) - place.stored["values"]) / place.sigma[number]

            part = Part(self.named(label), "data", row, noise, number)
            out.append(
                Term(label, (part,), lambda rng, p=points: [p], {"values": np.asarray(values)[measured]}, fixed=True)
            )
            number += 1
        return out


def build_terms(problem: Problem, points: Points) -> list[Term]:
    """Every term of a problem's loss: interior, each face of each condition, each measured field."""
    builder = _Builder(problem, points)
    terms = [builder.interior()]
    for condition in problem.conditions:
        terms += builder.condition(condition)
    number = 0
    for data in problem.data:
        new = builder.data(data, number)
        terms += new
        number += len(new)
    return terms
