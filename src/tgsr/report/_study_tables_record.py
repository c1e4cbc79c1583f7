"""The tables that keep a study honest: what failed, what is missing, what it ran on, where the paper errs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from tgsr._errors import plain
from tgsr._provenance import SAME_BITS
from tgsr.report._numbers import count_cell
from tgsr.report._study_tables_cost import COSTS
from tgsr.report._study_tables_pairs import EVENTS
from tgsr.report._study_tables_task import EXCLUDED, LOCAL
from tgsr.report._table import Cell, Column, Table, words
from tgsr.report._task_view import TaskView, named
from tgsr.report._words import duration
from tgsr.study._pairs import arms_of
from tgsr.study._record import Record
from tgsr.study._results import StudyResults
from tgsr.study.paper import contradictions, paper_tables, results_table, tables_of_study, wilcoxon_table

LEFT = "left"


def failure_tables(results: StudyResults) -> list[Table]:
    """Runs that failed, trials without a result, and warnings."""
    return [failures_table(results), *_if(pending_table(results)), *_if(warnings_table(results))]


def failures_table(results: StudyResults) -> Table:
    """Every run without a usable result, each with its sentence. Always there, if only to say that there is none."""
    columns = (
        Column("method", align=LEFT), Column("task", align=LEFT), Column("role", align=LEFT), Column("seed"),
        Column("outcome", align=LEFT), Column("what happened", align=LEFT), Column("run", align=LEFT),
    )  # fmt: skip
    rows = [
        (words(r.arm), words(r.task), words(r.role), count_cell(r.seed), words(r.outcome), words(why_failed(r)),
         words(r.run or "none"))
        for r in results.records if has_failed(r)
    ]  # fmt: skip
    told = f"{len(rows)} of {len(results.records)} runs, sources included, have no usable result."
    if rows:
        told += " Each counts as infinitely wrong wherever its method is judged."
    return Table("failures-runs", "Failed runs", told, columns, tuple(rows))


def has_failed(record: Record) -> bool:
    """Whether a run counts as infinite: it ended badly, or an error of its is not finite."""
    return not record.ok or any(not math.isfinite(value) for value in record.errors.values())


def why_failed(record: Record) -> str:
    """The sentence of a failed run."""
    if record.ok:
        bad = [name for name, value in record.errors.items() if not math.isfinite(value)]
        return f"The run ended as usual, but these errors are not finite: {', '.join(bad)}."
    return record.sentence or "No reason was recorded."


def pending_table(results: StudyResults) -> Table | None:
    """Trials without a result, those alike in one row: the study is not finished."""
    found: dict[tuple[str, str, str, str, str], list[int]] = {}
    for p in results.pending:
        found.setdefault((p.arm, p.task, p.role, p.state, p.reason), []).append(p.seed)
    rows = [
        (words(arm), words(task), words(role), words(state), words(reason), count_cell(len(seeds)), words(named(seeds)))
        for (arm, task, role, state, reason), seeds in found.items()
    ]
    columns = (
        Column("method", align=LEFT), Column("task", align=LEFT), Column("role", align=LEFT),
        Column("state", align=LEFT), Column("reason", align=LEFT), Column("trials"), Column("seeds", align=LEFT),
    )  # fmt: skip
    told = f"The study is not finished; without a result: {len(results.pending)}. Nothing in this report counts them."
    return Table("failures-pending", "Trials without a result", told, columns, tuple(rows)) if rows else None


def warnings_table(results: StudyResults) -> Table | None:
    """What runs warned of, each sentence once for every method and task."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for r in results.records:
        for text in r.warnings:
            found.setdefault((r.arm, r.task, r.role, plain(text, 600)), []).append(r.seed)
    rows = [
        (words(arm), words(task), words(role), words(text), count_cell(len(seeds)), words(named(seeds)))
        for (arm, task, role, text), seeds in found.items()
    ]
    columns = (
        Column("method", align=LEFT), Column("task", align=LEFT), Column("role", align=LEFT),
        Column("warning", align=LEFT), Column("runs"), Column("seeds", align=LEFT),
    )  # fmt: skip
    told = "What the runs themselves warned of. Such a run counts like any other."
    return Table("failures-warnings", "Warnings", told, columns, tuple(rows)) if rows else None


def provenance_tables(results: StudyResults) -> list[Table]:
    """What was asked, and what it was computed with."""
    return [study_table(results), environment_table(results)]


def study_table(results: StudyResults) -> Table:
    """The study in a few lines."""
    targets = [r for r in results.records if r.role == "target"]
    seconds = [r.seconds for r in results.records if math.isfinite(r.seconds)]
    facts = [
        ("study", results.name),
        ("profile", results.profile or "as the problem's file says"),
        ("network and optimiser", results.preset or "not stated"),
        ("budget", results.budget or "not stated"),
        ("seeds", named(results.seeds)),
        ("methods", ", ".join(arms_of(targets))),
        ("runs", f"{len(targets)} of targets, {len(results.records) - len(targets)} of sources"),
        ("readings", ", ".join(f"{n:,}" for n in sorted({r.observations for r in targets}, reverse=True))),
        ("failed", str(sum(has_failed(r) for r in results.records))),
        ("without a result yet", str(len(results.pending))),
        ("time of all runs together", duration(sum(seconds)) if seconds else "not known"),
    ]
    columns = (Column("what", align=LEFT), Column("value", align=LEFT))
    rows = tuple((words(what), words(value or "none")) for what, value in facts)
    return Table("provenance-study", "The study", "What was asked for and what there is of it.", columns, rows)


def environment_table(results: StudyResults) -> Table:
    """Versions, engine, threads, processor, precision: one row for every value, so that differences are seen."""
    keys = dict.fromkeys(key for r in results.records for key in r.environment)
    rows, differ = [], []
    for key in keys:
        seen = Counter(plain(r.environment[key], 200) for r in results.records if key in r.environment)
        for value, count in seen.most_common():
            several = "differs between runs" if len(seen) > 1 else ""
            rows.append((words(key), words(value), count_cell(count), words(several)))
        differ += [key] if len(seen) > 1 else []
    without = sum(not r.environment for r in results.records)
    notes = [f"Runs differ in {', '.join(differ)}. {_meaning(differ)}"] if differ else []
    notes += [f"{without} runs ended before their environment was recorded."] if without else []
    columns = (Column("what", align=LEFT), Column("value", align=LEFT), Column("runs"), Column("alike", align=LEFT))
    told = "What the runs were computed with." if differ or not rows else "All runs were computed with the same."
    return Table("provenance-environment", "Environment", told, columns, tuple(rows), tuple(notes))


def _meaning(differ: Sequence[str]) -> str:
    if set(differ) & set(SAME_BITS):
        return "The same recipe can then give other last digits, and after long training another result."
    return "None of this changes the bits of a run on the same processor and engine."


def shown_paper_tables(results: StudyResults, tasks: Sequence[TaskView]) -> set[str]:
    """The keys of the paper's tables whose numbers stand in this report."""
    shown = {table.key for table in tables_of_study(results.name)}
    for view in tasks:
        for table in (results_table(view.task), wilcoxon_table(view.task)) if view.paper else ():
            shown |= {table.key} if table else set()
        if view.paper:
            named_too = [key for key in (LOCAL, EXCLUDED) if paper_tables()[key].task == view.task]
            shown |= {EVENTS, *named_too} if paper_tables()[EVENTS].row("tgsr", view.task) else set(named_too)
        shown |= {COSTS} if view.task == paper_tables()[COSTS].task else set()
    return shown


def contradictions_table(results: StudyResults, tasks: Sequence[TaskView]) -> Table | None:
    """Where the paper's numbers that stand in this report do not agree with each other."""
    shown = shown_paper_tables(results, tasks)
    rows = []
    for one in contradictions():
        if shown & set(one.tables):
            where = ", ".join(paper_tables()[key].where for key in one.tables)
            rows.append((words(where), Cell(one.words, one.words, paper=True)))
    columns = (Column("in the paper", align=LEFT), Column("what does not agree", align=LEFT))
    told = "Places where numbers of the paper contradict each other. Read comparisons with them with that in mind."
    return Table("paper-contradictions", "Contradictions in the paper", told, columns, tuple(rows)) if rows else None


def _if(table: Table | None) -> Iterable[Table]:
    return () if table is None else (table,)
