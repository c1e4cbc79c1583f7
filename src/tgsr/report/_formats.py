"""The tables of a study as files for other programs: Markdown, LaTeX with BibTeX, CSV, Parquet."""

from __future__ import annotations

import csv
import importlib
import io
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from tgsr._errors import InputError, plain
from tgsr.report._citations import bibtex, citations
from tgsr.report._findings import findings
from tgsr.report._latex import latex
from tgsr.report._markdown import markdown
from tgsr.report._study_tables import study_tables
from tgsr.report._table import Section, Table
from tgsr.report._task_view import views
from tgsr.storage import write_bytes
from tgsr.study._record import Record
from tgsr.study._results import StudyResults

Columns = dict[str, list[Any]]
FORMULA = ("=", "+", "-", "@")  # a spreadsheet would compute such a cell: it gets an apostrophe in front


def write_tables(results: StudyResults, folder: str | Path, formats: str | Sequence[str] = ("md",)) -> tuple[Path, ...]:
    """Write every table of a study into `folder` and return the paths.

    "md" is one document with the answers in front; "tex" one file of tables and a .bib file of what was used; "csv" and
    "parquet" one file per table, and `records` with one row per run.
    """
    wanted = [formats] if isinstance(formats, str) else list(formats)
    for name in wanted:
        if name not in WRITERS:
            raise InputError(
                f"there is no format {plain(name, 40)!r}",
                field="format",
                remedy=f"The formats are {', '.join(WRITERS)}",
            )
    if "parquet" in wanted:
        _pyarrow()  # before anything is written
    target, sections = Path(folder), study_tables(results)
    paths: list[Path] = []
    for name in dict.fromkeys(wanted):
        for path, data in WRITERS[name](results, sections):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(target / path, data)
            paths.append(target / path)
    return tuple(paths)


def first_lines(results: StudyResults) -> list[str]:
    """What stands above everything else: profile, budget and how much there is."""
    effort = f"Profile '{results.profile}'" if results.profile else "The problem's own effort"
    said = (
        f"{effort}, budget '{results.budget or 'not stated'}': {results.preset or 'network and optimiser not stated'}."
    )
    n = sum(r.role == "target" for r in results.records)
    missing = f" Without a result yet: {len(results.pending)}." if results.pending else ""
    return [said, results.about, f"{n} target runs, {len(results.records) - n} source runs.{missing}"]


def table_columns(table: Table) -> Columns:
    """A table's values, column by column; a cell that says several numbers has a column for each."""
    out: Columns = {}
    for i, column in enumerate(table.columns):
        cells = [row[i] for row in table.rows]
        if not column.parts:
            _add(out, column.heading, [cell.value for cell in cells])
        for k, part in enumerate(column.parts):
            values = [cell.value[k] if isinstance(cell.value, tuple) else None for cell in cells]
            _add(out, column.exported(part), values)
    return out


def record_columns(records: Iterable[Record]) -> Columns:
    """One row per run, everything that is known of it: what the tables were made from."""
    rows = [_flat(record) for record in records]
    names = dict.fromkeys(name for row in rows for name in row)
    out: Columns = {}
    for name in names:
        _add(out, name, [row.get(name) for row in rows])
    return out


def csv_bytes(columns: Columns) -> bytes:
    """Comma-separated UTF-8 with a heading. Numbers are exact; infinity is `inf`; what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([csv_text(name) for name in columns])
    writer.writerows([csv_text(value) for value in row] for row in zip(*columns.values(), strict=True))
    return out.getvalue().encode()


def csv_text(value: Any) -> str:
    """A value as a CSV cell: numbers as numbers, text never as a formula."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(int(value)) if isinstance(value, int) else repr(float(value))
    text = plain(value, 10_000)
    return f"'{text}" if text.startswith(FORMULA) else text


def parquet_bytes(columns: Columns) -> bytes:
    """A Parquet table: numbers where a whole column has them, text elsewhere, null where nothing is known."""
    arrow, parquet = _pyarrow()
    arrays = {name: _array(arrow, values) for name, values in columns.items()}
    out = io.BytesIO()
    parquet.write_table(arrow.table(arrays), out)
    return out.getvalue()


Written = Iterable[tuple[str, bytes]]


def _md(results: StudyResults, sections: Sequence[Section]) -> Written:
    text = markdown(results.title or results.name, first_lines(results), findings(results), sections)
    yield "tables.md", text.encode()


def _tex(results: StudyResults, sections: Sequence[Section]) -> Written:
    yield "tables.tex", latex(sections, results.title or results.name).encode()
    yield "references.bib", bibtex(citations(results, views(results))).encode()


def _csv(results: StudyResults, sections: Sequence[Section]) -> Written:
    yield from ((f"csv/{name}.csv", csv_bytes(columns)) for name, columns in _everything(results, sections))


def _parquet(results: StudyResults, sections: Sequence[Section]) -> Written:
    yield from ((f"parquet/{name}.parquet", parquet_bytes(columns)) for name, columns in _everything(results, sections))


WRITERS: dict[str, Callable[[StudyResults, Sequence[Section]], Written]] = {
    "md": _md, "tex": _tex, "csv": _csv, "parquet": _parquet,
}  # fmt: skip
FORMATS = tuple(WRITERS)


def _everything(results: StudyResults, sections: Sequence[Section]) -> Iterable[tuple[str, Columns]]:
    yield "records", record_columns(results.records)
    for section in sections:
        yield from ((table.key, table_columns(table)) for table in section.tables)


def _flat(r: Record) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": r.task, "role": r.role, "arm": r.arm, "method": r.method, "seed": r.seed, "run": r.run,
        "outcome": r.outcome, "ok": r.ok, "sentence": r.sentence, "profile": r.profile, "budget": r.budget,
        "observations": r.observations, "noise": float(r.noise), "closures": r.closures, "allowed": r.allowed,
        "seconds": float(r.seconds), "weights": r.weights, "warnings": " | ".join(r.warnings),
    }  # fmt: skip
    row |= {f"error.{name}": float(value) for name, value in r.errors.items()}
    row |= {f"bound.{name}": float(value) for name, value in r.bounds.items()}
    for name, found in r.unknowns.items():
        row |= {f"unknown.{name}": float(found.value), f"unknown.{name}.se": float(found.se),
                f"unknown.{name}.low": float(found.low), f"unknown.{name}.high": float(found.high),
                f"unknown.{name}.unit": found.unit, f"unknown.{name}.identifiable": found.identifiable}  # fmt: skip
    for stage, cost in r.stages.items():
        row |= {f"stage.{stage}.{what}": float(value) for what, value in cost.items()}
    row |= {f"option.{name}": plain(value) for name, value in r.options.items()}
    return row | {f"environment.{name}": plain(value) for name, value in r.environment.items()}


def _add(columns: Columns, name: str, values: list[Any]) -> None:
    shown, n = plain(name, 200) or "column", 1
    while (shown if n == 1 else f"{shown} {n}") in columns:
        n += 1
    columns[shown if n == 1 else f"{shown} {n}"] = values


def _array(arrow: Any, values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bool) for value in known):
        return arrow.array(values, arrow.bool_())
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return arrow.array(values, arrow.int64())
    if known and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return arrow.array([None if value is None else float(value) for value in values], arrow.float64())
    return arrow.array([None if value is None else plain(value, 10_000) for value in values], arrow.string())


def _pyarrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(
            "writing Parquet needs the library pyarrow", field="format",
            remedy="Install it with: pip install 'tgsr[data]', or write CSV",
        ) from error  # fmt: skip
