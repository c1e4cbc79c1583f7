"""What a study's report is made of besides pictures: sections of tables, and answers to a reader's first questions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tgsr._errors import plain

Value = float | int | str | None  # what a cell exports
_SAYS_SEVERAL = re.compile(r", (mean ± sd|median( .*)?)$")
LONGEST = 600  # characters of a cell


@dataclass(frozen=True)
class Column:
    """A column. `name` is unique in its table; `paper` marks the columns that repeat what the paper prints.

    Where a cell says several numbers at once ("0.126 ± 0.115"), `parts` names them, and the table is exported with
    one column for each: "parameter error (%), mean", "parameter error (%), sd".
    """

    name: str
    unit: str = ""
    align: str = "right"  # or "left"
    paper: bool = False
    parts: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def exported(self, part: str) -> str:
        """What the column of one of its parts is called: what is measured, its unit, and which number of it."""
        measured = _SAYS_SEVERAL.sub("", self.name)
        return f"{measured} ({self.unit}), {part}" if self.unit else f"{measured}, {part}"


@dataclass(frozen=True)
class Cell:
    """`text` is what is printed, `value` what is exported: one value, or as many as the column has parts.

    `paper` marks a number of the paper's, `best` the best of its column (pages and papers set it in bold), `note` is a
    sentence about this cell.
    """

    text: str
    value: Value | tuple[Value, ...] = None
    paper: bool = False
    best: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells, the first of each is its heading. `words` say how to read the table, `notes` what to beware of."""

    key: str
    title: str
    words: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"table {self.key}: {len(row)} cells for {len(self.columns)} columns")
            for column, cell in zip(self.columns, row, strict=True):
                if len(column.parts) != (len(cell.value) if isinstance(cell.value, tuple) else 0):
                    raise ValueError(f"table {self.key}: column {column.name!r} exports {cell.value!r}")

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of a column."""
        at = next(i for i, column in enumerate(self.columns) if column.name == name)
        return tuple(row[at] for row in self.rows)

    def cell(self, row: str, column: str) -> Cell:
        """The cell of the first row with this heading."""
        at = next(i for i, cells in enumerate(self.rows) if cells[0].text == row)
        return self.column(column)[at]


@dataclass(frozen=True)
class Section:
    """A part of the report. Its `key` is the task or the ablation that it is about, as figures name it, or one of the
    words below. Tables have keys that are fit for files and addresses, unique in the report; this one may be any text.
    """

    key: str
    title: str
    words: str
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Finding:
    """A question that a reader has about a task, and what the numbers say to it.

    `answer` is one sentence for the first screen, `detail` the numbers behind it. `tone` is "good", "bad", "neutral",
    or "open" where the numbers do not decide.
    """

    task: str
    question: str
    answer: str
    detail: str
    tone: str


COST, FAILURES, PROVENANCE, PAPER, CITATIONS = "cost", "failures", "provenance", "paper", "citations"


def slug(text: str, limit: int = 40) -> str:
    """`text` as a part of a file name or of an address in a page."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:limit].strip("-") or "x"


def words(text: object, value: Value = None, *, note: str = "", paper: bool = False) -> Cell:
    """A cell of text of any origin."""
    shown = plain(text, LONGEST)
    return Cell(shown, shown if value is None else value, paper=paper, note=note)
