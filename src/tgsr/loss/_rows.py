"""What must vanish: rows over points, the parts and terms they belong to, and the user's functions behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError, plain
from tgsr.problem._fields import FieldView, Index
from tgsr.problem._names import call_by_name, describe
from tgsr.problem._noise import Noise
from tgsr.problem._problem import Problem

Getter = Callable[[str, Index], jax.Array]


@dataclass(frozen=True)
class Place:
    """What a row may use: fields at each of its points, coordinates, unknowns, and numbers stored per point."""

    getters: Sequence[Getter]
    x: Sequence[jax.Array]  # one (points, d) per point set; periodic conditions have two
    unknowns: Mapping[str, jax.Array]
    stored: Mapping[str, jax.Array]
    sigma: jax.Array  # one per measured part of the whole loss

    @property
    def points(self) -> int:
        """How many points there are."""
        return self.x[0].shape[0]


@dataclass(frozen=True)
class Part:
    """One named row per point, and how it is weighed."""

    name: str
    kind: str  # 'pde', 'bc', 'ic' or 'data'
    row: Callable[[Place], jax.Array]
    noise: Noise | None = None
    sigma_number: int = -1
    follows: str = ""  # the part whose weight it takes, unless it is given one of its own


@dataclass(frozen=True)
class Term:
    """A set of points and the parts that are asked there."""

    name: str
    parts: tuple[Part, ...]
    draw: Callable[[np.random.Generator], list[np.ndarray]]
    stored: Mapping[str, np.ndarray] = field(default_factory=dict)
    fixed: bool = False  # measured points never move
    sets: int = 1  # how many points each row compares


def whitened(z: jax.Array, noise: Noise) -> jax.Array:
    """The number whose half square is the negative log-likelihood of the standardised residual z; the sign is z's."""
    from tgsr.problem._noise import Gaussian

    if isinstance(noise, Gaussian):
        return z
    # sqrt(2 rho) has slope 1 at zero; written as z * sqrt(2 rho / z^2) so that its derivative there is finite.
    small = jnp.abs(z) < 1e-4
    safe = jnp.where(small, 1.0, z)
    return jnp.where(small, z, safe * jnp.sqrt(2.0 * noise.rho(safe, jnp) / (safe * safe)))


def called(function: Callable[..., Any], names: tuple[str, ...], values: Mapping[str, Any], what: str) -> Any:
    """Call a user's function; what goes wrong inside is told in his terms."""
    try:
        return call_by_name(function, names, values)
    except InputError:
        raise
    except (
        jax.errors.TracerBoolConversionError,
        jax.errors.ConcretizationTypeError,
        jax.errors.TracerArrayConversionError,
    ):
        raise InputError(
            f"{what} {describe(function)!r} decides or converts by the value of an array",
            field=describe(function),
            remedy="Write jnp.where(condition, a, b) instead of if, and jax.numpy instead of numpy or math",
        ) from None
    except Exception as error:
        advice = "Use jax.numpy functions on its arguments"
        if "truth value" in str(error) or "Only scalar arrays" in str(error):
            advice = "Write jnp.where(condition, a, b) instead of if, and jax.numpy instead of numpy or math"
        elif "__jax_array__" in str(error) or ("FieldView" in str(error) and "ufunc" not in str(error)):
            advice = "Write u.value where a function refuses a field itself"
        raise InputError(
            f"{what} {describe(function)!r} fails ({type(error).__name__}: {plain(error, 160)})",
            field=describe(function),
            remedy=advice,
        ) from error


def flat(row: Any, points: int, what: str) -> jax.Array:
    """A row as one number per point."""
    try:
        if isinstance(row, (str, bytes)):
            raise TypeError
        array = jnp.asarray(row.value if isinstance(row, FieldView) else row)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{what} returns {type(row).__name__}, not an array", field=what, remedy="Return one number per point"
        ) from None
    if array.shape not in ((), (points,)):
        raise InputError(
            f"{what} returns shape {array.shape} for {points} points",
            field=what,
            remedy="Return one number per point",
        )
    if not jnp.issubdtype(array.dtype, jnp.floating):
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            raise InputError(
                f"{what} returns complex numbers", field=what, remedy="Return real and imaginary parts as a tuple"
            )
        array = array.astype(float)
    return jnp.broadcast_to(array, (points,))


def components(row: Callable[[Place], Any], dimension: int, problem: Problem, what: str) -> int:
    """0 if a row function returns one array, else how many it returns."""
    found: list[int] = []

    def probe(x: jax.Array) -> jax.Array:
        answer = row(blank_place(x, problem))
        if answer is None:
            raise InputError(f"{what} returns nothing", field=what, remedy="Add a return statement")
        if isinstance(answer, (tuple, list)) and not 1 <= len(answer) <= 64:
            raise InputError(
                f"{what} returns {len(answer)} components", field=what, remedy="Return between 1 and 64 of them"
            )
        found.append(len(answer) if isinstance(answer, (tuple, list)) else 0)
        return x

    jax.eval_shape(probe, jax.ShapeDtypeStruct((7, dimension), jnp.float64))
    return found[0]


def blank_place(x: jax.Array, problem: Problem) -> Place:
    """A place whose fields are all one, for looking at what a row does."""
    ones = jnp.ones(x.shape[0])
    unknowns = {u.name: jnp.asarray(u.guess) for u in problem.unknowns}
    return Place([lambda name, index: ones] * 2, [x, x], unknowns, {"values": ones}, jnp.ones(1))
