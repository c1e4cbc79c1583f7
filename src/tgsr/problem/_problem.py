"""The problem as its user writes it: coordinates, fields, unknowns, equations, conditions, data. No truth in here."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tgsr._errors import InputError, plain
from tgsr.problem._conditions import CONDITIONS, AnyCondition, Condition, Neumann, Robin
from tgsr.problem._data import Data
from tgsr.problem._domain import Domain
from tgsr.problem._names import arguments_of, describe, nearest
from tgsr.problem._read_table import Table
from tgsr.problem._unknowns import Field, Unknown, UnknownField

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")


def _items(value: Any, what: str, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    if isinstance(value, kinds) and kinds != (object,):
        raise InputError(f"{what} is one {type(value).__name__}, not a list", field=what, remedy="Put it in [brackets]")
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise InputError(f"{what} is {plain(value, 40)!r}, not a list", field=what, remedy="Put it in [brackets]")
    for item in value:
        if not isinstance(item, kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise InputError(
                f"an entry of {what} is {plain(item, 40)!r}, not {names}",
                field=what,
                remedy=f"Give a list of {names}",
            )
    return tuple(value)


class Problem:
    """An inverse problem: recover the unknowns so that residuals and conditions vanish and the data are met.

    Residuals are functions whose arguments are bound by name to coordinates, fields, unknowns and unknown fields.
    `scale="auto"` makes the result independent of units; `scale="none"` takes every number as it stands.
    """

    def __init__(
        self,
        name: str = "problem",
        *,
        coordinates: Mapping[str, tuple[float, float]],
        fields: Sequence[str | Field],
        residuals: Sequence[Callable[..., Any]],
        unknowns: Sequence[Unknown] = (),
        unknown_fields: Sequence[UnknownField] = (),
        conditions: Sequence[AnyCondition] = (),
        data: Sequence[Data | Table] = (),
        region: Callable[..., Any] | None = None,
        scale: str = "auto",
    ) -> None:
        if not isinstance(name, str) or not NAME.match(name):
            raise InputError(
                f"{plain(name, 80)!r} cannot name a problem",
                field="name",
                remedy="Use up to 64 letters, digits, '.', '_' and '-'",
            )
        if not isinstance(scale, str) or scale not in ("auto", "none"):
            raise InputError(f"scale is {plain(scale, 40)!r}", field="scale", remedy="Choose 'auto' or 'none'")
        self.name, self.scale = name, scale
        self.domain = Domain(coordinates, region)
        listed = _items(fields, "fields", (str, Field))
        self.field_specs = tuple(f if isinstance(f, Field) else Field(f) for f in listed)
        self.fields = tuple(f.name for f in self.field_specs)
        mixed = _items(unknowns, "unknowns", (Unknown, UnknownField))
        self.unknowns = tuple(u for u in mixed if isinstance(u, Unknown))
        self.unknown_fields = tuple(u for u in mixed if isinstance(u, UnknownField)) + _items(
            unknown_fields, "unknown_fields", (UnknownField,)
        )
        self.conditions = _items(conditions, "conditions", CONDITIONS)
        self._given_data = _items(data, "data", (Data, Table))
        if callable(residuals):
            raise InputError("residuals is a function, not a list", field="residuals", remedy="Put it in [brackets]")
        self.residuals = _items(residuals, "residuals", (object,))
        self._check()

    def _check(self) -> None:
        if not self.fields:
            raise InputError("a problem needs at least one field", field="fields", remedy='Write fields=["u"]')
        if not self.residuals:
            raise InputError("a problem needs at least one residual", field="residuals", remedy="Write residuals=[f]")
        seen: dict[str, str] = {}
        kinds = {
            "coordinate": self.domain.names,
            "field": self.fields,
            "unknown": tuple(u.name for u in self.unknowns),
            "unknown field": tuple(u.name for u in self.unknown_fields),
        }
        for kind, names in kinds.items():
            for one in names:
                if one in seen:
                    raise InputError(
                        f"{one!r} names a {seen[one]} and a {kind}", field=one, remedy="Give each its own name"
                    )
                seen[one] = kind
        for unknown in self.unknown_fields:
            for coordinate in unknown.of:
                if coordinate not in self.domain.names:
                    raise InputError(
                        f"unknown field {unknown.name!r} depends on {coordinate!r}, which is no coordinate",
                        field=unknown.name,
                        remedy=nearest(coordinate, self.domain.names),
                    )
        used: set[str] = set()
        for function in self.residuals:
            used.update(arguments_of(function, self.argument_names, "a residual"))
        for condition in self.conditions:
            used.update(self._check_condition(condition))
        for unknown in (*self.unknowns, *self.unknown_fields):
            if unknown.name not in used:
                raise InputError(
                    f"unknown {unknown.name!r} is used by no residual and no condition",
                    field=unknown.name,
                    remedy="Name it as an argument of the function it belongs to",
                )
        self.data: tuple[Data, ...] = tuple(
            data.check_against(self.domain.ranges, list(self.all_fields), self._inside) for data in self._given_data
        )

    def _check_condition(self, condition: AnyCondition) -> set[str]:
        """Raise if a condition cannot be; returns the names that its functions use."""
        used: set[str] = set()
        if isinstance(condition, Condition):
            used.update(arguments_of(condition.residual, self.argument_names, "a condition"))
        what = type(condition).__name__
        one = (getattr(condition, "field"),) if hasattr(condition, "field") else ()  # noqa: B009
        for name in getattr(condition, "fields", one):
            if not isinstance(name, str) or name not in self.all_fields:
                raise InputError(
                    f"{what} speaks of field {plain(name, 40)!r}, which the problem does not have",
                    field=str(name),
                    remedy=nearest(str(name), self.all_fields),
                )
        for key in ("time", "along"):
            name = getattr(condition, key, self.domain.names[0])
            if not isinstance(name, str) or name not in self.domain.names:
                raise InputError(
                    f"{what} speaks of coordinate {plain(name, 40)!r}, which the problem does not have",
                    field=str(name),
                    remedy=nearest(str(name), self.domain.names),
                )
        for key in ("value", "a", "b"):
            value = getattr(condition, key, 0.0)
            if callable(value):
                known = [*self.domain.names, *(u.name for u in self.unknowns)]
                used.update(arguments_of(value, known, f"the {key} of {what}"))
            elif not _finite(value):
                raise InputError(
                    f"the {key} of {what} is {plain(value, 40)!r}",
                    field=key,
                    remedy="Give a finite number or a function of coordinates and unknowns",
                )
        if not isinstance(condition.name, str) or not condition.name.isprintable():
            raise InputError(
                f"a condition is named {plain(condition.name, 40)!r}", field="name", remedy="Name it by a short text"
            )
        at = getattr(condition, "at", f"{self.domain.names[0]}=low")
        if isinstance(at, Mapping) and not isinstance(condition, (Neumann, Robin)):
            self.domain.listed(at)
        else:
            for face in self.domain.faces(at):
                if isinstance(condition, (Neumann, Robin)) and not face.side:
                    raise InputError(
                        f"{what} needs a face of the box, and {face.name} is inside",
                        field="at",
                        remedy="Use Condition with u.x itself",
                    )
        return used

    def _inside(self, points: Mapping[str, Any]) -> Any:
        import numpy as np

        return self.domain.inside(np.stack([points[name] for name in self.domain.names], axis=1))

    @property
    def all_fields(self) -> tuple[str, ...]:
        """Fields and unknown fields: whatever has a network."""
        return self.fields + tuple(u.name for u in self.unknown_fields)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Everything a residual may ask for."""
        return self.domain.names + self.all_fields + tuple(u.name for u in self.unknowns)

    def unknown(self, name: str) -> Unknown:
        """The scalar unknown of that name."""
        for unknown in self.unknowns:
            if unknown.name == name:
                return unknown
        raise InputError(f"no unknown {name!r}", field=name, remedy=nearest(name, [u.name for u in self.unknowns]))

    def source(self) -> bytes:
        """The Python text that defines the equations: the whole file where there is one, else each function's own."""
        files = {
            inspect.unwrap(f).__code__.co_filename for f in self.residuals if hasattr(inspect.unwrap(f), "__code__")
        }
        if len(files) == 1 and Path(next(iter(files))).is_file():
            return Path(next(iter(files))).read_bytes()
        parts = []
        for function in self.residuals:
            try:
                parts.append(inspect.getsource(function))
            except (OSError, TypeError):
                code = getattr(function, "__code__", None)
                parts.append(
                    f"{describe(function)} {code.co_code.hex() if code else ''} {getattr(code, 'co_consts', '')}"
                )
        return "\n".join(parts).encode()

    def spec(self) -> dict[str, Any]:
        """What the problem is, as plain values: the part of a run's identity that is not source text."""
        return {
            "name": self.name,
            "scale": self.scale,
            "coordinates": {n: list(r) for n, r in self.domain.ranges.items()},
            "fields": [_plain_spec(f) for f in self.field_specs],
            "unknowns": [_plain_spec(u) for u in self.unknowns],
            "unknown_fields": [_plain_spec(u) for u in self.unknown_fields],
            "residuals": [describe(f) for f in self.residuals],
            "conditions": [_plain_spec(c) for c in self.conditions],
            "region": None if self.domain.region is None else describe(self.domain.region),
            "data": [{"name": d.name, "rows": len(d), "sha256": d.fingerprint()} for d in self.data],
        }

    def __repr__(self) -> str:
        asks = ", ".join(u.name for u in (*self.unknowns, *self.unknown_fields)) or "nothing"
        return (
            f"<problem {self.name}: {', '.join(self.fields)} over ({', '.join(self.domain.names)}), unknown {asks}, "
            f"{sum(len(d) for d in self.data)} readings>"
        )


def _finite(value: Any) -> bool:
    import math
    from numbers import Real

    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _plain_spec(thing: Any) -> dict[str, Any]:
    def plain_value(value: Any) -> Any:
        if callable(value):
            return f"function {describe(value)}"
        if isinstance(value, Mapping):  # explicit points of a condition
            digest = hashlib.sha256()
            for key in sorted(value):
                digest.update(f"{key}:{list(value[key])}".encode())
            return f"points {digest.hexdigest()[:12]}"
        return list(value) if isinstance(value, (tuple, list)) else value

    return {"type": type(thing).__name__, **{k: plain_value(v) for k, v in vars(thing).items()}}
