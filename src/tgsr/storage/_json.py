"""JSON with one spelling for each value, so that it can be hashed, and with a seal that shows damage.

Keys are sorted, floats are written by `repr`, text is ASCII. What JSON has no word for is spelled out:
`{"$float": "nan"}`, also "inf" and "-inf"; keys that begin with "$" are kept for that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from tgsr._errors import StorageError
from tgsr.storage._atomic import digest_of, read_bytes, write_bytes

JSON_LIMIT = 64 * 2**20
_DEPTH = 64
_FLOAT = "$float"
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DAMAGED = "Restore the file from a copy, or start the run again"


def canonical_json(value: object, *, indent: int | None = 1) -> str:
    """The one text for `value`: None, bool, int, float, str, NumPy scalars, lists, tuples and dicts of them.

    `indent=None` puts it on one line, for a log.
    """
    try:
        return json.dumps(_plain(value, "", 0), sort_keys=True, indent=indent, allow_nan=False) + "\n"
    except ValueError as error:  # an integer of more than 4300 digits
        raise StorageError(f"cannot be written as JSON ({error})") from error


def parse_json(text: bytes, file: str | PathLike[str] | None = None) -> Any:
    """The value of a canonical text; duplicate keys, bare NaN, overflow and deep nesting are refused."""
    try:
        return json.loads(
            text.decode("utf-8"), object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise StorageError(f"is not valid JSON ({error})", file=file, remedy=_DAMAGED) from error


def write_json(path: str | PathLike[str], value: object) -> str:
    """Write `value` canonically and atomically; return the SHA-256 of the file."""
    try:
        text = canonical_json(value)
    except StorageError as error:
        raise StorageError(error.what, file=path, field=error.field, remedy=error.remedy) from error
    return write_bytes(path, text.encode("ascii"))


def read_json(path: str | PathLike[str], *, limit: int = JSON_LIMIT, digest: str | None = None) -> Any:
    """The value in the file at `path`."""
    return parse_json(read_bytes(path, limit=limit, digest=digest), path)


def write_sealed(path: str | PathLike[str], value: Mapping[str, object]) -> str:
    """Write an object with one more key, "sha256", over all the others; return the SHA-256 of the file."""
    if "sha256" in value:
        raise StorageError("the key is kept for the seal", file=path, field="sha256")
    return write_json(path, {**value, "sha256": _seal(value)})


def read_sealed(path: str | PathLike[str]) -> dict[str, Any]:
    """The object that `write_sealed` wrote; a flipped bit anywhere in the file is an error."""
    text = read_bytes(path, limit=JSON_LIMIT)
    body = parse_json(text, path)
    # The text is compared as well as the seal: then not even a space can change unnoticed.
    if not isinstance(body, dict) or canonical_json(body).encode("ascii") != text:
        raise StorageError("was changed after it was written", file=path, remedy=_DAMAGED)
    if body.pop("sha256", None) != _seal(body):
        raise StorageError("does not hold what was written (SHA-256 differs)", file=path, remedy=_DAMAGED)
    return body


def _seal(value: Mapping[str, object]) -> str:
    return digest_of(canonical_json(value, indent=None).encode("ascii"))


def _plain(value: object, where: str, depth: int) -> object:
    if depth > _DEPTH:
        raise StorageError(f"is nested more than {_DEPTH} deep", field=where)
    if isinstance(value, np.bool_ | np.integer | np.floating) and value.dtype.itemsize <= 8:
        value = value.item()
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float() if not isinstance(value, np.generic):
            return float(value) if math.isfinite(value) else {_FLOAT: float.__repr__(value)}
        case Mapping():
            return {
                _key(key, where): _plain(item, f"{where}.{key}".lstrip("."), depth + 1) for key, item in value.items()
            }
        case list() | tuple():
            return [_plain(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        case _:
            raise StorageError(f"a value of type {type(value).__name__} has no JSON form", field=where)


def _key(key: object, where: str) -> str:
    if not isinstance(key, str) or key.startswith("$"):
        raise StorageError(f"the key {key!r} must be text that does not begin with '$'", field=where)
    return str.__str__(key)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    if list(found) == [_FLOAT] and found[_FLOAT] in list(_NON_FINITE):  # a list: the value may be unhashable
        return _NON_FINITE[found[_FLOAT]]
    if any(key.startswith("$") for key in found):
        raise ValueError("a key begins with '$'")
    return found


def _constant(word: str) -> float:
    raise ValueError(f"the bare word {word}")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number
