"""The tables of one task: what every method reached, unknown by unknown, beside what the paper prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tgsr.report._numbers import (
    SPREAD,
    UNKNOWN,
    count_cell,
    median_cell,
    num,
    number_cell,
    paper_cell,
    printed,
    quoted_cell,
    share_cell,
    spread_cell,
    with_best,
)
from tgsr.report._table import Cell, Column, Table, words
from tgsr.report._task_view import FIELD, FRACTIONS, PARAMETER, TaskView, median_of
from tgsr.study._limits import common_range, exclusions
from tgsr.study._statistics import summarise
from tgsr.study.paper import PaperTable, Quoted, facts, paper_tables

MEDIAN = ("median", "median, low", "median, high")
PAIR = ("mean", "sd")
LOCAL = "pe_local_metrics"
EXCLUDED = "pe_failed_runs"
FACTOR = 2.0  # a mean that differs from the paper's by more is named


def task_tables(view: TaskView) -> list[Table]:
    """What there is to say, in reading order."""
    if not view.has_truth:
        return [estimates_table(view), *([more_errors_table(view)] if view.extras else [])]
    tables = [] if view.ablation else [results_table(view)]
    if len(view.unknowns) > 1:
        tables.append(unknowns_table(view))
    if view.extras:
        tables.append(more_errors_table(view))
    return tables


def results_table(view: TaskView) -> Table:
    """Parameter and field error of every method, and how often the reference was better."""
    paper, pairs = view.paper, {p.other: p for p in view.pairs()}
    has_field = any(view.errors(arm, FIELD) for arm in view.compared)
    columns = [Column("method", align="left"), Column("runs"), Column("failed")]
    columns += [Column("parameter error, mean ± sd", "%", parts=SPREAD)]
    columns += [Column("paper: parameter error", "%", paper=True, parts=PAIR)] if paper else []
    columns += [Column("parameter error, median [95 %]", "%", parts=MEDIAN)]
    columns += [Column("field error, mean ± sd", "%", parts=SPREAD)] if has_field else []
    columns += [Column("paper: field error", "%", paper=True, parts=PAIR)] if paper and has_field else []
    if pairs:
        columns += [Column(f"{view.reference} lower in", parts=("wins", "pairs")), Column("p (Holm)")]
    by_error = {error: _by_error(view, error, paper) for error in (PARAMETER, FIELD)}
    rows = []
    for i, arm in enumerate(view.compared):
        sample = view.summary(arm)
        row = [words(arm), count_cell(len(view.runs(arm))), count_cell(sample.failed)]
        row += [by_error[PARAMETER][0][i]] + ([by_error[PARAMETER][1][i]] if paper else [])
        row += [by_error[PARAMETER][2][i]]
        row += [by_error[FIELD][0][i]] if has_field else []
        row += [by_error[FIELD][1][i]] if paper and has_field else []
        if pairs:
            pair = pairs.get(arm)
            row += [share_cell(pair.tally.wins, pair.n) if pair else Cell(UNKNOWN, (None, None)),
                    number_cell(pair.adjusted if pair else math.nan)]  # fmt: skip
        rows.append(tuple(row))
    return Table(
        f"{view.key}-results", "Results",
        "Errors against the truth. A run that failed counts as infinite: it is in the mean, the median and every "
        "count. Medians stand with an interval from six runs on. The lowest of a column is bold.",
        tuple(columns), tuple(rows), tuple(_result_notes(view, paper)),
    )  # fmt: skip


def unknowns_table(view: TaskView) -> Table:
    """Every unknown by itself: a mean over unknowns can hide one that is lost."""
    paper = view.paper
    with_paper = [name for name in view.unknowns if paper and any(f"{name}.best" in c for c in paper.columns)]
    columns = [Column("method", align="left")]
    for name in view.unknowns:
        columns += [Column(f"{name}, mean ± sd", "%", parts=SPREAD), Column(f"{name}, best", "%")]
        columns += [Column(f"paper: {name}, best", "%", paper=True)] if name in with_paper else []
    samples = {name: [view.summary(arm, name) for arm in view.compared] for name in view.unknowns}
    spread = {n: with_best([spread_cell(s) for s in own], [s.mean for s in own]) for n, own in samples.items()}
    best = {n: with_best([number_cell(s.best) for s in own], [s.best for s in own]) for n, own in samples.items()}
    rows = []
    for i, arm in enumerate(view.compared):
        row = [words(arm)]
        for name in view.unknowns:
            row += [spread[name][i], best[name][i]]
            if paper and name in with_paper:
                row.append(paper_cell(paper.quoted(view.paper_arm(arm), f"{name}.best", view.task).value))
        rows.append(tuple(row))
    return Table(
        f"{view.key}-unknowns", "Every unknown by itself",
        "The parameter error above is the mean over these. 'Best' is the smallest error of all seeds: it shows what a "
        "method can reach, not what to expect.",
        tuple(columns), tuple(rows),
    )  # fmt: skip


def more_errors_table(view: TaskView) -> Table:
    """Errors that only this task has: in the layer, of the gradient."""
    paper = paper_tables()[LOCAL] if paper_tables()[LOCAL].task == view.task and view.paper else None
    columns, cells = [Column("method", align="left")], []
    for name in view.extras:
        unit = "" if name in FRACTIONS else "%"
        columns.append(Column(f"{name} error, mean ± sd", unit, parts=SPREAD))
        sample = [view.summary(arm, name) for arm in view.compared]
        cells.append(with_best([spread_cell(s) for s in sample], [s.mean for s in sample]))
        if paper and name in paper.columns:
            columns.append(Column(f"paper: {name} error", unit, paper=True))
            cells.append([paper_cell(paper.quoted(view.paper_arm(arm), name).value) for arm in view.compared])
    rows = [(words(arm), *(column[i] for column in cells)) for i, arm in enumerate(view.compared)]
    told = (
        "Errors of other quantities, or in a part of the domain: a global error can hide what happens in a thin layer."
    )
    told += " The gradient's is a fraction, not a percentage." if FRACTIONS & set(view.extras) else ""
    notes = (f"The paper's numbers are from its {paper.where}.",) if paper else ()
    return Table(f"{view.key}-local", "More errors", told, tuple(columns), tuple(rows), notes)


def estimates_table(view: TaskView) -> Table:
    """Where no truth is known: what was found, how sure each run is, and how far the seeds agree."""
    columns = (
        Column("method", align="left"), Column("unknown", align="left"), Column("runs"), Column("failed"),
        Column("estimate, median"), Column("smallest to largest", parts=("smallest", "largest")),
        Column("sd over seeds"), Column("standard error, median"), Column("unit", align="left"),
    )  # fmt: skip
    rows = []
    for arm in view.compared:
        runs = view.runs(arm)
        for name in view.unknowns:
            found = [r.unknowns[name] for r in runs.values() if r.ok and name in r.unknowns]
            sample = summarise(f.value for f in found)
            errors = [f.se for f in found if f.identifiable]
            note = (
                "" if len(errors) == len(found) else f"not identifiable in {len(found) - len(errors)} of {len(found)}"
            )
            ends = f"{num(sample.best, 4)} to {num(sample.worst, 4)}" if len(found) > 1 else UNKNOWN
            se = number_cell(median_of(errors)) if errors else words("not identifiable", math.nan)
            unit = next((r.unknowns[name].unit for r in view.records if name in r.unknowns), "")
            rows.append((
                words(arm), words(name), count_cell(len(runs)), count_cell(len(runs) - len(found)),
                number_cell(sample.median, 4, note=note), Cell(ends, (sample.best, sample.worst)),
                number_cell(sample.finite_sd), se, words(unit),
            ))  # fmt: skip
    return Table(
        f"{view.key}-estimates", "Estimates",
        "No truth is known for this problem, so no error is stated. Seeds that disagree by more than the standard "
        "error mean that the optimiser, not the readings, limits the answer.",
        columns, tuple(rows),
    )  # fmt: skip


def exclusions_table(view: TaskView) -> Table | None:
    """What the pictures of the errors leave out; None where nothing is left out."""
    paper = paper_tables()[EXCLUDED] if paper_tables()[EXCLUDED].task == view.task and view.paper else None
    rows = []
    for error in (PARAMETER, FIELD):
        samples = {arm: list(view.errors(arm, error).values()) for arm in view.compared}
        most = common_range(samples)
        for one in exclusions({arm: sample for arm, sample in samples.items() if sample}, most):
            if one.outside:
                finite = [v for v in one.outside if math.isfinite(v)]
                failed = len(one.outside) - len(finite)
                told = [", ".join(num(v) for v in finite)] if finite else []
                told += [f"{failed} failed"] if failed else []
                row = [words(one.arm), words(error), number_cell(most), share_cell(one.retained, one.n),
                       Cell("; ".join(told), "; ".join(num(v) for v in one.outside))]  # fmt: skip
                rows.append((*row, _their_exclusions(paper, view.paper_arm(one.arm), error)) if paper else tuple(row))
    if not rows:
        return None
    columns = [
        Column("method", align="left"), Column("error", align="left"), Column("upper end of the picture", "%"),
        Column("runs shown", parts=("shown", "runs")), Column("outside", "%", "left"),
    ]  # fmt: skip
    columns += [Column("paper: excluded", "%", "left", paper=True)] if paper else []
    return Table(
        f"{view.key}-exclusions", "What pictures of the errors leave out",
        "Pictures with a bounded axis do not show these runs. No table, mean or test leaves anything out.",
        tuple(columns), tuple(rows),
    )  # fmt: skip


def _by_error(view: TaskView, error: str, paper: PaperTable | None) -> tuple[list[Cell], list[Cell], list[Cell]]:
    samples = [view.summary(arm, error) for arm in view.compared]
    theirs = [paper.quoted(view.paper_arm(a), error) if paper else Quoted(math.nan) for a in view.compared]
    return (
        with_best([spread_cell(s) for s in samples], [s.mean for s in samples]),
        with_best([quoted_cell(q) for q in theirs], [float(q.value) for q in theirs]),
        with_best([median_cell(s) for s in samples], [s.median for s in samples]),
    )


def _result_notes(view: TaskView, paper: PaperTable | None) -> Iterable[str]:
    left = [arm for arm in view.arms if arm not in view.compared]
    if left:
        yield f"Arms without readings are in a table of their own: {', '.join(left)}."
    counts = {arm: len(view.runs(arm)) for arm in view.compared}
    fewer = [f"{arm} ({n})" for arm, n in counts.items() if n < max(counts.values())]
    if fewer:
        yield (f"Fewer runs than the {max(counts.values())} of the others: {', '.join(fewer)}. Pairs are made of the "
               "seeds that both have.")  # fmt: skip
    if paper:
        n = f", {paper.n} repetitions" if paper.n else ""
        yield f"The paper's numbers are from its {paper.where}{n}, to compare with; nothing is tuned to them."
        other_nine = facts()["scratch-without-the-diverged-run"]
        if other_nine.task == view.task:
            of = other_nine.values
            yield (f"In the paper one scratch run diverged; the means of its other {of['n']} are "
                   f"{printed(of[PARAMETER])} % (parameter) and {printed(of[FIELD])} % (field).")  # fmt: skip
        yield from _differs(view, paper)


def _differs(view: TaskView, paper: PaperTable) -> Iterable[str]:
    if view.results.profile != "paper":
        yield (f"Our runs have the effort of profile '{view.results.profile}', not the paper's, so sizes need not "
               "agree; the order of the methods might.")  # fmt: skip
    for error in (PARAMETER, FIELD):
        far, known = [], []
        for arm in view.compared:
            theirs, ours = paper.quoted(view.paper_arm(arm), error), view.summary(arm, error)
            if theirs.known and ours.n and not ours.failed:
                known.append((arm, float(theirs.value), ours.mean))
                ratio = ours.mean / float(theirs.value)
                if not 1 / FACTOR <= ratio <= FACTOR:
                    far.append(f"{arm} ({num(ours.mean)} here, {quoted_cell(theirs).text.split(' ')[0]} there)")
        if far:
            yield f"Mean {error} errors that differ from the paper's by more than a factor of two: {', '.join(far)}."
        if len(known) > 1:
            yield from _other_order(known, error)


def _other_order(known: Sequence[tuple[str, float, float]], error: str) -> Iterable[str]:
    theirs, ours = min(known, key=lambda k: k[1])[0], min(known, key=lambda k: k[2])
    if ours[0] != theirs and math.isfinite(ours[2]):
        yield f"Of the paper's methods {ours[0]} has the lowest mean {error} error here and {theirs} in the paper."


def _their_exclusions(paper: PaperTable, arm: str, error: str) -> Cell:
    row = paper.row(arm)
    if not row:
        return paper_cell(math.nan)
    low, high = row[f"{error}.low"], row[f"{error}.high"]
    told = f"{row['excluded']} of {paper.n}: {paper_cell(low).text}"
    return Cell(told if low == high else f"{told} to {paper_cell(high).text}", told, paper=True)
