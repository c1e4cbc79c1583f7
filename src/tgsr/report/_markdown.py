"""The answers and tables of a study as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tgsr._errors import plain
from tgsr.report._table import Cell, Column, Finding, Section, Table

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$#])")


def markdown(title: str, about: Iterable[str], answers: Sequence[Finding], sections: Sequence[Section]) -> str:
    """One document: what it is about, the answers task by task, then every table."""
    lines = [f"# {escaped(title)}", "", *(f"{escaped(line)}\n" for line in about if line)]
    if answers:
        lines += ["## Answers", ""]
        for task in dict.fromkeys(answer.task for answer in answers):
            lines += [f"### {escaped(task)}", ""] if task else []
            for one in (a for a in answers if a.task == task):
                detail = f" {escaped(one.detail)}" if one.detail else ""
                lines += [f"**{escaped(one.question)}** {escaped(one.answer)}{detail}", ""]
    for section in sections:
        lines += [f"## {escaped(section.title)}", ""]
        lines += [escaped(section.words), ""] if section.words else []
        for table in section.tables:
            lines += [markdown_table(table), ""]
    return "\n".join(lines).rstrip() + "\n"


def markdown_table(table: Table) -> str:
    """A heading, how to read it, the rows and the notes."""
    lines = [f"### {escaped(table.title)}", "", escaped(table.words), ""]
    if table.rows:
        lines.append(_row(_heading(column) for column in table.columns))
        lines.append(_row(":---" if column.align == "left" else "---:" for column in table.columns))
        lines += [_row(_cell(cell) for cell in row) for row in table.rows]
    else:
        lines.append("(no rows)")
    for note in table.notes:
        lines += ["", f"- {escaped(note)}"] if note == table.notes[0] else [f"- {escaped(note)}"]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text of any origin as one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", plain(text, 4000))


def _heading(column: Column) -> str:
    shown = escaped(column.heading)
    return f"*{shown}*" if column.paper and shown else shown or " "


def _cell(cell: Cell) -> str:
    shown = escaped(cell.text)
    shown = f"**{shown}**" if cell.best and shown else shown
    return f"{shown} ({escaped(cell.note)})" if cell.note else shown


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
