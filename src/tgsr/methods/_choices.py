"""Options of a method by name, wherever in its records they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any

from tgsr._errors import InputError
from tgsr.methods._method import Method
from tgsr.problem._names import nearest


def options_of(method: Any) -> dict[str, Any]:
    """Every option of a method with its value; those of a nested record count as the method's own."""
    return {field.name: value for field, value in _walk(method)}


def with_options(method: Method, values: Mapping[str, Any]) -> Method:
    """`method` with some options changed. Its own records check type and range."""
    known = options_of(method)
    for key in values:
        if key not in known:
            raise InputError(f"method {method.name!r} has no option {key!r}", field=key, remedy=nearest(key, known))
    return _replaced(method, values)


def _walk(record: Any) -> Iterator[tuple[Field[Any], Any]]:
    for field in fields(record) if is_dataclass(record) else ():
        value = getattr(record, field.name)
        if is_dataclass(value):
            yield from _walk(value)
        else:
            yield field, value


def _replaced(record: Any, values: Mapping[str, Any]) -> Any:
    own: dict[str, Any] = {}
    for field in fields(record) if is_dataclass(record) else ():
        value = getattr(record, field.name)
        if is_dataclass(value):
            own[field.name] = _replaced(value, values)
        elif field.name in values:
            own[field.name] = values[field.name]
    changed: Any = replace
    return changed(record, **own) if own else record
