"""What a residual sees of a field: an array of its values whose attributes are its derivatives."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax

from tgsr._errors import InputError

MAX_ORDER = 4
Index = tuple[int, ...]  # a derivative: sorted coordinate numbers, () the value, (0, 0, 1) is d3/dx2 dy


@lru_cache(maxsize=4096)
def parse_derivative(text: str, coordinates: tuple[str, ...]) -> Index | None:
    """'xxt' as coordinate numbers; None if the text is no concatenation of coordinate names."""
    if text == "":
        return ()
    found = []
    for i, name in enumerate(coordinates):
        if text.startswith(name):
            rest = parse_derivative(text[len(name) :], coordinates)
            if rest is not None:
                found.append(tuple(sorted((i, *rest))))
    if len(set(found)) > 1:
        raise InputError(
            f"the derivative {text!r} can be read in more than one way",
            field=text,
            remedy='Write it as u.d("x", 2) instead',
        )
    return found[0] if found else None


class _NoDerivative(InputError, AttributeError):
    """Also an AttributeError, so that `hasattr`, by which JAX recognises its own arrays, gets its answer."""


class FieldView:
    """A field at a block of points. `u` is its value, `u.x`, `u.xx`, `u.xt`, `u.d("x", 3)` its derivatives.

    It behaves like an array of its values in arithmetic and in `jax.numpy`; `u.value` is that array itself.
    """

    __slots__ = ("_coordinates", "_get", "_name")
    __array_ufunc__ = None  # array * u asks u, instead of multiplying each number by the whole of u

    def __init__(self, name: str, coordinates: tuple[str, ...], get: Callable[[Index], jax.Array]) -> None:
        self._name, self._coordinates, self._get = name, coordinates, get

    def __getattr__(self, text: str) -> jax.Array:
        if text.startswith("_"):
            raise AttributeError(text)
        index = parse_derivative(text, self._coordinates)
        if not index:
            known = f"The coordinates are {', '.join(self._coordinates)}"
            raise _NoDerivative(
                f"field {self._name!r} has no derivative {text!r}",
                field=text,
                remedy=known if self._coordinates else "Take derivatives outside of jax.jit and other jax functions",
            )
        return self._derivative(index)

    def _derivative(self, index: Index) -> jax.Array:
        if len(index) > MAX_ORDER:
            letters = "".join(self._coordinates[i] for i in index)
            raise InputError(
                f"the derivative {letters!r} of field {self._name!r} is of order {len(index)}",
                field=letters,
                remedy=f"Orders up to {MAX_ORDER} are supported: introduce an auxiliary field for a lower-order system",
            )
        return self._get(index)

    @property
    def value(self) -> jax.Array:
        """The field's values as a plain array."""
        return self._get(())

    def d(self, *which: str | int) -> jax.Array:
        """A derivative by names and orders: `u.d("x", 3)`, `u.d("x", "y")`, `u.d("x", 2, "t", 1)`."""
        index: list[int] = []
        for item in which:
            if isinstance(item, str):
                index.append(self._number(item))
            elif isinstance(item, int) and not isinstance(item, bool) and index and 1 <= item <= 99:
                index += [index[-1]] * (item - 1)
            else:
                index = []
                break
        if not index:
            raise InputError(
                f"{self._name}.d({', '.join(map(repr, which))}) is not a derivative",
                field=self._name,
                remedy='Write u.d("x", 2, "t", 1)',
            )
        return self._derivative(tuple(sorted(index)))

    def laplacian(self, *coordinates: str) -> jax.Array:
        """The sum of second derivatives over the named coordinates."""
        if not coordinates:
            raise InputError(
                f"{self._name}.laplacian() needs its coordinates",
                field=self._name,
                remedy='Write u.laplacian("x", "y")',
            )
        numbers = [self._number(name) for name in coordinates]
        total = self._derivative((numbers[0],) * 2)
        for number in numbers[1:]:
            total = total + self._derivative((number,) * 2)
        return total

    def _number(self, coordinate: str) -> int:
        if coordinate not in self._coordinates:
            raise InputError(
                f"there is no coordinate {coordinate!r}",
                field=coordinate,
                remedy=f"The coordinates are {', '.join(self._coordinates)}",
            )
        return self._coordinates.index(coordinate)

    def __jax_array__(self) -> jax.Array:
        return self.value

    def __repr__(self) -> str:
        return f"<field {self._name}>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values: one per point of the block."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Always one: a block of points."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """How many points the block has."""
        return self.value.size

    @property
    def dtype(self) -> Any:
        """The precision of the values."""
        return self.value.dtype


def _plain(x: Any) -> Any:
    return x.value if isinstance(x, FieldView) else x


def _binary(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[FieldView, Any], Any]:
    if swapped:
        return lambda self, other: function(_plain(other), self.value)
    return lambda self, other: function(self.value, _plain(other))


def _unary(function: Callable[[Any], Any]) -> Callable[[FieldView], Any]:
    return lambda self: function(self.value)


for _name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
    setattr(FieldView, f"__{_name}__", _binary(getattr(operator, _name), swapped=False))
    setattr(FieldView, f"__r{_name}__", _binary(getattr(operator, _name), swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(FieldView, f"__{_name}__", _binary(getattr(operator, _name), swapped=False))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(FieldView, f"__{_name}__", _unary(getattr(operator, _name)))
FieldView.__bool__ = lambda self: bool(self.value)  # type: ignore[attr-defined]  # JAX says that this cannot be
FieldView.__float__ = lambda self: float(self.value)  # type: ignore[attr-defined]


def _restore(name: tuple[str, tuple[str, ...]], values: Sequence[jax.Array]) -> FieldView:
    """A field that crossed a `jax.numpy` function keeps its values only: no derivative survives the crossing."""
    return FieldView(name[0], (), lambda index: values[0])


jax.tree_util.register_pytree_node(FieldView, lambda u: ((u.value,), (u._name, u._coordinates)), _restore)
