"""Conditions on the faces of the domain: Dirichlet, Neumann, Robin, periodic, initial, or any residual of one's own.

Every condition says what must vanish, as a residual; values may be numbers or functions of coordinates and unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tgsr._errors import InputError, plain

At = str | Sequence[str] | Mapping[str, Any]
Value = float | Callable[..., Any]


def _check_order(order: object, known: tuple[int, ...], kind: str) -> None:
    if type(order) is not int or order not in known:
        listed = ", ".join(map(str, known))
        raise InputError(
            f"the order of {kind} condition is {plain(order, 30)!r}", field="order", remedy=f"Choose one of {listed}"
        )


@dataclass(frozen=True, eq=False)
class Condition:
    """`residual(...)`, written like the equation, vanishes at `at`: a face "x=0", several, or points {"x": [...]}."""

    residual: Callable[..., Any]
    at: At
    name: str = ""


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """`field = value` at `at`."""

    field: str
    at: At
    value: Value = 0.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Neumann:
    """The derivative of `field` along the outward normal equals `value` (on the face x=low that is -u.x = value)."""

    field: str
    at: str | Sequence[str]
    value: Value = 0.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Robin:
    """`a u + b du/dn = value` with the outward normal n; a, b and value are numbers or functions."""

    field: str
    at: str | Sequence[str]
    a: Value = 1.0
    b: Value = 1.0
    value: Value = 0.0
    name: str = ""


@dataclass(frozen=True, eq=False)
class Initial:
    """`field` (order=0) or its time derivative (order=1) equals `value` at the start of `time`."""

    field: str
    value: Value = 0.0
    order: int = 0
    time: str = "t"
    name: str = ""

    def __post_init__(self) -> None:
        _check_order(self.order, (0, 1, 2, 3), "an initial")


@dataclass(frozen=True, eq=False)
class Periodic:
    """Fields (all, by default) and their derivatives below `order` agree at both ends of coordinate `along`."""

    along: str
    fields: tuple[str, ...] = ()
    order: int = 2
    name: str = ""

    def __post_init__(self) -> None:
        names: Any = (self.fields,) if isinstance(self.fields, str) else self.fields
        if not isinstance(names, (tuple, list)):
            raise InputError(
                f"the fields of a periodic condition are {plain(names, 40)!r}",
                field="fields",
                remedy='List their names, as in fields=["u"]',
            )
        object.__setattr__(self, "fields", tuple(names))
        _check_order(self.order, (1, 2, 3, 4), "a periodic")


AnyCondition = Condition | Dirichlet | Neumann | Robin | Initial | Periodic
CONDITIONS = (Condition, Dirichlet, Neumann, Robin, Initial, Periodic)


@dataclass(frozen=True)
class Points:
    """How many points the loss is taken at, and how they are drawn; None leaves the number to the problem's size.

    `interior` for the residuals together, `boundary` and `initial` split evenly over the faces of their kind.
    """

    interior: int | None = None
    boundary: int | None = None
    initial: int | None = None
    sampling: str = "sobol"

    def __post_init__(self) -> None:
        from tgsr.problem._domain import SAMPLINGS
        from tgsr.problem._names import nearest

        for name in ("interior", "boundary", "initial"):
            count = getattr(self, name)
            if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 10**8):
                raise InputError(
                    f"the number of {name} points is {plain(count, 40)!r}",
                    field=name,
                    remedy="Give a whole number from 1",
                )
        if self.sampling not in SAMPLINGS:
            raise InputError(
                f"unknown sampling {plain(self.sampling, 40)!r}",
                field="sampling",
                remedy=nearest(str(self.sampling), SAMPLINGS),
            )
