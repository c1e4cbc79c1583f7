"""Characteristic sizes, so that no result depends on the units a problem is written in.

Coordinates go to [-1, 1]; a field is measured by the mean and spread of its data (else of its conditions); an equation
by its typical size when every derivative of a field has its characteristic size (field / half-width of the box). Under
a change of units all of these change together, and what the optimiser sees stays the same to rounding.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError
from tgsr._random import stream
from tgsr.loss._plan import TermPlan
from tgsr.loss._rows import Place, Term, called, flat
from tgsr.network._propagate import MLP
from tgsr.network._surrogate import Net, Surrogate
from tgsr.problem._conditions import Dirichlet, Initial
from tgsr.problem._fields import Index
from tgsr.problem._names import arguments_of
from tgsr.problem._problem import Problem
from tgsr.problem._unknowns import Field, Transform

SAMPLES = 64


def field_size(problem: Problem, spec: Field) -> tuple[float, float]:
    """(offset, scale) of a field: as declared, else from its data, else from the values its conditions impose."""
    values = [d.values[spec.name][~np.isnan(d.values[spec.name])] for d in problem.data if spec.name in d.values]
    if not values:
        values = [_imposed(problem, c) for c in problem.conditions if getattr(c, "field", None) == spec.name]
    seen = np.concatenate([v for v in values if v is not None and len(v)] or [np.zeros(0)])
    offset = float(seen.mean()) if len(seen) else 0.0
    spread = float(seen.std()) if len(seen) else 0.0
    if not spread > 1e-12 * abs(offset):  # constant or no values: the size of the constant is all there is
        spread = abs(offset) or 1.0
    return spec.offset if spec.offset is not None else offset, spec.scale or spread


def _imposed(problem: Problem, condition: object) -> np.ndarray | None:
    if not isinstance(condition, (Dirichlet, Initial)) or getattr(condition, "order", 0):
        return None
    if not callable(condition.value):
        return np.array([float(condition.value)])
    points = problem.domain.draw(SAMPLES, np.random.Generator(np.random.Philox(0)), "sobol")
    values = {name: jnp.asarray(points[:, i]) for i, name in enumerate(problem.domain.names)}
    values |= {u.name: jnp.asarray(u.guess) for u in problem.unknowns}
    what = f"the value of {type(condition).__name__} for {condition.field!r}"
    names = arguments_of(condition.value, values, what)
    answer = np.asarray(flat(called(condition.value, names, values, what), len(points), what))
    return answer[np.isfinite(answer)]


def build_surrogate(problem: Problem, mlp: MLP) -> Surrogate:
    """The networks of a problem with their scales."""
    auto = problem.scale == "auto"
    low, high = problem.domain.low, problem.domain.high
    d = len(low)
    centre = (low + high) / 2 if auto else np.zeros(d)
    half = (high - low) / 2 if auto else np.ones(d)
    sizes = [field_size(problem, f) if auto else (f.offset or 0.0, f.scale or 1.0) for f in problem.field_specs]
    nets = [
        Net(
            problem.fields,
            tuple(range(d)),
            mlp,
            tuple(map(float, centre)),
            tuple(map(float, half)),
            tuple(offset for offset, _ in sizes),
            tuple(scale for _, scale in sizes),
        )
    ]
    for unknown in problem.unknown_fields:
        axes = [problem.domain.names.index(name) for name in unknown.of]
        nets.append(
            Net(
                (unknown.name,),
                tuple(axes),
                MLP(unknown.widths),
                tuple(float((low[i] + high[i]) / 2) for i in axes),
                tuple(float((high[i] - low[i]) / 2) for i in axes),
                (0.0 if unknown.positive else unknown.guess,),
                (unknown.guess if unknown.positive else unknown.size,),
                unknown.positive,
            )
        )
    return Surrogate(tuple(nets), tuple(Transform(u, scaled=auto) for u in problem.unknowns))


def part_sizes(problem: Problem, surrogate: Surrogate, plan: TermPlan) -> list[float]:
    """The characteristic size of each row of a term; 1 under scale="none" and for data, which have their own sigma.

    The root mean square of the row over points of the domain, with every derivative drawn at random at its own size.
    Always the same draw: how large an equation is belongs to the problem, and must not differ between seeds.
    """
    rng = stream(0, "probes")
    points = jnp.asarray(plan.term.draw(rng)[0])
    points = points[np.resize(np.arange(len(points)), SAMPLES)]
    drawn: list[dict[tuple[str, Index], jnp.ndarray]] = []
    for wanted in plan.wanted:
        given = {}
        for name in sorted(wanted):
            net = surrogate.nets[surrogate.net_of(name)]
            column = net.fields.index(name)
            for index in wanted[name]:
                noise, local = rng.normal(size=SAMPLES), net.local(index)
                size = 0.0 if local is None else net.scale[column] * net.stretch(local)
                value = size * noise
                if index == ():
                    value = net.scale[column] * np.exp(0.5 * noise) if net.positive else net.offset[column] + value
                given[name, index] = jnp.asarray(value)
        drawn.append(given)
    unknowns = {u.name: jnp.asarray(u.guess) for u in problem.unknowns}

    def place(which: np.ndarray) -> Place:
        return Place(
            [lambda name, index, given=given: given[name, index][which] for given in drawn],
            [points[which]] * len(drawn),
            unknowns,
            {"values": jnp.zeros(SAMPLES)},
            jnp.ones(1_000),
        )

    every = place(np.arange(SAMPLES))
    half = place(np.resize(np.arange(SAMPLES // 2), SAMPLES))  # other points in place of the second half
    sizes = []
    for part in plan.term.parts:
        if part.kind == "data":
            sizes.append(1.0)
            continue
        row, other = np.asarray(part.row(every)), np.asarray(part.row(half))
        first = slice(SAMPLES // 2)
        if not np.allclose(row[first], other[first], rtol=1e-6, equal_nan=True):
            raise InputError(
                f"{part.name!r} mixes points: what it gives at one depends on the others",
                field=part.name,
                remedy="Leave out means, sums and maxima over points: every point must stand for itself",
            )
        sizes.append(1.0 if problem.scale == "none" else _rms(row, plan.term, part.name))
    return sizes


def _rms(row: np.ndarray, term: Term, part: str) -> float:
    finite = row[np.isfinite(row)]
    if not len(finite):
        raise InputError(
            f"{part!r} of {term.name!r} is NaN or infinite at every point tried, at the first guesses",
            field=part,
            remedy="Look for a division by zero or the root of a negative number",
        )
    size = float(np.sqrt(np.mean(finite**2)))
    return size if size > 0 else 1.0
