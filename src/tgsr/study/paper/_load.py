"""The paper's numbers as typed records, from the two files beside this one."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

RESULTS = {
    "boundary-layer": "pe_results",
    "allen-cahn-burgers": "cross_results",
    "reaction-diffusion": "rd_results",
    "smooth-advection-diffusion": "smooth_pe_results",
}
WILCOXON = {
    "boundary-layer": "pe_wilcoxon",
    "allen-cahn-burgers": "secondary_task_wilcoxon",
    "reaction-diffusion": "secondary_task_wilcoxon",
}


class Printed(float):
    """A number that remembers how it was printed: 0.0860 is not 0.086 to a reader."""

    printed: str

    def __new__(cls, text: str) -> Printed:
        """From its letters."""
        number = super().__new__(cls, text)
        number.printed = "" if math.isnan(number) or "e" in text else text
        return number


@dataclass(frozen=True)
class Quoted:
    """A number as printed, with the standard deviation behind its plus-minus sign (NaN: none is printed)."""

    value: float
    sd: float = math.nan

    @property
    def known(self) -> bool:
        """Whether the paper prints one."""
        return not math.isnan(self.value)


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper. Rows are found by the names of task and arm, numbers by the name of their column."""

    key: str
    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    task: str = ""  # of every row; "" where a column says it, or where several are pooled
    study: str = ""  # the shipped study that measures the same
    reference: str = ""  # the arm that others are compared with
    n: int = 0  # repetitions; 0: not stated

    @property
    def where(self) -> str:
        """What a reader looks for in the paper."""
        return f"Table {self.number}"

    def row(self, arm: str, task: str = "") -> Mapping[str, Any]:
        """The row of an arm by column, empty where the table has none."""
        for cells in self.rows:
            row = dict(zip(self.columns, cells, strict=True))
            if row.get("arm") == arm and row.get("task", self.task) in (task or self.task, ""):
                return row
        return {}

    def quoted(self, arm: str, column: str, task: str = "") -> Quoted:
        """A number of the table; NaN where there is none."""
        row = self.row(arm, task)
        return Quoted(row.get(column, math.nan), row.get(f"{column}.sd", math.nan))

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm once, in the order of the table."""
        at = self.columns.index("arm") if "arm" in self.columns else None
        return () if at is None else tuple(dict.fromkeys(str(row[at]) for row in self.rows))


@dataclass(frozen=True)
class Fact:
    """A number of the paper's text."""

    key: str
    words: str
    task: str
    values: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True)
class Contradiction:
    """Two numbers of the paper that cannot both hold, or one that cannot be."""

    key: str
    words: str
    tables: tuple[str, ...]


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """All tables with results, by their label in the paper, in its order."""
    return {key: _table(key, dict(values)) for key, values in _read("tables.toml").items()}


@cache
def facts() -> Mapping[str, Fact]:
    """The numbers of the text that we also measure."""
    return {one["key"]: Fact(**one) for one in _read("remarks.toml")["fact"]}


def fact(key: str, value: str) -> float:
    """One number of the text."""
    return float(facts()[key].values[value])


@cache
def contradictions() -> tuple[Contradiction, ...]:
    """Where the paper's numbers do not agree."""
    return tuple(
        Contradiction(c["key"], c["words"], tuple(c["tables"])) for c in _read("remarks.toml")["contradiction"]
    )


def results_table(task: str) -> PaperTable | None:
    """The main results of a task; None where the paper has none."""
    return paper_tables()[RESULTS[task]] if task in RESULTS else None


def wilcoxon_table(task: str) -> PaperTable | None:
    """The paired tests of a task; None where the paper has none."""
    return paper_tables()[WILCOXON[task]] if task in WILCOXON else None


def tables_of_study(study: str) -> tuple[PaperTable, ...]:
    """The tables that a shipped study measures again."""
    return tuple(table for table in paper_tables().values() if study and table.study == study)


def _table(key: str, values: dict[str, Any]) -> PaperTable:
    columns, rows = tuple(values.pop("columns")), tuple(tuple(row) for row in values.pop("rows"))
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"paper table {key}: {len(row)} cells for {len(columns)} columns")
    return PaperTable(key, columns=columns, rows=rows, **values)


def _read(name: str) -> dict[str, Any]:
    text = resources.files("tgsr.study.paper").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text, parse_float=Printed)
