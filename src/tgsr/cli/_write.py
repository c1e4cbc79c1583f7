"""Text and JSON for people and programs. Whatever came from a file is printed without control characters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tgsr._errors import plain

_LONGEST = 10_000


def say(text: str, *, err: bool = False) -> None:
    """`text` on standard output (or error), each line printable and with its indentation."""
    lines = text.splitlines() or [""]
    cleaned = [" " * (len(line) - len(line.lstrip(" "))) + plain(line, _LONGEST) for line in lines]
    click.echo("\n".join(cleaned), err=err)


def say_json(value: Mapping[str, Any]) -> None:
    """One JSON object; NaN and infinite numbers, which JSON does not know, are null."""
    click.echo(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {str(key): _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows with their columns aligned; the first row is the heading."""
    rows = [[plain(cell, 80) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
