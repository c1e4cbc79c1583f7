"""Names that users choose: coordinates, fields, unknowns; and binding functions to them by argument name."""

from __future__ import annotations

import difflib
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tgsr._errors import InputError, plain

RESERVED = frozenset({"value", "d", "laplacian", "shape", "dtype", "ndim", "size"})


def check_name(name: object, what: str) -> str:
    """`name` if it can be a Python argument that means something in a residual."""
    if not isinstance(name, str):
        raise InputError(
            f"a {what} is named by text, not by {type(name).__name__} {plain(name, 40)!r}",
            field=what,
            remedy="Put the name in quotes",
        )
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(
            f"{plain(name, 60)!r} cannot name a {what}", field=name, remedy="Use letters, digits and _, as in Python"
        )
    if name.startswith("_") or name in RESERVED:
        raise InputError(f"the name {name!r} is taken", field=name, remedy=f"Choose another name for this {what}")
    return name


def nearest(name: str, known: Iterable[str]) -> str:
    """'known: x, t' with a guess in front where one is close."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return f"{guess}known: {', '.join(known) or 'none'}"


def describe(function: Callable[..., Any]) -> str:
    """What to call a user's function in a message or a history."""
    name = getattr(function, "__name__", type(function).__name__)
    return "function" if name == "<lambda>" else name


def arguments_of(function: Callable[..., Any], known: Iterable[str], what: str) -> tuple[str, ...]:
    """The argument names of `function`, each of which must be a coordinate, a field or an unknown."""
    if not callable(function):
        raise InputError(
            f"{what} must be a function, not {type(function).__name__} {plain(function, 40)!r}",
            field=what.split()[-1],
            remedy="Give a function of coordinates, fields and unknowns",
        )
    known = list(known)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(
            f"the arguments of {what} cannot be read", field=describe(function), remedy="Wrap it in a def"
        ) from None
    names = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InputError(
                f"{what} {describe(function)!r} takes *{parameter.name}",
                field=describe(function),
                remedy="Name the coordinates, fields and unknowns it uses",
            )
        if parameter.name in known:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            raise InputError(
                f"{what} {describe(function)!r} asks for {parameter.name!r}, which the problem does not have",
                field=parameter.name,
                remedy=f"Arguments are bound by name ({nearest(parameter.name, known)})",
            )
    return tuple(names)


def call_by_name(function: Callable[..., Any], names: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    """`function` with each named argument taken from `values`."""
    return function(**{name: values[name] for name in names})
