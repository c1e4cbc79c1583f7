"""Kinds of option values that several commands take."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click


class Listed(click.ParamType):
    """Values separated by commas: names, numbers or whole numbers."""

    def __init__(self, name: str, convert: Callable[[str], Any]) -> None:
        self.name, self._convert = name, convert

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The values, each checked."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(self._convert(part.strip()) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of {self.name}, as in {_EXAMPLES[self.name]}", param, ctx)


def finite(text: str) -> float:
    """A finite number."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _name(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


_EXAMPLES = {"names": "x,t", "numbers": "0.5,1.0", "whole numbers": "24,24,24"}
NAMES = Listed("names", _name)
NUMBERS = Listed("numbers", finite)
WHOLE = Listed("whole numbers", int)


class Assignments(click.ParamType):
    """`key=value` pairs separated by commas, each key once; the values stay text."""

    name = "assignments"

    def __init__(self, example: str) -> None:
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        """The pairs as a dict."""
        if isinstance(value, dict):
            return value
        found: dict[str, str] = {}
        for part in value.split(","):
            key, equals, text = (piece.strip() for piece in part.partition("="))
            if not (key and equals and text):
                self.fail(f"{part!r} is not key=value, as in {self._example}", param, ctx)
            if key in found:
                self.fail(f"{key!r} is given twice", param, ctx)
            found[key] = text
        return found


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
