"""The page of a study: one file that answers first, then shows every number, picture and run behind the answers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError, plain
from tgsr.report._arms import ArmStyle, arm_styles
from tgsr.report._findings import findings
from tgsr.report._page import LIMIT, render
from tgsr.report._study_figures import study_figures
from tgsr.report._study_ranking import Ranking, ranking
from tgsr.report._study_runs import run_groups, scatter_data
from tgsr.report._study_tables import study_tables
from tgsr.report._svg import panel_svg
from tgsr.report._table import Cell, Finding, Section, Table
from tgsr.storage import write_bytes
from tgsr.study._pairs import tasks_of
from tgsr.study._results import StudyResults

if TYPE_CHECKING:
    from tgsr.report._study_figure import StudyFigure

LINE = 2000  # letters of a sentence
LONG = 36  # letters from which a cell of words may break its line
MOST_COLUMNS = 4  # of panels
ADDRESS = re.compile(r"https://doi\.org/10\.[0-9]{4,9}/[A-Za-z0-9._()/-]+")  # the only addresses that become links
# What a mark says to those who do not see it.
SAID = {"good": "In favour: ", "bad": "Against: ", "open": "Undecided: ", "neutral": ""}


@dataclass(frozen=True)
class Answer:
    """A finding ready for the page."""

    question: str
    answer: str
    detail: str
    tone: str
    said: str


@dataclass(frozen=True)
class TaskAnswers:
    """What the first screen says about a task: the leading answer, the others, and the picture beside them."""

    identity: str
    name: str
    short: str
    lead: Answer | None
    findings: tuple[Answer, ...]
    ranking: Ranking | None


def write_study_report(results: StudyResults, path: str | Path) -> Path:
    """Write the page of a study to `path` and return that path. Links to the runs' own pages are relative to it."""
    target = Path(path)
    page = study_page(results, target.parent).encode()
    if len(page) > LIMIT:
        raise InputError(f"the page would have {len(page):,} bytes, more than {LIMIT:,}", file=target)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, page)
    return target


def study_page(results: StudyResults, base: Path | None = None) -> str:
    """The text of the page that is to lie in the folder `base`. The same results give the same text."""
    return compose(results, findings(results), study_tables(results), study_figures(results), base or results.folder)


def compose(
    results: StudyResults,
    found: Sequence[Finding],
    sections: Sequence[Section],
    figures: Sequence[StudyFigure],
    base: Path | None = None,
) -> str:
    """The page of a study from its parts."""
    styles, names = arm_styles(results), tasks_of(results.records)
    tasks = [_answers(results, task, f"task-{i}", found, styles) for i, task in enumerate(names)]
    shown = _sections(sections, figures)
    groups = run_groups(results, base)
    context: dict[str, Any] = {
        "head": _head(results),
        "notices": [_answer(f) for f in found if f.task not in names],
        "contents": _contents(results, shown),
        "tasks": tasks,
        "sections": shown,
        "groups": groups,
        "spec": _readable(results.spec),
        "data": _inline_json(scatter_data(results, styles)),
    }
    return render("study.html.j2", context, sheets=("page.css", "study.css"), script="study.js")


def _head(results: StudyResults) -> dict[str, str]:
    profile = f"Profile {plain(results.profile, 80)}" if results.profile else "No profile"
    effort = f"{profile}, budget {plain(results.budget, 80)}" if results.budget else profile
    targets = [r for r in results.records if r.role == "target"]
    sources, failed = len(results.records) - len(targets), sum(not r.ok for r in results.records)
    counts = [_count(len(targets), "run")] + ([_count(sources, "source run")] if sources else [])
    counts += [f"{failed} failed" if failed else "none failed"] if results.records else []
    counts += [f"{len(results.pending):,} without a result yet"] if results.pending else []
    return {
        "title": plain(results.title or results.name, 200),
        "about": plain(results.about, LINE),
        "effort": effort,
        "preset": plain(results.preset, LINE),
        "counts": ", ".join(counts),
    }


def _contents(results: StudyResults, shown: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    contents = [("answers", "Answers")]
    contents += [("explore", "Explore the runs")] if tasks_of(results.records) else []
    contents += [(part["identity"], part["title"]) for part in shown]
    contents += [("runs", "All runs")] if results.records else []
    return contents + ([("study-file", "The study's file")] if results.spec else [])


def _answers(
    results: StudyResults, task: str, identity: str, found: Sequence[Finding], styles: Mapping[str, ArmStyle]
) -> TaskAnswers:
    own = [_answer(f) for f in found if f.task == task]
    ranked = ranking(results.records, task, styles)
    best = ranked.rows[0] if ranked and ranked.rows and ranked.rows[0].middle is not None else None
    short = f"{best.arm} {best.median} %" if best else ""
    return TaskAnswers(identity, plain(task, 80), short, own[0] if own else None, tuple(own[1:]), ranked)


def _answer(f: Finding) -> Answer:
    tone = f.tone if f.tone in SAID else "neutral"
    return Answer(plain(f.question, LINE), plain(f.answer, LINE), plain(f.detail, LINE), tone, SAID[tone])


def _sections(sections: Sequence[Section], figures: Sequence[StudyFigure]) -> list[dict[str, Any]]:
    """Tables and pictures of a section together; pictures that belong to none of the sections come last."""
    letters: set[str] = set()  # shared by all pictures of the page
    keys = [s.key for s in sections]
    out = [
        {"title": plain(s.title, 200), "words": plain(s.words, LINE), "tables": [_table(t) for t in s.tables],
         "figures": [_figure(f, letters) for f in figures if f.section == s.key]}
        for s in sections
    ]  # fmt: skip
    rest = [_figure(f, letters) for f in figures if f.section not in keys]
    if rest:
        out.append({"title": "More pictures", "words": "", "tables": [], "figures": rest})
    return [{"identity": f"part-{i}", **one} for i, one in enumerate(out)]


def _figure(figure: StudyFigure, letters: set[str]) -> dict[str, Any]:
    panels = []
    for i, panel in enumerate(figure.panels):
        identity = f"panel-{figure.key}-{i}"
        panels.append(
            {
                "identity": identity,
                "title": plain(panel.title.replace(r"\$", "$")),
                "words": plain(panel.words, LINE),
                "svg": panel_svg(panel, identity, letters),
            }
        )
    return {
        "identity": figure.key, "title": plain(figure.title, 200), "words": plain(figure.words, LINE), "panels": panels,
        "columns": min(max(figure.columns, 1), MOST_COLUMNS),
    }  # fmt: skip


def _table(table: Table) -> dict[str, Any]:
    """The table with what cells remark gathered below it, each remark once."""
    remarks = {
        text: str(i + 1) for i, text in enumerate(dict.fromkeys(c.note for r in table.rows for c in r if c.note))
    }
    columns = [
        {"name": plain(c.name, 120), "unit": plain(c.unit, 40), "kind": _kind(c.align, c.paper)} for c in table.columns
    ]
    rows = [
        [_cell(cell, column.align, column.paper, remarks) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    return {
        "identity": table.key, "title": plain(table.title, 200), "words": plain(table.words, LINE), "columns": columns,
        "rows": rows, "notes": [(number, plain(text, LINE)) for text, number in remarks.items()]
        + [("", plain(text, LINE)) for text in table.notes],
    }  # fmt: skip


def _cell(cell: Cell, align: str, paper: bool, remarks: Mapping[str, str]) -> dict[str, Any]:
    kind = _kind(align, paper or cell.paper) + (" best" if cell.best else "")
    text = plain(cell.text, LINE)
    return {
        "text": text,
        "kind": f"{kind} text".strip() if align == "left" and len(text) > LONG else kind,
        "value": _sorted_by(cell.value[0] if isinstance(cell.value, tuple) and cell.value else cell.value),
        "best": cell.best,
        "link": text if ADDRESS.fullmatch(text) else "",
        "note": remarks.get(cell.note, ""),
    }


def _kind(align: str, paper: bool) -> str:
    return " ".join(word for word in ("number" if align != "left" else "", "paper" if paper else "") if word)


def _sorted_by(value: object) -> str | None:
    """What the script sorts numbers by; words are sorted as they stand."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        return None
    return ("-" if value < 0 else "") + "Infinity" if math.isinf(value) else f"{value:.6g}"


def _readable(text: str) -> str:
    """A file's text with its lines, without what could drive a terminal or turn the reading direction."""
    return "\n".join(plain(line.replace("\t", "    "), LINE) if line.strip() else "" for line in text.splitlines())


def _inline_json(value: object) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
