"""Options of methods: numbers with their legal range in the type, or one of a few words; checked in one place."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from tgsr._errors import InputError


@dataclass(frozen=True)
class Range:
    """The legal interval of a number; its text is what the user reads."""

    low: int | float
    high: int | float
    open_low: bool = False

    def __contains__(self, value: int | float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        return above and value <= min(self.high, sys.float_info.max)

    def __str__(self) -> str:
        left = "(" if self.open_low else "["
        return f"{left}{self.low:g}, {self.high:g}" + (")" if math.isinf(self.high) else "]")


Share = Annotated[float, Range(0, 1)]
OpenShare = Annotated[float, Range(0, 1, open_low=True)]
Positive = Annotated[float, Range(0, math.inf, open_low=True)]
NonNegative = Annotated[float, Range(0, math.inf)]
Count = Annotated[int, Range(1, math.inf)]


def check_options(record: Any) -> None:
    """Put every ranged or worded field of a frozen record into plain Python, or raise an InputError that names it."""
    hints = _hints(type(record))
    for field in fields(record):
        if get_origin(hints[field.name]) in (Literal, Annotated):
            value = _checked(field.name, getattr(record, field.name), hints[field.name], field.default)
            object.__setattr__(record, field.name, value)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _checked(name: str, value: Any, hint: Any, default: Any) -> str | int | float:
    """`value` in the plain Python type of its field, or an InputError; 3 and 3.0 give equal options."""
    remedy = f"The default is {default}"
    if get_origin(hint) is Literal:
        if not (isinstance(value, str) and value in get_args(hint)):
            raise InputError(f"{name} = {value!r} is not one of {', '.join(get_args(hint))}", field=name, remedy=remedy)
        return str(value)
    kind, legal = get_args(hint)
    number: int | float = math.nan
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
    elif kind is float and isinstance(value, float | np.floating):
        number = float(value)
    if number not in legal:
        whole = ", whole numbers" if kind is int else ""
        raise InputError(f"{name} = {value!r} is outside its legal range {legal}{whole}", field=name, remedy=remedy)
    return kind(number)
