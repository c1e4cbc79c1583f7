"""Measurements: where they were taken, what was measured there, and how the readings scatter."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tgsr._errors import InputError
from tgsr.problem._noise import Noise, as_noise
from tgsr.problem._read_table import Missing, Vector, list_names, list_rows, nearest, shown, shown_path
from tgsr.problem._read_vectors import vectors

_ROUNDING = 1e-9  # of a coordinate's range: points this far outside come from rounding in a file, not from a mistake


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Data:
    """A set of measurements, from arrays or from a file.

    `points[coordinate]` and `values[field]` hold one number per row; NaN in `values` means that this field
    was not measured there. `rows` are the row numbers a person would count: the lines of a text file from 1
    (its header is row 1), else positions from 0 (`counted_from` says which).
    """

    points: dict[str, Vector]
    values: dict[str, Vector]
    noise: dict[str, Noise]
    name: str
    origin: str | None
    rows: NDArray[np.int64]
    counted_from: int
    notes: tuple[str, ...]

    def __init__(
        self,
        points: Mapping[str, ArrayLike],
        values: Mapping[str, ArrayLike],
        noise: Noise | float | Mapping[str, Noise | float | None] | None = None,
        name: str = "data",
        *,
        missing: Missing = "error",
        origin: str | None = None,
        lines: ArrayLike | None = None,
    ) -> None:
        file = None if origin is None else shown_path(origin)
        columns = {part: vectors(given, part, file) for part, given in (("points", points), ("values", values))}
        at, of = columns["points"], columns["values"]
        for both in set(at) & set(of):
            raise InputError(
                f"{shown(both)} is given both as a coordinate and as a measured field",
                file=file,
                field=both,
                remedy="Keep it in points or in values",
            )
        lengths = {key: column.size for part in columns.values() for key, column in part.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{key} has {count}" for key, count in list(lengths.items())[:6])
            raise InputError(
                f"columns differ in length: {listed}",
                file=file,
                remedy="Give one number per measurement in each of them",
            )
        count = lengths[next(iter(lengths))]
        counted_from = 0 if lines is None else 1
        rows = np.arange(count, dtype=np.int64) if lines is None else np.array(lines, dtype=np.int64)
        if count == 0:
            raise InputError("there are no measurements", file=file, remedy="Give at least one row")
        for key, column in (at | of).items():
            infinite = np.flatnonzero(np.isinf(column))
            if infinite.size:
                raise InputError(
                    f"infinite values{_where(rows[infinite], counted_from)}",
                    file=file,
                    row=int(rows[infinite[0]]),
                    field=key,
                    remedy="Correct them; leave a missing measurement empty (NaN)",
                )
        keep, notes = _complete(at, of, rows, counted_from, missing, file)
        at, of = ({key: column[keep] for key, column in part.items()} for part in (at, of))
        for key, column in of.items():
            if np.isnan(column).all():
                raise InputError(
                    "was measured nowhere: every value is missing",
                    file=file,
                    field=key,
                    remedy="Leave this field out",
                )
        for column in (*at.values(), *of.values()):
            column.flags.writeable = False
        self._store(
            points=at,
            values=of,
            noise=_noise_of(noise, list(of), file),
            name=check_label(name),
            origin=origin,
            rows=rows[keep],
            counted_from=counted_from,
            notes=notes,
        )

    def _store(self, **attributes: Any) -> None:
        for key, value in attributes.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return self.rows.size

    def __repr__(self) -> str:
        source = "" if self.origin is None else f", from {shown_path(self.origin)}"
        what = f"{', '.join(self.values)} over {', '.join(self.points)}"
        return f"Data({shown(self.name)}, {len(self)} rows of {what}{source})"

    def fingerprint(self) -> str:
        """SHA-256 of what a fit sees: names, numbers in their order, noise; not of the file."""
        digest = hashlib.sha256()
        for part in (self.points, self.values):
            for key in sorted(part):
                numbers = np.where(np.isnan(part[key]), np.nan, part[key]).astype("<f8")
                digest.update(f"{key} {numbers.size} {self.noise.get(key)!r}\n".encode())
                digest.update(numbers.tobytes())
            digest.update(b"\0")
        return digest.hexdigest()

    def check_against(
        self,
        coordinates: Mapping[str, tuple[float, float]],
        fields: Sequence[str],
        inside: Callable[[dict[str, Vector]], Any] | None = None,
    ) -> Data:
        """This data if it measures fields of the problem inside its domain; else an error naming the rows.

        `inside` tells for each of `points` whether it lies in the domain, beyond the coordinates' ranges.
        """
        file = None if self.origin is None else shown_path(self.origin)
        for given, known, kind in ((self.points, coordinates, "coordinate"), (self.values, fields, "field")):
            for name in given:
                if name not in known:
                    raise InputError(
                        f"{shown(self.name)} has {shown(name)}, which is not a {kind} of the problem",
                        file=file,
                        field=name,
                        remedy=nearest(name, known, f"problem's {kind}s"),
                    )
        for name in coordinates:
            if name not in self.points:
                raise InputError(
                    f"{shown(self.name)} does not say at which {shown(name)} it was measured",
                    file=file,
                    field=name,
                    remedy=f"Add the coordinate {shown(name)}; it has {list_names(self.points)}",
                )
        for name, (low, high) in coordinates.items():
            column, slack = self.points[name], _ROUNDING * (high - low)
            outside = np.flatnonzero((column < low - slack) | (column > high + slack))
            if outside.size:
                values = column[outside]
                raise self._outside(
                    outside,
                    f"{name} from {values.min():.6g} to {values.max():.6g}, the domain [{low:g}, {high:g}]",
                    name,
                    file,
                )
        if inside is not None:
            answer = np.asarray(inside(self.points), dtype=bool)
            outside = np.flatnonzero(~np.broadcast_to(answer, self.rows.shape))
            if outside.size:
                at = ", ".join(f"{name}={column[outside[0]]:.6g}" for name, column in self.points.items())
                raise self._outside(outside, f"the first at {at}", None, file)
        return self

    def _outside(self, which: NDArray[np.int64], detail: str, name: str | None, file: str | None) -> InputError:
        rows = self.rows[which]
        where = " in every row" if which.size == len(self) > 1 else _where(rows, self.counted_from)
        return InputError(
            f"{shown(self.name)} lies outside the domain{where}: {detail}",
            file=file,
            row=int(rows[0]),
            field=name,
            remedy="Check the unit and the column, widen the domain, or remove these rows",
        )


def _where(rows: NDArray[np.int64], start: int) -> str:
    """Which rows an error speaks of, beyond the first one that its own heading names."""
    counted = " (counted from 0)" if start == 0 else ""
    return f" in {list_rows(rows)}{counted}" if rows.size > 1 or counted else ""


def check_label(name: object) -> str:
    """A name for a data set: any short printable text."""
    if isinstance(name, str) and name.strip() and name.isprintable() and len(name) <= 100:
        return name
    raise InputError(
        f"a data set cannot be named {shown(repr(name))}", remedy="Give a short text, such as name='probe 1'"
    )


def _complete(
    at: dict[str, Vector],
    of: dict[str, Vector],
    rows: NDArray[np.int64],
    start: int,
    missing: object,
    file: str | None,
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which rows have every coordinate and at least one measurement, and a note on those that do not."""
    if missing not in ("error", "drop"):
        raise InputError(f"missing={shown(missing)} is not known", remedy="Use missing='error' or missing='drop'")
    without = {f"no value for {key}": np.isnan(column) for key, column in at.items()}
    without[f"no measurement of {' or '.join(of)}"] = np.logical_and.reduce(
        [np.isnan(column) for column in of.values()]
    )
    keep = ~np.logical_or.reduce(list(without.values()))
    if keep.all():
        return keep, ()
    if missing == "drop":
        if not keep.any():
            raise InputError("no row has all coordinates and a measurement", file=file, remedy="Check the columns")
        counted = " (counted from 0)" if start == 0 else ""
        return keep, tuple(
            f"dropped for having {why}: {list_rows(rows[bad], 20)}{counted}"
            for why, bad in without.items()
            if bad.any()
        )
    why, bad = next((why, bad) for why, bad in without.items() if bad.any())
    raise InputError(
        f"{why}{_where(rows[bad], start)}",
        file=file,
        row=int(rows[bad][0]),
        remedy="Fill them in, or leave such rows out with missing='drop'",
    )


def _noise_of(noise: object, fields: list[str], file: str | None) -> dict[str, Noise]:
    if not isinstance(noise, Mapping):
        return dict.fromkeys(fields, as_noise(noise))
    for name in noise:
        if name not in fields:
            raise InputError(
                f"noise is given for {shown(name)}, which was not measured",
                file=file,
                field=str(name),
                remedy=nearest(str(name), fields, "measured fields"),
            )
    for name in fields:
        if name not in noise:
            raise InputError(
                f"noise says nothing about the field {shown(name)}",
                file=file,
                field=name,
                remedy="Give its standard deviation, or None to estimate it from the residuals",
            )
    return {name: as_noise(noise[name]) for name in fields}
