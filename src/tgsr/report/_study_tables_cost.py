"""What every method cost: closures, seconds, and the stages before main training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tgsr.report._numbers import UNKNOWN, count_cell, num, number_cell, paper_cell, signed
from tgsr.report._table import Cell, Column, Table, words
from tgsr.report._task_view import TaskView, median_of
from tgsr.study._record import Record
from tgsr.study.paper import contradictions, facts, paper_tables, results_table

FULL = "full"
MEGABYTE = 1e6
MAIN = "main"
RANGE = ("median", "smallest", "largest")
COSTS = "cost"
ORDER = ("adaptation", "scoring", "correction")  # of the stages; main training, which is what is left, comes last


def cost_tables(tasks: Sequence[TaskView]) -> list[Table]:
    """Of all tasks."""
    found = [cost_table(tasks), stages_table(tasks), sources_table(tasks)]
    return [table for table in found if table is not None]


def cost_table(tasks: Sequence[TaskView]) -> Table:
    """Closures used and allowed, seconds, and the seconds over those of full fine-tuning."""
    columns = (
        Column("method", align="left"), Column("task", align="left"), Column("runs"),
        Column("closures used, median (range)", parts=RANGE), Column("closures allowed", align="right"),
        Column("seconds, median (range)", "s", parts=RANGE), Column("more than full", "%"),
        Column("paper: seconds", "s", paper=True), Column("paper: more than full", "%", paper=True),
    )  # fmt: skip
    rows = []
    for view in tasks:
        full = _seconds(view.runs(FULL).values()) if FULL in view.arms else []
        for arm in view.arms:
            runs = list(view.runs(arm).values())
            seconds, closures = _seconds(runs), [r.closures for r in runs if r.closures]
            more = _more(median_of(seconds), median_of(full)) if arm != FULL else math.nan
            named = view.paper_arm(arm)
            rows.append((
                words(arm), words(view.task), count_cell(len(runs)), _range_cell(closures),
                _allowed_cell(runs), _range_cell(seconds),
                Cell(UNKNOWN if math.isnan(more) else signed(round(more, 1)), more),
                paper_cell(_their_seconds(view, named)), paper_cell(_their_overhead(view, named)),
            ))  # fmt: skip
    told = (
        "A closure is one evaluation of the loss and its gradient, or its equivalent; adaptation and scoring count. "
        "Under the budget 'matched' every method may spend the same closures; under 'paper' what comes before main "
        "training is on top. Seconds are the wall clock of this machine, with what a process compiles in its first run."
    )
    notes = [f"The paper contradicts itself here: {paper_words}" for paper_words in _cost_contradiction(tasks)]
    return Table("cost-methods", "Closures and seconds", told, columns, tuple(rows), tuple(notes))


def stages_table(tasks: Sequence[TaskView]) -> Table | None:
    """Seconds, closures and memory of every stage before main training, beside the paper's."""
    paper = paper_tables()[COSTS]
    rows = []
    for view in tasks:
        for arm in view.arms:
            runs = [r for r in view.runs(arm).values() if r.stages]
            stages = in_order(name for r in runs for name in r.stages)
            if len(stages) < 2:
                continue
            for stage in stages:
                seconds, closures, memory = (
                    [r.stages[stage][what] for r in runs if what in r.stages.get(stage, {})]
                    for what in ("seconds", "closures", "memory")
                )
                first = view.first(arm)
                same = first.method == "tgsr" and not first.options and view.task == paper.task
                theirs = [paper.quoted(stage if same else "", what).value for what in ("seconds", "memory")]
                rows.append((
                    words(arm), words(view.task), words(stage), number_cell(median_of(seconds)),
                    number_cell(median_of(closures)), number_cell(median_of(memory) / MEGABYTE),
                    *map(paper_cell, theirs),
                ))  # fmt: skip
    if not rows:
        return None
    columns = (
        Column("method", align="left"), Column("task", align="left"), Column("stage", align="left"),
        Column("seconds, median", "s"), Column("closures, median"), Column("peak memory, median", "MB"),
        Column("paper: seconds", "s", paper=True), Column("paper: memory", "MB", paper=True),
    )  # fmt: skip
    told = (
        "Peak memory is that of the whole process up to the end of the stage. The paper's numbers are of its own "
        f"machine ({paper.where}, about)."
    )
    return Table("cost-stages", "Stages", told, columns, tuple(rows))


def sources_table(tasks: Sequence[TaskView]) -> Table | None:
    """The source runs, which all transfers of a seed share."""
    rows = []
    for view in tasks:
        runs = [r for r in view.results.records if r.role == "source" and r.task == view.task]
        for arm in dict.fromkeys(r.arm for r in runs):
            own = [r for r in runs if r.arm == arm]
            failed = sum(not r.ok for r in own)
            errors = [r.errors["parameter"] for r in own if "parameter" in r.errors]
            rows.append((
                words(view.task), words(arm), count_cell(len(own)), count_cell(failed),
                number_cell(median_of(errors)), _range_cell([r.closures for r in own if r.closures]),
                _range_cell(_seconds(own)),
            ))  # fmt: skip
    if not rows:
        return None
    columns = (
        Column("task", align="left"), Column("source", align="left"), Column("runs"), Column("failed"),
        Column("parameter error, median", "%"), Column("closures used, median (range)", parts=RANGE),
        Column("seconds, median (range)", "s", parts=RANGE),
    )  # fmt: skip
    told = "One source run per task and seed, shared by all methods. Its cost is not in the costs of the methods."
    return Table("cost-sources", "Sources", told, columns, tuple(rows))


def _seconds(runs: Iterable[Record]) -> list[float]:
    return [r.seconds for r in runs if math.isfinite(r.seconds)]


def _more(seconds: float, full: float) -> float:
    return 100.0 * (seconds / full - 1.0) if full > 0 and math.isfinite(seconds) else math.nan


def _range_cell(values: Sequence[float]) -> Cell:
    if not values:
        return Cell(UNKNOWN, (None, None, None))
    low, middle, high = min(values), median_of(values), max(values)
    ends = "" if low == high else f" ({_short(low)} to {_short(high)})"
    return Cell(f"{_short(middle)}{ends}", (middle, low, high))


def _short(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else num(value)


def in_order(stages: Iterable[str]) -> list[str]:
    """Stages in the order in which they happen, each once."""
    found = dict.fromkeys(stages)
    known = [*ORDER, *(name for name in found if name not in (*ORDER, MAIN)), MAIN]
    return [name for name in known if name in found]


def allowed_words(runs: Iterable[Record]) -> str:
    """The closures that a budget let runs spend."""
    limits = sorted({r.allowed for r in runs if r.allowed})
    if not limits:
        return "no limit"
    return f"{limits[0]:,}" if len(limits) == 1 else f"{limits[0]:,} to {limits[-1]:,}"


def _allowed_cell(runs: Sequence[Record]) -> Cell:
    limits = sorted({r.allowed for r in runs if r.allowed})
    return Cell(allowed_words(runs), limits[0] if len(limits) == 1 else allowed_words(runs))


def _their_seconds(view: TaskView, named: str) -> float:
    table = results_table(view.task)
    return table.quoted(named, "seconds").value if table and named else math.nan


def _their_overhead(view: TaskView, named: str) -> float:
    return facts()["overhead"].values.get(view.task, math.nan) if named == "tgsr" else math.nan


def _cost_contradiction(tasks: Sequence[TaskView]) -> Iterable[str]:
    if any(view.task == paper_tables()[COSTS].task for view in tasks):
        yield from (c.words for c in contradictions() if c.key == "overhead-twice")
