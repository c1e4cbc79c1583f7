"""What a term needs of the networks, found by tracing its rows: derivatives, and operators that can travel whole.

A second derivative whose coefficient depends on position and unknowns only is *collapsed*: all such derivatives of a
field in one row become one operator channel (see `tgsr.network._propagate`), if that makes fewer channels in all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from tgsr.loss._content import content_of
from tgsr.loss._rows import Getter, Place, Term
from tgsr.network._channels import closed
from tgsr.network._surrogate import Surrogate
from tgsr.problem._fields import Index
from tgsr.problem._problem import Problem

Key = tuple[str, Index]  # a derivative of a field


@dataclass(frozen=True)
class Collapse:
    """In part `part`, these derivatives of `field` travel as one operator of network `net`."""

    part: int
    field: str
    net: int
    indices: tuple[Index, ...]


@dataclass(frozen=True)
class TermPlan:
    """What a term asks of the networks, per point set: `wanted` in full; `carried` and `collapses`, the fast path.

    `content` is the SHA-256 of what the rows compute: two plans that agree in it trace to the same steps.
    """

    term: Term
    wanted: tuple[dict[str, tuple[Index, ...]], ...]
    carried: dict[str, tuple[Index, ...]]
    content: str
    collapses: tuple[Collapse, ...] = ()

    @property
    def point_sets(self) -> int:
        """How many points each row compares (2 for periodic conditions)."""
        return len(self.wanted)


def wanted_by(term: Term, problem: Problem, sigmas: int) -> list[dict[str, tuple[Index, ...]]]:
    """Which derivatives each point set of a term uses."""
    sets = term.sets
    found: list[dict[str, set[Index]]] = [{} for _ in range(sets)]

    def trace(x: jax.Array) -> list[jax.Array]:
        ones = jnp.ones(x.shape[0])

        def getter(which: int) -> Callable[[str, Index], jax.Array]:
            def get(name: str, index: Index) -> jax.Array:
                found[which].setdefault(name, set()).add(index)
                return ones

            return get

        unknowns = {u.name: jnp.asarray(u.guess) for u in problem.unknowns}
        place = Place(
            [getter(i) for i in range(sets)], [x] * sets, unknowns, {"values": ones}, jnp.ones(max(sigmas, 1))
        )
        return [part.row(place) for part in term.parts]

    jax.eval_shape(trace, jax.ShapeDtypeStruct((3, len(problem.domain.names)), jnp.float64))
    return [{name: tuple(sorted(indices)) for name, indices in one.items()} for one in found]


def coefficient(
    term: Term, part: int, key: Key, get: Getter, x: jax.Array, unknowns: Mapping[str, jax.Array]
) -> jax.Array:
    """d row / d derivative, one number per point: the coefficient of a derivative in which the row is linear."""
    stored = {"values": jnp.zeros(x.shape[0])}

    def along(value: jax.Array) -> jax.Array:
        def with_value(name: str, index: Index) -> jax.Array:
            return value if (name, index) == key else get(name, index)

        return term.parts[part].row(Place([with_value], [x], unknowns, stored, jnp.ones(1)))

    at = get(*key)
    return jax.jvp(along, (at,), (jnp.ones_like(at),))[1]


def is_linear_in(term: Term, part: int, key: Key, keys: Sequence[Key], problem: Problem) -> bool:
    """Whether a row is linear in a derivative with a coefficient that depends on no field.

    Read off the traced program, not off samples: the derivative may only pass through operations that act on each
    number and have a slope (a step, or `stop_gradient`, would hide behind a slope of zero), and the slope of the row
    may use no field.
    """
    dimension, points = len(problem.domain.names), 3
    names = [u.name for u in problem.unknowns]

    def slope(values: list[jax.Array], raw: list[jax.Array], x: jax.Array) -> jax.Array:
        given = dict(zip(keys, values, strict=True))
        return coefficient(
            term, part, key, lambda name, index: given[name, index], x, dict(zip(names, raw, strict=True))
        )

    def row(values: list[jax.Array], raw: list[jax.Array], x: jax.Array) -> jax.Array:
        given, unknowns = dict(zip(keys, values, strict=True)), dict(zip(names, raw, strict=True))
        place = Place([lambda name, index: given[name, index]], [x], unknowns, {}, jnp.ones(1))
        return term.parts[part].row(place)

    arguments = ([jnp.ones(points)] * len(keys), [jnp.ones(())] * len(names), jnp.ones((points, dimension)))
    _, is_used = partial_eval.dce_jaxpr(jax.make_jaxpr(slope)(*arguments).jaxpr, [True])
    program = jax.make_jaxpr(row)(*arguments).jaxpr
    return not any(is_used[: len(keys)]) and has_slope(program, [k == key for k in keys])


_WITH_SLOPE = frozenset(
    "neg add sub mul div add_any convert_element_type broadcast_in_dim reshape squeeze select_n copy".split()
)


def has_slope(jaxpr: Any, marked: Sequence[bool]) -> bool:
    """Whether the marked inputs reach the outputs through operations of `_WITH_SLOPE` only."""
    touched = {id(v) for v, mark in zip(jaxpr.invars, marked, strict=False) if mark}
    for step in jaxpr.eqns:
        inputs = [id(v) in touched for v in step.invars]
        if not any(inputs):
            continue
        if step.primitive.name in ("jit", "pjit"):
            if not has_slope(step.params["jaxpr"].jaxpr, inputs):
                return False
        elif step.primitive.name not in _WITH_SLOPE or step.outvars[0].aval.dtype.kind != "f":
            return False
        touched.update(id(v) for v in step.outvars)
    return True


def plan_term(term: Term, problem: Problem, surrogate: Surrogate, sigmas: int) -> TermPlan:
    """Trace a term and decide what to collapse."""
    wanted = wanted_by(term, problem, sigmas)
    content = content_of(term, wanted, problem, sigmas)
    plain = TermPlan(term, tuple(wanted), dict(wanted[0]), content)
    if len(wanted) > 1 or not any(len(index) == 2 for indices in wanted[0].values() for index in indices):
        return plain
    per_part = [wanted_by(Term(term.name, (part,), term.draw), problem, sigmas)[0] for part in term.parts]
    carried = {name: set(indices) for name, indices in wanted[0].items()}
    collapses: list[Collapse] = []
    for number, own in enumerate(per_part):
        keys = [(name, index) for name, indices in own.items() for index in indices]
        for name, indices in own.items():
            net = surrogate.net_of(name)
            if surrogate.nets[net].positive or any(surrogate.nets[net].local(index) is None for index in indices):
                continue
            alone = [i for i in indices if not any(i in o.get(name, ()) for n, o in enumerate(per_part) if n != number)]
            linear = [i for i in alone if 1 <= len(i) <= 2 and is_linear_in(term, number, (name, i), keys, problem)]
            second = [i for i in linear if len(i) == 2]
            if not second:
                continue
            pairs = {i[k : k + 1] for i in second for k in (0, 1)}
            whole = tuple(second + [i for i in linear if len(i) == 1 and i not in pairs])
            rest = (carried[name] - set(whole)) | pairs
            others = set().union(*(carried[f] for f in carried if f != name and surrogate.net_of(f) == net))
            operators_here = sum(c.net == net for c in collapses)
            before = len(closed([*carried[name], *others])) + operators_here
            after = len(closed([*rest, *others])) + operators_here + 1
            if after < before:
                carried[name] = rest
                collapses.append(Collapse(number, name, net, whole))
    return replace(plain, carried={n: tuple(sorted(i)) for n, i in carried.items()}, collapses=tuple(collapses))
