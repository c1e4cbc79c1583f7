"""Which unknowns every row is affine in, all of them together: those can be eliminated (Golub & Pereyra 1973).

Read off the traced rows, not off samples: the slope of a row with respect to such an unknown may use none of the
eliminated ones, and on its way into the row the unknown may only pass through operations that have a slope (a step
would hide behind a slope of zero). What is not recognised counts as not affine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from tgsr.loss._objective import Objective
from tgsr.loss._plan import has_slope
from tgsr.loss._rows import Part, Place, Term
from tgsr.problem._fields import Index
from tgsr.problem._noise import Gaussian

POINTS = 3  # traced, never computed


@dataclass(frozen=True)
class Affine:
    """Which unknowns can be eliminated, and for each of the others the part of the loss that stands against it."""

    eliminated: tuple[bool, ...]
    against: tuple[tuple[str, str], ...]  # (unknown, part)

    @property
    def sentence(self) -> str:
        """What a user should know; empty when every unknown is eliminated."""
        if not self.against:
            return "" if self.eliminated else "There is no unknown to eliminate."
        found = "; ".join(f"{unknown} ({part!r})" for unknown, part in self.against)
        return f"Searched together with the weights, as a part of the loss is not affine in it: {found}."


def affine_unknowns(objective: Objective) -> Affine:
    """The unknowns in which all rows are jointly affine, taken greedily in the order of the problem."""
    names = objective.surrogate.unknown_names
    chosen: list[str] = []
    against = []
    for name in names:
        culprit = next(
            (
                part.name
                for plan in objective.plans
                for part in plan.term.parts
                if not _affine(plan.term, part, plan.wanted, [*chosen, name], objective)
            ),
            None,
        )
        if culprit is None:
            chosen.append(name)
        else:
            against.append((name, culprit))
    return Affine(tuple(name in chosen for name in names), tuple(against))


def _affine(
    term: Term, part: Part, wanted: Sequence[dict[str, tuple[Index, ...]]], chosen: list[str], objective: Objective
) -> bool:
    """Whether a row is affine in the `chosen` unknowns together."""
    names = objective.surrogate.unknown_names
    keys = [(name, index) for name, indices in wanted[0].items() for index in indices]
    keys += [(name, index) for one in wanted[1:] for name, indices in one.items() for index in indices]
    keys = list(dict.fromkeys(keys))
    sets, dimension = len(wanted), len(objective.problem.domain.names)
    sigmas = max(sum(p.kind == "data" for p in objective.parts), 1)

    def row(unknowns: list[jax.Array], values: list[list[jax.Array]], x: list[jax.Array]) -> jax.Array:
        given = [dict(zip(keys, one, strict=True)) for one in values]
        getters = [lambda name, index, one=one: one[name, index] for one in given]
        stored = {"values": jnp.zeros(POINTS)}
        return part.row(Place(getters, x, dict(zip(names, unknowns, strict=True)), stored, jnp.ones(sigmas)))

    ones = jnp.ones(POINTS)
    fields = ([[ones] * len(keys)] * sets, [jnp.ones((POINTS, dimension))] * sets)
    unknowns = [jnp.ones(())] * len(names)
    marked = [name in chosen for name in names]
    program = jax.make_jaxpr(row)(unknowns, *fields).jaxpr
    _, is_used = partial_eval.dce_jaxpr(program, [True])
    if not any(used and mark for used, mark in zip(is_used, marked, strict=False)):
        return True  # the row does not know them
    if part.noise is not None and not isinstance(part.noise, Gaussian):
        return False  # its likelihood bends the row
    if not has_slope(program, marked):
        return False

    def slopes(unknowns: list[jax.Array], values: Any, x: Any) -> jax.Array:
        def along(number: int) -> jax.Array:  # of one alone: a slope of 0 in another would still read it
            def moved(value: jax.Array) -> jax.Array:
                return row([*unknowns[:number], value, *unknowns[number + 1 :]], values, x)

            return jax.jvp(moved, (unknowns[number],), (jnp.ones(()),))[1]

        return jnp.stack([along(number) for number, mark in enumerate(marked) if mark])

    _, is_used = partial_eval.dce_jaxpr(jax.make_jaxpr(slopes)(unknowns, *fields).jaxpr, [True])
    return not any(used and mark for used, mark in zip(is_used, marked, strict=False))
