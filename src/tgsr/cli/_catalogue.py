"""Transfer methods and their options as text: for `tgsr methods` to list, for `tgsr transfer` to read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError
from tgsr.problem._names import nearest

if TYPE_CHECKING:
    from tgsr.methods import Method


def method_with(name: str, choices: Sequence[Mapping[str, str]]) -> Method:
    """The method `name` with `key=value` options in place of its defaults."""
    from tgsr.methods import as_method, options_of, with_options

    method = as_method(name)
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
    return with_options(method, {key: _value(text, known[key], key) for key, text in wanted.items()})


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
