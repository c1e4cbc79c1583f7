"""What a term asks of the networks, and its rows from the answer: collapsed derivatives are zero in the row, and the
value of their operator is added instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp

from tgsr.loss._passes import Ask
from tgsr.loss._plan import TermPlan, coefficient
from tgsr.loss._rows import Getter, Place
from tgsr.network._propagate import Operator, Tape
from tgsr.network._surrogate import Surrogate
from tgsr.problem._fields import Index


def asked(
    plan: TermPlan, surrogate: Surrogate, collapsing: bool, x: Sequence[jax.Array], unknowns: Mapping[str, jax.Array]
) -> list[Ask]:
    """One ask per point set of a term."""
    if not (collapsing and plan.collapses):
        return [Ask(points, wanted, {}) for points, wanted in zip(x, plan.wanted, strict=True)]
    zero = jnp.zeros(x[0].shape[0], x[0].dtype)

    def any_value(name: str, index: Index) -> jax.Array:
        return zero  # the coefficients depend on no field

    operators: dict[int, list[Operator]] = {}
    for collapse in plan.collapses:
        net = surrogate.nets[collapse.net]
        operator: dict[Index, jax.Array] = {}
        for index in collapse.indices:
            local = net.local(index)
            assert local is not None  # only derivatives in the network's own coordinates are collapsed
            slope = coefficient(plan.term, collapse.part, (collapse.field, index), any_value, x[0], unknowns)
            operator[local] = net.stretch(local) * slope
        operators.setdefault(collapse.net, []).append(operator)
    return [Ask(x[0], plan.carried, operators)]


def rows_of(
    plan: TermPlan, surrogate: Surrogate, collapsing: bool, place: Place, tapes: Sequence[Mapping[int, Tape]]
) -> list[jax.Array]:
    """The rows of a term, unscaled."""
    collapses = plan.collapses if collapsing else ()
    zero = jnp.zeros(place.points, place.x[0].dtype)
    rows = []
    for number, part in enumerate(plan.term.parts):
        mine = [c for c in collapses if c.part == number]
        gone = {(c.field, index) for c in mine for index in c.indices}
        getters = [_without(get, gone, zero) for get in place.getters] if mine else place.getters
        row = part.row(replace(place, getters=getters))
        for collapse in mine:
            net = surrogate.nets[collapse.net]
            column = net.fields.index(collapse.field)
            slot = [c for c in collapses if c.net == collapse.net].index(collapse)
            row = row + net.scale[column] * tapes[0][collapse.net].operators[slot][:, column]
        rows.append(row)
    return rows


def _without(get: Getter, gone: set[tuple[str, Index]], zero: jax.Array) -> Getter:
    return lambda name, index: zero if (name, index) in gone else get(name, index)
