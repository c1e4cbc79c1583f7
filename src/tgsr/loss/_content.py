"""What the rows of a term compute, as a fingerprint: by content, so that equal problems can share compiled programs.

A function is not its content: a user may change a number that it reads and build the problem again. What is compared
is therefore the traced program of the rows, with every constant in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.loss._rows import Place, Term
from tgsr.problem._fields import Index
from tgsr.problem._problem import Problem

POINTS = 3


def content_of(term: Term, wanted: Sequence[Mapping[str, Sequence[Index]]], problem: Problem, sigmas: int) -> str:
    """SHA-256 of the rows of a term as functions of fields, coordinates, unknowns, readings and noise levels."""
    keys = [[(name, index) for name in sorted(one) for index in one[name]] for one in wanted]
    names = [u.name for u in problem.unknowns]

    def rows(fields: Any, x: Any, unknowns: Any, values: Any, sigma: Any) -> list[jax.Array]:
        given = [dict(zip(k, f, strict=True)) for k, f in zip(keys, fields, strict=True)]
        getters = [lambda name, index, one=one: one[name, index] for one in given]
        place = Place(getters, x, dict(zip(names, unknowns, strict=True)), {"values": values}, sigma)
        return [part.row(place) for part in term.parts]

    point, number = jax.ShapeDtypeStruct((POINTS,), jnp.float64), jax.ShapeDtypeStruct((), jnp.float64)
    traced = jax.make_jaxpr(rows)(
        [[point] * len(k) for k in keys],
        [jax.ShapeDtypeStruct((POINTS, len(problem.domain.names)), jnp.float64)] * len(keys),
        [number] * len(names),
        point,
        jax.ShapeDtypeStruct((max(sigmas, 1),), jnp.float64),
    )
    digest = hashlib.sha256(repr((keys, names, str(traced))).encode())
    for constant in _constants(traced):
        array = np.asarray(constant)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _constants(traced: Any) -> Iterator[Any]:
    """The arrays that a traced program has swallowed, those of the programs inside it included."""
    yield from getattr(traced, "consts", ())
    for step in getattr(traced, "jaxpr", traced).eqns:
        for value in step.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from _constants(inner)
