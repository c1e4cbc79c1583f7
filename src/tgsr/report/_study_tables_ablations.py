"""The tables of the studies that ship: every arm of the ablation, ours and the paper's number side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tgsr.report._audits import audits_of, probes_of
from tgsr.report._numbers import (
    SPREAD,
    UNKNOWN,
    count_cell,
    median_cell,
    number_cell,
    paper_cell,
    printed,
    quoted_cell,
    share_cell,
    signed,
    spread_cell,
    with_best,
)
from tgsr.report._study_tables_pairs import p_cell
from tgsr.report._study_tables_task import MEDIAN, PAIR
from tgsr.report._table import Cell, Column, Section, Table, words
from tgsr.report._task_view import FIELD, PARAMETER, TaskView
from tgsr.study._layers import BIC, CAP, mean_decay, switching_audit
from tgsr.study._pairs import Paired, compare_arms
from tgsr.study._probes import Probes
from tgsr.study._results import StudyResults
from tgsr.study._shipped import shipped_specs
from tgsr.study._statistics import summarise
from tgsr.study.paper import PaperTable, Quoted, contradictions, fact, facts, paper_tables, tables_of_study

SWITCHING = "gmm_switch_sensitivity"
BRANCHES = ("branch", "branch-cross-pde")
REPETITIONS = {"a": "first", "b": "second"}


def ablation_section(results: StudyResults, tasks: Sequence[TaskView]) -> Section | None:
    """The tables of a shipped study; None for any other."""
    if results.name not in shipped_specs() or not tasks:
        return None
    tables: list[Table] = []
    papers = [table for table in tables_of_study(results.name) if table.arms and table.key != "cost"]
    for view in tasks:
        own = [table for table in papers if table.task in ("", view.task)]
        tables += [ablation_table(view, own[0] if own else None)]
        tables += [table for table in (sparsity_table(view),) if table]
    if results.name == "switching":
        tables += [switching_table(results)]
    if results.name in BRANCHES:
        tables += [branch_table(results, tasks)]
    if results.name == "gate-check":
        tables += [gate_table(results)]
    told = results.about or "A study of one part of the method."
    return Section(results.name, results.title or results.name, told, tuple(tables))


def ablation_table(view: TaskView, paper: PaperTable | None) -> Table:
    """Every arm: parameter and field error, and whatever else the paper prints of it."""
    reference, arms = view.reference, list(view.compared)
    columns, cells = [Column("arm", align="left"), Column("runs"), Column("failed")], []
    samples = {arm: view.summary(arm) for arm in arms}
    cells.append([count_cell(len(view.runs(arm))) for arm in arms])
    cells.append([count_cell(samples[arm].failed) for arm in arms])
    asked = list(paper.columns) if paper else []
    singles = [n for n in view.unknowns if any(c == n or c.startswith(f"{n}.") for c in asked)]
    for error in (PARAMETER, *singles, FIELD):
        if not any(view.errors(arm, error) for arm in arms):
            continue
        what = f"{error} error"
        own = [view.summary(arm, error) for arm in arms]
        columns.append(Column(f"{what}, mean ± sd", "%", parts=SPREAD))
        cells.append(with_best([spread_cell(s) for s in own], [s.mean for s in own]))
        if paper and error in asked:
            columns.append(Column(f"paper: {what}", "%", paper=True, parts=PAIR))
            quoted = [paper.quoted(arm, error, view.task) for arm in arms]
            cells.append(with_best([quoted_cell(q) for q in quoted], [float(q.value) for q in quoted]))
        if error == PARAMETER:
            columns.append(Column(f"{what}, median [95 %]", "%", parts=MEDIAN))
            cells.append(with_best([median_cell(s) for s in own], [s.median for s in own]))
        for end, of in (("best", "best"), ("worst", "worst")):
            if paper and f"{error}.{end}" in asked:
                columns += [Column(f"{what}, {end}", "%"), Column(f"paper: {what}, {end}", "%", paper=True)]
                cells.append([number_cell(getattr(s, of)) for s in own])
                cells.append([paper_cell(paper.quoted(arm, f"{error}.{end}", view.task).value) for arm in arms])
        for letter, place in REPETITIONS.items():
            if paper and f"{error}.{letter}" in asked:
                columns.append(Column(f"paper: {what}, {place} repetition", "%", paper=True))
                cells.append([paper_cell(paper.quoted(arm, f"{error}.{letter}", view.task).value) for arm in arms])
    for column, column_cells in [*_pair_columns(view, paper, reference), *_decay_columns(view, paper)]:
        columns.append(column)
        cells.append(column_cells)
    rows = [(words(arm), *(column[i] for column in cells)) for i, arm in enumerate(arms)]
    told = f"Errors against the truth on {view.task}; a failed run counts as infinite. The lowest of a column is bold."
    if len(arms) > 1:
        told += f" Pairs are {reference} against the arm of the row at the same seed."
    return Table(
        f"ablation-{view.key}", f"Every arm on {view.task}", told,
        tuple(columns), tuple(rows), tuple(_notes(view, paper)),
    )  # fmt: skip


def sparsity_table(view: TaskView) -> Table | None:
    """The same method with fewer readings: what did it lose?"""
    rows = []
    for arm in view.compared:
        for other in view.compared:
            a, b = view.first(arm), view.first(other)
            same = a.method == b.method and dict(a.options) == dict(b.options)
            if same and a.observations > b.observations:
                pair = compare_arms(view.records, view.task, arm, other)
                more, fewer = summarise(pair.ours), summarise(pair.theirs)
                ratio = fewer.median / more.median if more.median and math.isfinite(more.median) else math.nan
                rows.append((
                    words(a.method), count_cell(a.observations), count_cell(b.observations), median_cell(more),
                    median_cell(fewer), number_cell(ratio), share_cell(pair.tally.wins, pair.n), p_cell(pair.test.p),
                ))  # fmt: skip
    if not rows:
        return None
    columns = (
        Column("method", align="left"), Column("more readings"), Column("fewer"),
        Column("with more, median [95 %]", "%", parts=MEDIAN), Column("with fewer, median [95 %]", "%", parts=MEDIAN),
        Column("fewer / more, medians"), Column("lower with more in", parts=("wins", "pairs")), Column("p, exact"),
    )  # fmt: skip
    told = (
        "Parameter errors of the same method and seed; the fewer readings are among the more. Independent readings of "
    )
    told += "the same noise would make the error larger by the root of their ratio."
    return Table(f"ablation-{view.key}-readings", "What fewer readings cost", told, columns, tuple(rows))


def switching_table(results: StudyResults) -> Table:
    """How many recorded layers open the mixture branch: by depth, and at other thresholds and caps."""
    paper, audits = paper_tables()[SWITCHING], audits_of(results)
    known = {(row[0], float(row[1])): row for row in paper.rows}
    rows = []
    for one in switching_audit(audits) if audits else ():
        their = known.get((one.factor, one.setting))
        agreed = 100.0 * one.agree / one.layers if one.layers else math.nan
        at_40 = one.factor == "bic_threshold" and one.setting == 40
        rows.append((
            words({"depth": "hidden layers", "bic_threshold": "BIC threshold", "low_weight_cap": "cap"}[one.factor]),
            Cell(f"{one.setting:g}", one.setting), share_cell(one.open, one.layers), number_cell(agreed),
            Cell(f"{their[2]} of {their[3]}", (their[2], their[3]), paper=True) if their
            else Cell(UNKNOWN, (None, None), paper=True),
            paper_cell(100.0 * fact("switching-agreement", "agreement") if at_40 else math.nan),
        ))  # fmt: skip
    columns = (
        Column("factor", align="left"), Column("setting"),
        Column("layers whose gate is open", parts=("open", "layers")),
        Column("decides as the default", "%"), Column("paper: open", paper=True, parts=("open", "layers")),
        Column("paper: decides as the default", "%", paper=True),
    )  # fmt: skip
    told = (
        "An audit of the layers that the runs recorded: the gate opens where the BIC gain is above the threshold "
        f"({BIC:g}) and the weight of the lower component at most the cap ({CAP:g}). Nothing was trained again."
    )
    notes = () if audits else ("No recorded layers are at hand: only the records of the runs were kept.",)
    return Table("ablation-switching", "When the mixture branch opens", told, columns, tuple(rows), notes)


def branch_table(results: StudyResults, tasks: Sequence[TaskView]) -> Table:
    """Which branch decided, in layers and runs."""
    rows, told = [], facts()["open-gates"]
    for view in tasks:
        for arm in view.compared:
            own = [a for a in audits_of(results) if a.task == view.task and a.arm == arm]
            opened = [a for a in own if a.branch == "gmm"]
            runs = {a.seed for a in own}
            theirs = view.task == told.task and arm == view.reference
            quoted = [f"{told.values[w]:g} of {told.values[f'of {w}']:g}" if theirs else UNKNOWN
                      for w in ("layers", "repetitions")]  # fmt: skip
            rows.append((
                words(arm), words(view.task), share_cell(len(opened), len(own)),
                share_cell(len({a.seed for a in opened}), len(runs)), *(Cell(q, q, paper=True) for q in quoted),
            ))  # fmt: skip
    columns = (
        Column("arm", align="left"), Column("task", align="left"),
        Column("layers decided by the mixture", parts=("layers", "of")),
        Column("runs with such a layer", parts=("runs", "of")),
        Column("paper: layers", paper=True), Column("paper: repetitions", paper=True),
    )  # fmt: skip
    read = (
        "Where the mixture does not separate a layer's scores, its ranks decide (with the mixture only: nothing does)."
    )
    return Table("ablation-branches", "Which branch decided", read, columns, tuple(rows))


def gate_table(results: StudyResults) -> Table:
    """Rank correlations of scores with what damping does, run by run and pooled."""
    probes = probes_of(results)
    rows = [(words(f"seed {one.seed}"), *_correlations(one), *[paper_cell(math.nan)] * 2) for one in probes]
    if probes:
        theirs = [paper_cell(fact("gate-check", name)) for name in ("score", "gradient")]
        rows.append((words("pooled"), *_correlations(Probes.pooled(probes)), *theirs))
    columns = (
        Column("runs", align="left"), Column("probes"), Column("score and change of the loss"),
        Column("predicted and observed change of the gradient"), Column("paper: score", paper=True),
        Column("paper: gradient", paper=True),
    )  # fmt: skip
    told = (
        "One pre-activation at a time is scaled by 0.9 in the adapted state. Spearman rank correlations: of the score "
        "with the change of the loss, and of the first-order prediction with the change of the gradient in the "
        "unknowns."
    )
    notes = ("The paper pools 60 probes of two repetitions.",)
    if not probes:
        notes += ("No probes are at hand: they are made from the runs, and only the records were kept.",)
    return Table("ablation-gate-check", "Scores and what damping a neuron does", told, columns, tuple(rows), notes)


def _pair_columns(view: TaskView, paper: PaperTable | None, reference: str) -> list[tuple[Column, list[Cell]]]:
    arms = view.compared
    pairs: dict[str, Paired] = {p.other: p for p in view.pairs()}
    if not pairs:
        return []
    out = [
        (Column(f"{reference} lower in", parts=("wins", "pairs")),
         [share_cell(pairs[a].tally.wins, pairs[a].n) if a in pairs else Cell(UNKNOWN, (None, None)) for a in arms]),
        (Column("p, exact"), [p_cell(pairs[a].test.p) if a in pairs else number_cell(math.nan) for a in arms]),
        (Column("p (Holm)"), [p_cell(pairs[a].adjusted) if a in pairs else number_cell(math.nan) for a in arms]),
        (Column("median paired increase", "points"),
         [_increase(pairs[a]) if a in pairs else number_cell(math.nan) for a in arms]),
    ]  # fmt: skip
    known = paper.columns if paper else ()
    for name, what in (("wins", "lower in"), ("p", "p"), ("difference", "median paired increase")):
        if paper and f"{PARAMETER}.{name}" in known:
            values = [paper.row(a, view.task).get(f"{PARAMETER}.{name}", math.nan) for a in arms]
            shown = [
                Cell(f"{printed(v)} of {paper.n}", v, paper=True)
                if name == "wins" and not math.isnan(v)
                else paper_cell(v)
                for v in values
            ]
            out.append((Column(f"paper: {what}", "points" if name == "difference" else "", paper=True), shown))
    return out


def _increase(pair: Paired) -> Cell:
    return Cell(signed(-pair.difference), -pair.difference)


def _decay_columns(view: TaskView, paper: PaperTable | None) -> list[tuple[Column, list[Cell]]]:
    if paper is None or "decay" not in paper.columns:
        return []
    audits = [a for a in audits_of(view.results) if a.task == view.task]
    own = [summarise(mean_decay(a for a in audits if a.arm == arm).values()) for arm in view.compared]
    theirs: list[Quoted] = [paper.quoted(arm, "decay", view.task) for arm in view.compared]
    return [
        (Column("mean of 1 - gamma", parts=SPREAD), [spread_cell(s) for s in own]),
        (Column("paper: mean of 1 - gamma", paper=True, parts=PAIR), [quoted_cell(q) for q in theirs]),
    ]


def _notes(view: TaskView, paper: PaperTable | None) -> list[str]:
    if paper is None:
        return []
    n = f", {paper.n} repetition{'s' if paper.n != 1 else ''}" if paper.n else ", number of repetitions not stated"
    notes = [f"The paper's numbers are from its {paper.where}{n}: {paper.title}."]
    if view.results.profile != "paper":
        notes.append(f"Our runs have the effort of profile '{view.results.profile}', not the paper's.")
    missing = [arm for arm in view.compared if not paper.row(arm, view.task)]
    if missing:
        notes.append(f"The paper prints no numbers of: {', '.join(missing)}.")
    notes += [f"Beware of the paper's numbers: {c.words}" for c in contradictions() if paper.key in c.tables]
    return notes


def _correlations(one: Probes) -> tuple[Cell, ...]:
    return count_cell(one.count), number_cell(one.score_correlation, 4), number_cell(one.gradient_correlation, 4)
