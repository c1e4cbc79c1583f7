"""Errors written for the person who reads them: what was wrong, where, and what to do about it."""

from __future__ import annotations

import os
from os import PathLike


def plain(text: object, limit: int = 300) -> str:
    """`text` on one line, printable characters only (a file must not be able to drive a terminal)."""
    line = "".join(c if c.isprintable() else " " for c in str(text)).strip()
    return line if len(line) <= limit else line[: limit - 3] + "..."


def shown_path(path: str | PathLike[str]) -> str:
    """`path` as short as it can be typed here."""
    below = os.path.relpath(path)
    return str(path) if below.startswith("..") else below


class TgsrError(Exception):
    """The only exception that leaves this package on purpose. Its text is one line."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | PathLike[str] | None = None,
        row: int | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.what, self.row, self.field, self.remedy = what, row, field, remedy
        self.file = None if file is None else str(file)
        where = [plain(file)] if file is not None else []
        where += [f"row {row}"] if row is not None else []
        where += [f"'{plain(field, 80)}'"] if field is not None else []
        text = plain(what, 1000).rstrip(".") + "."
        if where:
            text = f"{', '.join(where)}: {text}"
        if remedy:
            text = f"{text} {plain(remedy, 600).rstrip('.')}."
        super().__init__(text)


class InputError(TgsrError):
    """Something the user gave (a file, a problem, an option) cannot be used as it is."""


class StorageError(TgsrError):
    """A file could not be written or does not hold what was written."""

    exit_code = 1


class InstallationError(TgsrError):
    """The installed libraries cannot be trusted to compute correctly."""

    exit_code = 3
