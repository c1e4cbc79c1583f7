"""A line of text cut into cells, and a cell read as a number: strict, so that nothing is read by accident."""

from __future__ import annotations

import csv
import re
from collections import Counter

import numpy as np

from tgsr._errors import InputError
from tgsr.problem._read_table import shown

_MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "null", "none"})
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_WITH_UNIT = re.compile(r"[+-]?\d*\.?\d+([eE][+-]?\d+)?\s*[^\d\s].*")


def cells_of(line: str, separator: str, file: str, number: int) -> list[str]:
    """One line cut into cells, quotation marks removed. A cell does not run over the end of its line."""
    try:
        return next(csv.reader([_spaced(line, separator)], delimiter=separator, strict=True), [""])
    except csv.Error as error:
        raise InputError(
            f"a quoted cell is broken or runs over the end of the line ({error})",
            file=file,
            row=number,
            remedy="Check the quotation marks in this row",
        ) from None


def _spaced(line: str, separator: str) -> str:
    return " ".join(line.split()) if separator == " " else line


def detect(sample: list[str]) -> str:
    """The delimiter that cuts most of the first lines into the same number of cells."""

    def agreement(separator: str) -> int:
        widths: Counter[int] = Counter()
        for line in sample:
            try:
                widths[len(next(csv.reader([_spaced(line, separator)], delimiter=separator)))] += 1
            except csv.Error:
                continue
        del widths[1]
        return max(widths.values(), default=0)

    scores = {separator: agreement(separator) for separator in ("\t", ";", ",", " ")}
    best = max(scores, key=scores.__getitem__)  # the first of equals: a decimal comma must not win over ';'
    return best if scores[best] else ","


def checked_delimiter(delimiter: object, file: str) -> str:
    if (
        isinstance(delimiter, str)
        and len(delimiter) == 1
        and not delimiter.isalnum()
        and delimiter not in "\"'\r\n.+-#\\\0"
    ):
        return delimiter
    raise InputError(
        f"{shown(repr(delimiter))} cannot be a delimiter",
        file=file,
        remedy="Use one character, such as ',' or ';' or a tab, or ' ' for white space",
    )


def is_value(cell: str) -> bool:
    try:
        return cell.lower() in _MISSING or float(cell) is not None
    except ValueError:
        return False


def number_in(cell: str, row: int, file: str, label: str) -> float:
    text = cell.strip()
    if text.lower() in _MISSING:
        return np.nan
    try:
        if text.isascii() and "_" not in text:
            return float(text)
    except ValueError:
        pass
    remedy = "Write a plain number such as 1.5e-3, or leave the cell empty if nothing was measured"
    if _DECIMAL_COMMA.fullmatch(text):
        remedy = "Write decimals with a point: 1.5 instead of 1,5"
    elif _WITH_UNIT.fullmatch(text):
        remedy = "Write the number alone; a unit belongs in the column's name"
    raise InputError(f"{shown(text)} is not a number", file=file, row=row, field=label, remedy=remedy)
