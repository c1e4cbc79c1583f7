"""Exact fields, functions of the coordinates for NumPy and JAX arrays alike, and what operators make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tgsr.problem._fields import FieldView, Index
from tgsr.problem._names import arguments_of, call_by_name

Exact = Callable[..., Any]


def arrays_of(*values: Any) -> Any:
    """`jax.numpy` if any value is JAX's, else NumPy: readings are made without starting JAX."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np


def derivative(exact: Exact, index: Index) -> Exact:
    """A derivative of a function of whole arrays, point by point: forward mode, one coordinate after another."""
    if not index:
        return exact
    lower, axis = derivative(exact, index[1:]), index[0]

    def along(*point: Any) -> jax.Array:
        point = tuple(jnp.asarray(x) for x in point)
        return jax.jvp(lower, point, tuple(jnp.full_like(x, float(i == axis)) for i, x in enumerate(point)))[1]

    return along


def applied(
    operator: Callable[..., Any], exact: Exact, coordinates: tuple[str, ...], constants: Mapping[str, float]
) -> Exact:
    """The function of the coordinates that an equation's left side is when the field is `exact`.

    `operator` is written as a residual is, of the field `u`. It is zero everywhere at an exact solution; for a
    manufactured one it is the source term, which therefore cannot disagree with the equation.
    """
    asked = arguments_of(operator, (*coordinates, "u", *constants), "the operator")

    def left_side(*point: Any) -> Any:
        view = FieldView("u", coordinates, lambda index: derivative(exact, index)(*point))
        return call_by_name(operator, asked, {**dict(zip(coordinates, point, strict=True)), **constants, "u": view})

    return left_side
