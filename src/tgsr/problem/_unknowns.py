"""The numbers to be recovered: a first guess, what is known of sign or bounds, a unit; and the smooth transform
through which an optimiser sees them, so that a physical value never leaves its range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tgsr._errors import InputError, plain
from tgsr.problem._names import check_name


def _number(value: object, unknown: str, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(
            f"the {what} of {unknown!r} is {plain(value, 40)!r}, not a number", field=unknown, remedy="Give a number"
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"the {what} of {unknown!r} is {number}", field=unknown, remedy="Give a finite number")
    return number


def _flag(value: object, unknown: str, what: str) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{what} of {unknown!r} is {plain(value, 40)!r}", field=unknown, remedy="Give True or False")


def _unit(unit: object, name: str) -> None:
    if not isinstance(unit, str) or not unit.isprintable():
        raise InputError(
            f"the unit of {name!r} is {plain(unit, 40)!r}", field=name, remedy="Give it as text, as in unit='m2/s'"
        )


def _size(scale: object, name: str) -> None:
    if scale is not None and not _number(scale, name, "scale") > 0:
        raise InputError(
            f"the scale of {name!r} is not positive", field=name, remedy="Give its typical size as a positive number"
        )


@dataclass(frozen=True)
class Unknown:
    """A scalar to recover.

    `positive` keeps it above zero (softplus), `bounds=(low, high)` inside an interval (sigmoid), `log` searches it on a
    logarithmic scale (for a positive number known only to an order of magnitude). `scale` is its characteristic size
    (default: the first guess), used to make the search independent of units.
    """

    name: str
    guess: float
    positive: bool = False
    bounds: tuple[float, float] | None = None
    log: bool = False
    unit: str = ""
    scale: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "unknown")
        object.__setattr__(self, "guess", _number(self.guess, self.name, "guess"))
        _flag(self.positive, self.name, "positive")
        _flag(self.log, self.name, "log")
        _unit(self.unit, self.name)
        _size(self.scale, self.name)
        if self.bounds is not None:
            self._check_bounds()
        if (self.positive or self.log) and self.guess <= 0:
            raise InputError(
                f"the guess {self.guess:g} of unknown {self.name!r} is not positive",
                field=self.name,
                remedy="Give a positive first guess, or drop `positive` and `log`",
            )
        if self.log and self.bounds is not None and self.bounds[0] <= 0:
            raise InputError(
                f"unknown {self.name!r} is on a log scale but its lower bound is {self.bounds[0]:g}",
                field=self.name,
                remedy="Give a positive lower bound, or drop `log`",
            )

    def _check_bounds(self) -> None:
        bounds: Any = self.bounds
        if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
            raise InputError(
                f"the bounds of unknown {self.name!r} are {plain(bounds, 60)!r}",
                field=self.name,
                remedy="Give two numbers: bounds=(low, high)",
            )
        low, high = (_number(b, self.name, "bound") for b in bounds)
        object.__setattr__(self, "bounds", (low, high))
        if not (low < high and math.isfinite(high - low)):
            raise InputError(
                f"the bounds of unknown {self.name!r} are not in order: ({low:g}, {high:g})",
                field=self.name,
                remedy="Give the lower bound first",
            )
        if self.positive and low < 0:
            raise InputError(
                f"unknown {self.name!r} is positive but its lower bound is {low:g}",
                field=self.name,
                remedy="Give a lower bound of 0 or more, or drop `positive`",
            )
        if not low < self.guess < high:
            raise InputError(
                f"the guess {self.guess:g} of unknown {self.name!r} is not between its bounds ({low:g}, {high:g})",
                field=self.name,
                remedy="Give a first guess inside the bounds",
            )

    @property
    def size(self) -> float:
        """The characteristic size that makes the search independent of units."""
        return self.scale or abs(self.guess) or 1.0


def _share(raw: Any, xp: Any) -> Any:
    """The sigmoid, with full relative accuracy and finite derivatives however far out."""
    return xp.exp(-xp.logaddexp(-raw, 0.0))


@dataclass(frozen=True)
class Transform:
    """Between the number an optimiser moves (`raw`, 0 or thereabouts at the guess) and the physical value.

    `scaled=False` is the paper's form: softplus(raw) itself, or raw itself.
    """

    unknown: Unknown
    scaled: bool = True

    @property
    def size(self) -> float:
        """1 in the paper's form, else the unknown's characteristic size."""
        return self.unknown.size if self.scaled else 1.0

    def start(self) -> float:
        """The raw number whose physical value is the first guess."""
        return self.raw(self.unknown.guess)

    @property
    def range(self) -> tuple[float, float]:
        """Between which ends the physical value stays."""
        u = self.unknown
        return u.bounds or (0.0 if u.positive or u.log else -math.inf, math.inf)

    def raw(self, value: float) -> float:
        """The raw number of a physical value inside the unknown's range."""
        u, size = self.unknown, self.size
        low, high = self.range
        if not low < value < high:
            raise InputError(
                f"{value:g} is outside the range ({low:g}, {high:g}) of unknown {u.name!r}",
                field=u.name,
                remedy="Widen its range",
            )
        if u.bounds is not None:
            low, value, high = (float(v) for v in np.log((low, value, high))) if u.log else (low, value, high)
            return math.log((value - low) / (high - value))
        if u.log:
            return math.log(value / size)
        if u.positive:
            ratio = value / size
            return ratio + math.log(-math.expm1(-ratio))
        return value / size

    def inverse(self, value: Any, xp: Any = np) -> Any:
        """`raw` for an array of values that are known to lie inside the range."""
        u, size = self.unknown, self.size
        if u.bounds is not None:
            low, high = np.log(u.bounds) if u.log else u.bounds
            value = xp.log(value) if u.log else value
            return xp.log(value - low) - xp.log(high - value)
        if u.log:
            return xp.log(value / size)
        if u.positive:
            return value / size + xp.log(-xp.expm1(-value / size))
        return value / size

    def value(self, raw: Any, xp: Any = np) -> Any:
        """The physical value of a raw number (`xp` is numpy or jax.numpy)."""
        u, size = self.unknown, self.size
        if u.bounds is not None:
            low, high = np.log(u.bounds) if u.log else u.bounds
            inside = low * _share(-raw, xp) + high * _share(raw, xp)
            return xp.clip(xp.exp(inside) if u.log else inside, *u.bounds)  # rounding must not leave the range
        if u.log:
            return size * xp.exp(raw)
        if u.positive:
            return size * xp.logaddexp(raw, 0.0)
        return size * raw

    def slope(self, raw: float) -> float:
        """d value / d raw, for carrying errors to physical units."""
        u, size = self.unknown, self.size
        if u.bounds is not None:
            low, high = np.log(u.bounds) if u.log else u.bounds
            slope = (high - low) * _share(raw, np) * _share(-raw, np)
            return float(slope * (self.value(raw) if u.log else 1.0))
        if u.log:
            return float(self.value(raw))
        if u.positive:
            return float(size * _share(raw, np))
        return float(size)


@dataclass(frozen=True)
class Field:
    """A field with what is known of its size: only needed where neither data nor conditions show it."""

    name: str
    unit: str = ""
    scale: float | None = None
    offset: float | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "field")
        _unit(self.unit, self.name)
        _size(self.scale, self.name)
        if self.offset is not None:
            _number(self.offset, self.name, "offset")


@dataclass(frozen=True)
class UnknownField:
    """A function of some coordinates to recover, as a small network of its own; used like a field in residuals."""

    name: str
    of: tuple[str, ...]
    guess: float = 0.0
    positive: bool = False
    scale: float | None = None
    widths: tuple[int, ...] = (12, 12)
    unit: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, "unknown field")
        of: Any = (self.of,) if isinstance(self.of, str) else self.of
        if not isinstance(of, (tuple, list)) or not all(isinstance(c, str) for c in of) or len(set(of)) < len(of):
            raise InputError(
                f"unknown field {self.name!r} depends on {plain(of, 40)!r}",
                field=self.name,
                remedy='List its coordinates, each once, as in of=["x"]',
            )
        object.__setattr__(self, "of", tuple(of))
        object.__setattr__(self, "guess", _number(self.guess, self.name, "guess"))
        _flag(self.positive, self.name, "positive")
        _unit(self.unit, self.name)
        _size(self.scale, self.name)
        if not self.of:
            raise InputError(f"unknown field {self.name!r} depends on nothing", field=self.name, remedy="Use Unknown")
        if self.positive and self.guess <= 0:
            raise InputError(
                f"the guess of positive unknown field {self.name!r} is {self.guess:g}",
                field=self.name,
                remedy="Give a positive guess",
            )
        widths: Any = self.widths
        whole = isinstance(widths, (tuple, list)) and all(type(w) is int and 1 <= w <= 4096 for w in widths)
        if not whole or not widths:
            raise InputError(
                f"the widths of unknown field {self.name!r} are {plain(widths, 40)!r}",
                field=self.name,
                remedy="Give one whole number per hidden layer, as in (12, 12)",
            )
        object.__setattr__(self, "widths", tuple(widths))

    @property
    def size(self) -> float:
        """The characteristic size of its variation."""
        return self.scale or abs(self.guess) or 1.0
