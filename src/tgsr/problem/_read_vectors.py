"""Numbers as users hand them over (lists, arrays, tables' columns) made into fresh float64 vectors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tgsr._errors import InputError
from tgsr.problem._names import check_name
from tgsr.problem._read_table import Vector, shown


def vectors(given: object, part: str, file: str | None) -> dict[str, Vector]:
    what = "coordinate" if part == "points" else "field"
    if not isinstance(given, Mapping):
        raise InputError(
            f"{part} must map each {what}'s name to its numbers, not {type(given).__name__}",
            file=file,
            remedy=f"Write {part}={{'{'x' if what == 'coordinate' else 'T'}': [0.0, 0.5, 1.0]}}",
        )
    if not given:
        raise InputError(f"{part} names no {what}", file=file, remedy=f"Give at least one {what}")
    return {check_name(key, what): _vector(key, value, file) for key, value in given.items()}


def _vector(key: str, value: Any, file: str | None) -> Vector:
    """A fresh float64 vector of the user's numbers."""
    try:
        array = np.ma.asarray(value) if np.ma.isMaskedArray(value) else np.asarray(value)
    except Exception as error:  # ragged lists and whatever a foreign array type raises
        raise InputError(
            f"cannot be read as numbers ({type(error).__name__})",
            file=file,
            field=key,
            remedy="Give one number per measurement in a list or an array",
        ) from error
    if array.ndim != 1 and array.dtype.kind in "iuf":
        raise InputError(
            f"has the shape {array.shape} where one number per measurement is needed",
            file=file,
            field=key,
            remedy="Use .ravel() on every column of a grid, with coordinates of the same shape",
        )
    if array.dtype.kind not in "iuf":
        items = array.tolist() if array.ndim == 1 else []
        bad = next((i for i, item in enumerate(items) if not _is_number(item)), None)
        raise InputError(
            f"holds {array.dtype.name} values where real numbers are needed"
            + ("" if bad is None else f", such as {shown(repr(items[bad]))} (counted from 0)"),
            file=file,
            row=bad,
            field=key,
            remedy="Convert them to floating-point numbers, with NaN for what was not measured",
        )
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float64)
    return np.array(numbers.filled(np.nan) if isinstance(numbers, np.ma.MaskedArray) else numbers)


def _is_number(item: object) -> bool:
    if isinstance(item, bool) or not isinstance(item, (int, float, np.integer, np.floating)):
        return False
    return not abs(item) > sys.float_info.max
