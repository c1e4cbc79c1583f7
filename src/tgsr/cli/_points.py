"""Points at which fields are wanted: written out, from a CSV file or on a grid; checked against the box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tgsr._errors import InputError
from tgsr.cli._options import finite

Columns = dict[str, NDArray[np.float64]]
MOST = 10_000_000
_ROUNDING = 1e-9  # of a coordinate's range: a point this far outside is meant to lie on the face


def points_at(given: Sequence[Mapping[str, str]], names: Sequence[str]) -> tuple[Columns, list[int]]:
    """Points written out as x=0.5,t=0.1, with their numbers from 1."""
    for point in given:
        _exactly(point, names, "--at")
    columns = {name: np.array([_number(point[name], name, "--at") for point in given]) for name in names}
    return columns, list(range(1, len(given) + 1))


def points_in(file: str, names: Sequence[str]) -> tuple[Columns, list[int]]:
    """The columns of a text file whose headings are the coordinates, with the lines they stand on."""
    from tgsr.problem._read_file import TEXT, kind_of, locate
    from tgsr.problem._read_text import read_text

    path = locate(file, Path.cwd(), None)
    if path.suffix.lower() not in TEXT:
        raise InputError("is no table of points", file=file, remedy=f"Give a file ending in {', '.join(TEXT)}")
    kind_of(path, path.suffix.lower(), file)
    columns, lines = read_text(path, file, {name: name for name in names}, None)
    for name, column in columns.items():
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InputError(
                "holds no finite number", file=file, row=int(lines[bad[0]]), field=name, remedy="Correct it"
            )
    return columns, [int(line) for line in lines]


def points_on(grid: Mapping[str, str], names: Sequence[str]) -> tuple[Columns, list[int]]:
    """All points of a grid x=low:high:count,...; the last coordinate changes fastest."""
    _exactly(grid, names, "--grid")
    axes = [_axis(grid[name], name) for name in names]
    total = math.prod(len(axis) for axis in axes)
    if total > MOST:
        raise InputError(f"the grid has {total:,} points; at most {MOST:,} are computed", field="--grid")
    mesh = np.meshgrid(*axes, indexing="ij")
    return {name: m.reshape(-1) for name, m in zip(names, mesh, strict=True)}, list(range(1, total + 1))


def check_inside(columns: Columns, rows: Sequence[int], box: Mapping[str, Sequence[float]], file: str | None) -> None:
    """Refuse a point outside the box: there a network has seen neither data nor equations."""
    for name, column in columns.items():
        low, high = box[name]
        slack = _ROUNDING * (high - low)
        outside = np.flatnonzero((column < low - slack) | (column > high + slack))
        if outside.size:
            raise InputError(
                f"{name} = {column[outside[0]]:g} is outside the problem's range {low:g} to {high:g}",
                file=file,
                row=rows[outside[0]],
                field=name,
                remedy="Allow it with --extrapolate, and do not trust what comes out",
            )


def _exactly(given: Mapping[str, str], names: Sequence[str], option: str) -> None:
    for name in given:
        if name not in names:
            raise InputError(f"{option} names {name!r}, which is no coordinate", field=name, remedy=_known(names))
    for name in names:
        if name not in given:
            raise InputError(f"{option} lacks the coordinate {name!r}", field=name, remedy=_known(names))


def _known(names: Sequence[str]) -> str:
    return f"The coordinates are {', '.join(names)}"


def _number(text: str, name: str, option: str) -> float:
    try:
        return finite(text)
    except ValueError:
        raise InputError(f"{text!r} in {option} is not a finite number", field=name, remedy="Write x=0.5") from None


def _axis(text: str, name: str) -> NDArray[np.float64]:
    remedy = f"Write {name}=low:high:count, as in {name}=0:1:50"
    parts = text.split(":")
    if len(parts) != 3:
        raise InputError(f"{text!r} is not low:high:count", field=name, remedy=remedy)
    low, high = (_number(part, name, "--grid") for part in parts[:2])
    if not parts[2].isascii() or not parts[2].isdigit() or not 1 <= int(parts[2][:12]) <= MOST:
        raise InputError(f"{parts[2]!r} is not a number of points from 1 to {MOST:,}", field=name, remedy=remedy)
    return np.linspace(low, high, int(parts[2]))
