"""Transfer methods and their options as text: for `tgsr methods` to list, for `tgsr transfer` to read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError
from tgsr.problem._names import nearest

if TYPE_CHECKING:
    from tgsr.methods import Method


def options_of(method: Any) -> dict[str, Any]:
    """Every option of a method with its value; those of a nested record count as the method's own."""
    return {field.name: value for _, field, value in _walk(method)}


def method_with(name: str, choices: Sequence[Mapping[str, str]]) -> Method:
    """The method `name` with `key=value` options in place of its defaults."""
    from tgsr.methods import as_method

    method: Any = as_method(name)
    wanted: dict[str, str] = {}
    for choice in choices:
        for key, text in choice.items():
            if key in wanted:
                raise InputError(f"the option {key!r} is given twice", field=key, remedy="Give it once")
            wanted[key] = text
    known = options_of(method)
    for key in wanted:
        if key not in known:
            raise InputError(f"method {name!r} has no option {key!r}", field=key, remedy=nearest(key, known))
    return _replaced(method, {key: _value(text, known[key], key) for key, text in wanted.items()})


def _walk(record: Any) -> Iterator[tuple[Any, Field[Any], Any]]:
    for field in fields(record) if is_dataclass(record) else ():
        value = getattr(record, field.name)
        if is_dataclass(value):
            yield from _walk(value)
        else:
            yield record, field, value


def _replaced(record: Any, values: Mapping[str, Any]) -> Any:
    own: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            own[field.name] = _replaced(value, values)
        elif field.name in values:
            own[field.name] = values[field.name]
    return replace(record, **own) if own else record


def _value(text: str, default: Any, key: str) -> Any:
    """`text` as the type of the default; the record itself checks the range."""
    if isinstance(default, str):
        return text
    try:
        value = json.loads(text.lower() if text in ("True", "False", "None") else text)
    except ValueError:
        raise InputError(
            f"{text!r} is not a value for {key}", field=key, remedy=f"Give one like the default, {default!r}"
        ) from None
    if isinstance(default, bool) != isinstance(value, bool) or isinstance(value, str | list | dict):
        raise InputError(
            f"{text!r} is not a value for {key}", field=key, remedy=f"Give one like the default, {default!r}"
        )
    return value
