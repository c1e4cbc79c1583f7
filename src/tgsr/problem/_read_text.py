"""CSV and its relatives. A wanted cell is a number or missing; anything else is an error that says where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from tgsr._errors import InputError
from tgsr.problem._read_cells import cells_of, checked_delimiter, detect, is_value, number_in
from tgsr.problem._read_table import (
    MAX_COLUMNS,
    MAX_ROWS,
    Column,
    Vector,
    list_names,
    missing_column,
    shown,
    too_many,
)

_MAX_LINE = 2**20
_CHUNK = 2**16
_ERRORS = (
    "#N/A",
    "#VALUE!",
    "#REF!",
    "#DIV/0!",
    "#NUM!",
    "#NAME?",
    "#NULL!",
)  # of a spreadsheet: no comments


@dataclass
class _Lines:
    """The lines of a text file that hold data, each with its number as an editor counts it."""

    file: str
    stream: TextIO
    comment: str = ""

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(iter(partial(self.stream.readline, _MAX_LINE), ""), 1):
            if len(line) == _MAX_LINE:
                raise InputError(
                    f"a line has more than {_MAX_LINE:,} characters",
                    file=self.file,
                    row=number,
                    remedy="Check that this is a table with one row per line",
                )
            text = line.strip(" \n")
            if text.startswith("#") and not text.upper().startswith(_ERRORS):
                self.comment = text.strip("#").strip()
            elif text:
                yield number, line


def read_text(
    path: Path, file: str, wanted: dict[str, Column], delimiter: str | None
) -> tuple[dict[str, Vector], NDArray[np.int64]]:
    """The wanted columns, and the line number of each row."""
    try:
        with open(path, encoding="utf-8-sig") as stream:
            sample = [line for _, line in islice(_Lines(file, stream), 50)]
        separator = detect(sample) if delimiter is None else checked_delimiter(delimiter, file)
        with open(path, encoding="utf-8-sig") as stream:
            return _read(_Lines(file, stream), separator, wanted)
    except UnicodeDecodeError:
        raise InputError(
            "is not UTF-8 text", file=file, row=_undecodable(path), remedy="Save it with the encoding UTF-8"
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", file=file, remedy="Check the disk and its permissions"
        ) from None


def _read(source: _Lines, separator: str, wanted: dict[str, Column]) -> tuple[dict[str, Vector], NDArray[np.int64]]:
    file, lines = source.file, iter(source)
    first = next(lines, None)
    if first is None:
        raise InputError("holds no rows", file=file, remedy="Check that it was written completely")
    header, is_header = _header(first, source, separator, wanted)
    if len(header) > MAX_COLUMNS:
        raise InputError(
            f"has {len(header):,} columns, more than the {MAX_COLUMNS:,} that are read",
            file=file,
            row=first[0],
            remedy="Keep the columns that are needed",
        )
    places = {name: _place(column, header, file) for name, column in wanted.items()}
    labels = [shown(header[p])[1:-1] if isinstance(wanted[n], str) else f"column {p}" for n, p in places.items()]
    parts, rows, total = [], [], 0
    lines = lines if is_header else chain([first], lines)
    while chunk := list(islice(lines, _CHUNK)):
        total += len(chunk)
        if total > MAX_ROWS:
            raise too_many(file, total)
        columns = list(places.values())
        part = _plain_numbers([line for _, line in chunk], separator, len(header), columns)
        parts.append(_any_cells(chunk, file, separator, len(header), columns, labels) if part is None else part)
        rows.append(np.array([number for number, _ in chunk], dtype=np.int64))
    if not parts:
        raise InputError("has a header but no rows", file=file, remedy="Add at least one measurement")
    table = np.concatenate(parts)
    return {name: table[:, i].copy() for i, name in enumerate(places)}, np.concatenate(rows)


def _plain_numbers(lines: list[str], separator: str, width: int, places: list[int]) -> NDArray[np.float64] | None:
    """The fast way, for lines of equal width that hold plain numbers wherever they are wanted; else None."""
    if any('"' in line for line in lines):
        return None
    if separator == " ":
        widths = {len(line.split()) for line in lines}
    else:
        widths = {line.count(separator) + 1 for line in lines}
    if widths != {width}:
        return None
    try:
        return np.loadtxt(
            lines, delimiter=None if separator == " " else separator, comments=None, usecols=places, ndmin=2
        )
    except ValueError:
        return None


def _any_cells(
    chunk: list[tuple[int, str]], file: str, separator: str, width: int, places: list[int], labels: list[str]
) -> NDArray[np.float64]:
    """The careful way: quoted, missing and malformed cells, each with its place."""
    table = np.empty((len(chunk), len(places)))
    for i, (number, line) in enumerate(chunk):
        cells = cells_of(line, separator, file, number)
        if len(cells) != width:
            remedy = "Check for a missing or an extra delimiter"
            if len(cells) == 2 * width:
                remedy = "If it uses decimal commas, write 1.5 instead of 1,5 or separate the columns with ';'"
            raise InputError(f"has {len(cells)} cells where {width} are expected", file=file, row=number, remedy=remedy)
        for j, place in enumerate(places):
            table[i, j] = number_in(cells[place], number, file, labels[j])
    return table


def _header(
    first: tuple[int, str], source: _Lines, separator: str, wanted: dict[str, Column]
) -> tuple[list[str], bool]:
    """The column names, and whether the first line holds them (or is already a row of numbers)."""
    cells = [cell.strip() for cell in cells_of(first[1], separator, source.file, first[0])]
    positions = [column for column in wanted.values() if isinstance(column, int)]
    if len(positions) == len(wanted):
        chosen = [cells[place] for place in positions if place < len(cells)]
        return cells, not any(is_value(cell) for cell in chosen)
    if not all(is_value(cell) for cell in cells):
        return cells, True
    # numerical libraries write the heading as a comment: "# x,t,T"
    named = source.comment.split(None if separator == " " else separator)
    if len(named) == len(cells):
        return [cell.strip() for cell in named], False
    raise InputError(
        "the first row holds numbers where column names are needed",
        file=source.file,
        row=first[0],
        remedy="Add a row of names, or choose columns by position from 0: columns={'x': 0, 'T': 1}",
    )


def _place(column: Column, header: list[str], file: str) -> int:
    if isinstance(column, int):
        if column < len(header):
            return column
        raise InputError(
            f"there is no column {column}: positions run from 0 to {len(header) - 1}",
            file=file,
            field=str(column),
            remedy=f"The first row reads {list_names(header)}",
        )
    if header.count(column) > 1:
        raise InputError(
            "several columns have this name",
            file=file,
            field=column,
            remedy="Rename one, or choose it by position from 0",
        )
    if column in header:
        return header.index(column)
    if len(header) == 1:
        raise InputError(
            f"there is no column {shown(column)}: the file looks like one column, {shown(header[0])}",
            file=file,
            remedy="State what separates its columns, for example delimiter='|'",
        )
    raise missing_column(file, column, header)


def _undecodable(path: Path) -> int | None:
    with open(path, "rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None
