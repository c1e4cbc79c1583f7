"""Arms in pictures: each keeps its colour, dash and marker through a report; and which arms belong side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tgsr.report._style import DASHES, INK, PALETTE
from tgsr.study._pairs import arms_of, runs_of, tasks_of
from tgsr.study.paper import Quoted, paper_tables, results_table, tables_of_study

if TYPE_CHECKING:
    from tgsr.study._record import Record
    from tgsr.study._results import StudyResults

STAND_OUT = PALETTE[1]
COLOURS = (INK, *(colour for colour in PALETTE if colour != STAND_OUT))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h", "p")
# Methods that keep their look from report to report.
FIXED = (
    "scratch", "full", "lightweight", "partial", "tl-gpinn", "bitfit", "l2-sp", "sfp", "adapt-only", "random-decay",
    "random-reset", "score-shuffled", "magnitude-decay", "lora", "linear-head", "grow",
)  # fmt: skip
MOST_ROWS = 16
UNKNOWN = Quoted(math.nan)


@dataclass(frozen=True)
class ArmStyle:
    """How an arm is drawn everywhere. Colour, dash and marker change together: none of them has to be seen."""

    arm: str
    number: int  # in the order of the records; marks carry it
    colour: str
    dash: Any
    marker: str
    stands_out: bool = False  # the arm that others are compared with

    @property
    def line(self) -> dict[str, Any]:
        """For a curve."""
        width, above = (2.3, 5) if self.stands_out else (1.4, 3)
        return {"color": self.colour, "linestyle": self.dash, "linewidth": width, "zorder": above}

    @property
    def dot(self) -> dict[str, Any]:
        """For a point that stands alone."""
        size = 8.0 if self.stands_out else 5.0
        return {"color": self.colour, "marker": self.marker, "linestyle": "none", "markersize": size}


def arm_styles(results: StudyResults) -> dict[str, ArmStyle]:
    """The look of every arm of a study, by its label."""
    arms = arms_of(results.records)
    leading = {reference_arm(results, task) for task in tasks_of(results.records)}
    known = {arm: FIXED.index(arm) for arm in arms if arm in FIXED}
    free = iter(n for n in range(len(FIXED) + len(arms)) if n not in known.values())
    twins = _twins(results)
    styles: dict[str, ArmStyle] = {}
    for number, arm in enumerate(arms):
        if arm in twins and twins[arm] in styles:
            styles[arm] = replace(styles[twins[arm]], arm=arm, number=number, dash=DASHES[2], stands_out=False)
            continue
        if arm in leading and arm not in known:
            styles[arm] = ArmStyle(arm, number, STAND_OUT, "-", "*", True)
            continue
        n = known[arm] if arm in known else next(free)
        colour, dash = COLOURS[n % len(COLOURS)], DASHES[(n + n // 12) % len(DASHES)]
        styles[arm] = ArmStyle(arm, number, colour, dash, MARKERS[n % len(MARKERS)])
    return styles


def _twins(results: StudyResults) -> dict[str, str]:
    """Arms with fewer readings, and the arm that is otherwise the same: they share a colour."""
    found: dict[str, str] = {}
    for task in tasks_of(results.records):
        first = {arm: first_run(results.records, task, arm) for arm in arms_of(results.records, task)}
        for arm, run in first.items():
            same = [a for a, r in first.items() if (r.method, dict(r.options)) == (run.method, dict(run.options))]
            most = max(same, key=lambda a: first[a].observations)
            if run.observations < first[most].observations:
                found.setdefault(arm, most)
    return found


def reference_arm(results: StudyResults, task: str) -> str:
    """The arm that others are compared with: the paper's in a shipped study, else tgsr as it is, else the first one."""
    arms = arms_of(results.records, task)
    for table in tables_of_study(results.name):
        if table.reference in arms and table.task in ("", task):
            return table.reference
    first = {arm: first_run(results.records, task, arm) for arm in arms}
    most = max((run.observations for run in first.values()), default=0)
    for want in (lambda r: not r.options and r.observations == most, lambda r: True):
        for arm, run in first.items():
            if run.method == "tgsr" and want(run):
                return arm
    return arms[0] if arms else ""


def first_run(records: Iterable[Record], task: str, arm: str) -> Record:
    """A run of the arm: they all share method, options and number of readings."""
    return next(iter(runs_of(records, task, arm).values()))


def main_arms(results: StudyResults, task: str) -> tuple[str, ...]:
    """The arms with all the readings; of very many only methods as they are: variants have pictures of their own."""
    first = {arm: first_run(results.records, task, arm) for arm in arms_of(results.records, task)}
    most = max((run.observations for run in first.values()), default=0)
    full = [arm for arm, run in first.items() if run.observations == most]
    plain_ones = [arm for arm in full if not first[arm].options]
    return tuple(plain_ones if len(full) > MOST_ROWS and len(plain_ones) > 1 else full)


def in_groups(arms: Sequence[str], leading: str, most: int = 5) -> list[tuple[str, ...]]:
    """The arms in groups of about the same size, at most `most`, the leading one in every group."""
    others = [arm for arm in arms if arm != leading]
    lead = (leading,) if leading in arms else ()
    count = max(1, math.ceil(len(others) / most))
    size = math.ceil(len(others) / count) if others else 1
    return [(*others[i : i + size], *lead) for i in range(0, max(len(others), 1), size)]


def paper_number(results: StudyResults, task: str, arm: str, column: str) -> Quoted:
    """What the paper prints for an arm; not known where it prints nothing, or where the arm is another than its."""
    for table in tables_of_study(results.name):
        if table.row(arm, task) and (found := table.quoted(arm, column, task)).known:
            return found
    run = first_run(results.records, task, arm)
    if run.options or run.observations != 1000:
        return UNKNOWN
    local = paper_tables()["pe_local_metrics"]
    for table in (results_table(task), local if task == local.task else None):
        if table is not None and (found := table.quoted(run.method, column)).known:
            return found
    return UNKNOWN
