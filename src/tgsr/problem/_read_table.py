"""What every reader shares: the caps, the words for its errors, and the table of numbers it hands on.

A file's columns are named by the user (`columns={"x": "pos_m", "T": "temp_C"}`), but only the problem knows
which of those names are coordinates. A reader therefore gives a `Table`; the problem turns it into `Data`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tgsr._errors import InputError
from tgsr.problem._noise import Noise

if TYPE_CHECKING:
    from tgsr.problem._data import Data

Vector: TypeAlias = NDArray[np.float64]
Column: TypeAlias = str | int
Missing: TypeAlias = Literal["error", "drop"]

MAX_BYTES = 2 * 1024**3
MAX_ROWS = 50_000_000
MAX_COLUMNS = 10_000


def shown(value: object, limit: int = 60) -> str:
    """`value` in quotes, short, and without anything that could drive a terminal or break the line."""
    text = "".join(c if c.isprintable() else "?" for c in str(value)[: limit + 1])
    return f"'{text}'" if len(text) <= limit else f"'{text[: limit - 3]}...'"


def list_names(names: Iterable[object], limit: int = 8) -> str:
    items = list(names)
    text = ", ".join(shown(name, 40) for name in items[:limit])
    return f"{text} and {len(items) - limit} more" if len(items) > limit else text or "none"


def list_rows(rows: Sequence[int] | NDArray[np.int64], limit: int = 5) -> str:
    """`rows 3, 7 and 9` or, when there are many, the first few and how many in all."""
    shown_rows = [str(int(row)) for row in rows[:limit]]
    if len(rows) > limit:
        return f"rows {', '.join(shown_rows)}, ... ({len(rows)} in all)"
    return f"row {shown_rows[0]}" if len(rows) == 1 else f"rows {', '.join(shown_rows[:-1])} and {shown_rows[-1]}"


def nearest(name: str, available: Iterable[str], kind: str = "names") -> str:
    """The advice for a name that does not exist: the nearest ones that do, else all of them."""
    names = list(available)[:MAX_COLUMNS]
    folded = {candidate.casefold(): candidate for candidate in reversed(names)}
    close = [folded[match] for match in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    return f"Perhaps {' or '.join(map(shown, close))} is meant" if close else f"The {kind} are {list_names(names)}"


def missing_column(file: str, wanted: Column, available: Iterable[str], kind: str = "column") -> InputError:
    """The error for a column that the file does not hold."""
    if isinstance(wanted, int):
        return InputError(
            f"a {kind} of this file is chosen by name, not by position",
            file=file,
            field=str(wanted),
            remedy=f"The {kind}s are {list_names(available)}",
        )
    return InputError(f"there is no {kind} {shown(wanted)}", file=file, remedy=nearest(wanted, available, f"{kind}s"))


def check_stored(file: str, label: str, dtype: Any, size: int) -> None:
    """Refuse an array in a file by its declared type and size, before anything is allocated."""
    if dtype.kind not in "iuf":
        raise InputError(
            f"holds {shown(dtype, 40)} values where real numbers are needed",
            file=file,
            field=label,
            remedy="Store it as integers or floating-point numbers",
        )
    if size == 0:
        raise InputError("holds no values", file=file, field=label, remedy="Write at least one measurement to it")
    if size > MAX_ROWS:
        raise too_many(file, size)


def too_many(file: str, size: int) -> InputError:
    return InputError(
        f"holds {size:,} rows, more than the {MAX_ROWS:,} that are read",
        file=file,
        remedy="Keep a representative subset of the rows",
    )


def extra(module: str, file: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"reading this kind of file needs the library {module.partition('.')[0]}",
            file=file,
            remedy="Install it with: pip install 'tgsr[data]'",
        ) from error


@contextmanager
def parsing(file: str, kind: str) -> Iterator[None]:
    """Turn whatever a library's parser raises on a damaged file into the one error people read."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"cannot be read as {kind} ({type(error).__name__}: {shown(error, 120)})",
            file=file,
            remedy="The file may be damaged or cut short; write or copy it again",
        ) from error


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of numbers from one file, not yet told apart as coordinates and fields.

    `lines` are the line numbers of a text file, counted from 1; None for formats without lines.
    """

    columns: dict[str, Vector]
    noise: Noise | dict[str, Noise]
    name: str
    origin: str
    lines: NDArray[np.int64] | None
    missing: Missing

    def __len__(self) -> int:
        return next(iter(self.columns.values())).size

    def __repr__(self) -> str:
        what = f"{len(self)} rows of {', '.join(self.columns)}"
        return f"Table({shown(self.name)}, {what}, from {shown_path(self.origin)})"

    def split(self, coordinates: Iterable[str]) -> Data:
        """The `Data` in which these columns are coordinates and all others are fields."""
        from tgsr.problem._data import Data

        names = list(coordinates)
        absent = [name for name in names if name not in self.columns]
        if absent:
            raise InputError(
                f"has no column for the coordinate {shown(absent[0])}",
                file=shown_path(self.origin),
                remedy=f"Name its column: read_data(..., columns={{'{absent[0]}': 'the column', ...}})",
            )
        return Data(
            {name: self.columns[name] for name in names},
            {name: column for name, column in self.columns.items() if name not in names},
            self.noise,
            self.name,
            missing=self.missing,
            origin=self.origin,
            lines=self.lines,
        )

    def check_against(
        self,
        coordinates: Mapping[str, tuple[float, float]],
        fields: Sequence[str],
        inside: Callable[[dict[str, Vector]], Any] | None = None,
    ) -> Data:
        """Split by the problem's coordinates, then `Data.check_against`."""
        for name in self.columns:
            if name not in coordinates and name not in fields:
                raise InputError(
                    f"{shown(name)} is neither a coordinate nor a field of the problem",
                    file=shown_path(self.origin),
                    field=name,
                    remedy=nearest(name, [*coordinates, *fields]),
                )
        return self.split(coordinates).check_against(coordinates, fields, inside)


def shown_path(path: object) -> str:
    return shown(path, 250)[1:-1]
