"""The tables that say how sure a comparison is: paired tests, negative transfer, the statistical limit, the control."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from scipy import stats

from tgsr.report._numbers import (
    INTERVAL,
    SPREAD,
    UNKNOWN,
    count_cell,
    interval,
    num,
    number_cell,
    paper_cell,
    printed,
    share_cell,
    signed,
    spread_cell,
)
from tgsr.report._table import Cell, Column, Table, words
from tgsr.report._task_view import FIELD, PARAMETER, TaskView, named
from tgsr.study._limits import FAR, LEAK, Control, Limit
from tgsr.study._pairs import Paired
from tgsr.study._signed_rank import SIGNIFICANT
from tgsr.study.paper import PaperTable, paper_tables, tables_of_study, wilcoxon_table

EVENTS = "negative_transfer_frequency"
NEEDED = 6  # pairs: with fewer an exact p cannot be below 0.05
LITTLE = 2.0  # times smaller with readings than without: below, they added little

RULE = (
    f"An efficient estimator has a median of 0.67. Below {LEAK}: the answer also came from elsewhere than the readings "
    f"(conditions or a source term that contain it). Above {FAR:g}: the optimiser failed, not the readings."
)


def pair_tables(view: TaskView) -> list[Table]:
    """Paired comparisons of parameters and field, events, limits and the control: those that the study allows."""
    found: list[Table | None] = [paired_table(view, e, arm) for arm in view.references for e in (PARAMETER, FIELD)]
    found += [events_table(view), limits_table(view), controls_table(view)]
    return [table for table in found if table is not None]


def paired_table(view: TaskView, error: str, reference: str | None = None) -> Table | None:
    """The reference against every other method, seed by seed; None where there is nothing to pair."""
    pairs = view.pairs(error, reference)
    if not pairs:
        return None
    ours, paper = pairs[0].arm, _paper_pairs(view, pairs[0].arm, error)
    columns = [
        Column(f"{ours} against", align="left"), Column("pairs"), Column("wins"), Column("ties"), Column("losses"),
        Column("p, exact"), Column("p (Holm)"), Column("effect (rank-biserial)"),
        Column("median difference [95 %]", "points", parts=INTERVAL),
    ]  # fmt: skip
    columns += [Column("paper: wins", paper=True), Column("paper: p", paper=True)] if paper else []
    rows, left_out = [], []
    for pair in pairs:
        row = [words(pair.other), count_cell(pair.n), count_cell(pair.tally.wins), count_cell(pair.tally.ties),
               count_cell(pair.tally.losses), p_cell(pair.test.p), p_cell(pair.adjusted),
               Cell(signed(round(pair.test.effect, 3)), pair.test.effect), difference_cell(pair)]  # fmt: skip
        if paper:
            their = paper.row(view.paper_arm(pair.other), view.task)
            row += [_their_wins(paper, their, error), paper_cell(their.get(f"{error}.p", math.nan))]
        rows.append(tuple(row))
        if pair.only_arm or pair.only_other:
            sides = ((pair.arm, pair.only_arm), (pair.other, pair.only_other))
            left_out += [f"only {arm} has seed {named(seeds)}" for arm, seeds in sides if seeds]
    notes = [f"Left out of the pairs: {'; '.join(dict.fromkeys(left_out))}."] if left_out else []
    notes += list(_few_pairs(pairs))
    if paper:
        notes.append(f"The paper's wins and p are from its {paper.where}; its p are not adjusted.")
    what = "Parameter" if error == PARAMETER else error.capitalize()
    return Table(
        f"{view.key}-pairs-{error}{_suffix(view, ours)}",
        f"{what} errors, seed by seed: {ours} against every other method",
        f"A win is a strictly lower error of {ours} at the same seed, readings, points and source. p: exact two-sided "
        "Wilcoxon signed-rank test, then after Holm among the rows. Effect: +1 if lower in every pair, "
        f"{signed(-1.0)} if higher in every one. Difference: {ours} minus the other, its median with a bootstrap "
        f"interval; below zero is better. A p below {SIGNIFICANT} is bold.",
        tuple(columns), tuple(rows), tuple(notes),
    )  # fmt: skip


def events_table(view: TaskView) -> Table | None:
    """Where the parameters came out worse than from a random start, and whether the field showed it."""
    events = view.negative_transfer
    if not events:
        return None
    paper = paper_tables()[EVENTS] if view.paper else None
    known = bool(paper and any(paper.row(arm, view.task) for arm in paper.arms))
    columns = [Column("method", align="left"), Column("pairs"), Column("events"), Column("masked"), Column("wins"),
               Column("ties")]  # fmt: skip
    columns += [Column("paper: events", paper=True), Column("paper: masked", paper=True)] if known else []
    rows = []
    for one in events:
        row = [words(one.arm), count_cell(one.n), count_cell(one.events), count_cell(one.masked),
               count_cell(one.wins), count_cell(one.ties)]  # fmt: skip
        if paper and known:
            their = paper.row(view.paper_arm(one.arm), view.task)
            row += [paper_cell(their.get(name, math.nan)) for name in ("events", "masked")]
        rows.append(tuple(row))
    notes = ["In every row events + wins + ties are the number of pairs."]
    if known:
        notes.append("The paper's events do not agree with its own wins against scratch; see its contradictions.")
    return Table(
        f"{view.key}-events", "Did transfer hurt? Events of negative transfer against scratch",
        "An event is a seed at which the parameter error is higher than from scratch with as many readings. It is "
        "masked where the field error is not higher: the field does not show it. A run that failed where scratch did "
        "not is an event.",
        tuple(columns), tuple(rows), tuple(notes),
    )  # fmt: skip


def limits_table(view: TaskView) -> Table | None:
    """Error over the Cramér-Rao bound of the readings."""
    if not view.limits:
        return None
    columns = (
        Column("method", align="left"), Column("unknown", align="left"), Column("runs"),
        Column("bound, median", "%"), Column("error, median", "%"), Column("error / bound, median"),
        Column("what it says", align="left"),
    )  # fmt: skip
    rows = [
        (words(one.arm), words(one.unknown), count_cell(one.n), number_cell(one.bound), number_cell(one.error),
         number_cell(one.ratio), words(limit_words(one)))
        for one in view.limits
    ]  # fmt: skip
    return Table(
        f"{view.key}-limits", "The statistical limit",
        "The Cramér-Rao bound: no unbiased estimator that uses these readings alone has a smaller standard error. "
        f"{RULE}",
        columns, tuple(rows),
    )  # fmt: skip


def limit_words(one: Limit) -> str:
    """How to read error over bound."""
    if one.ratio > FAR:
        return "far above: the optimiser, not the readings, is the limit"
    if leaks(one):
        return "far below: the answer also came from elsewhere"
    if one.ratio < LEAK:
        return "below, which with so few seeds can be luck"
    return "near the limit of the readings"


def leaks(one: Limit) -> bool:
    """Whether a median ratio is too low for luck: P(half of n |N(0, 1)| are at most as large) < 0.05, and below 0.3."""
    below = math.erf(one.ratio / math.sqrt(2.0))
    luck = float(stats.binom.sf(math.ceil(one.n / 2) - 1, one.n, below))
    return one.ratio < LEAK and luck < SIGNIFICANT


def controls_table(view: TaskView) -> Table | None:
    """The same method with its readings and with none."""
    if not view.controls or not view.has_truth:
        return None
    columns = (
        Column("method", align="left"), Column("readings"), Column("with them, mean ± sd", "%", parts=SPREAD),
        Column("without, mean ± sd", "%", parts=SPREAD), Column("median without / with"),
        Column("lower with them in", parts=("wins", "pairs")), Column("p, exact"), Column("what it says", align="left"),
    )  # fmt: skip
    rows = [
        (words(one.paired.arm), count_cell(one.readings), spread_cell(one.with_readings), spread_cell(one.without),
         number_cell(one.gain), share_cell(one.paired.tally.wins, one.paired.n), p_cell(one.paired.test.p),
         words(control_words(view, one)))
        for one in view.controls
    ]  # fmt: skip
    return Table(
        f"{view.key}-controls", "What did the readings contribute? The control without any",
        "Parameter errors of the same methods with all readings taken away. Where nothing is lost, the conditions or "
        "the source term already contain the answer, and no accuracy can be credited to readings or method.",
        columns, tuple(rows),
    )  # fmt: skip


def control_words(view: TaskView, one: Control) -> str:
    """What the control says of a method."""
    if math.isinf(one.with_readings.median):
        return "nothing: the runs with readings failed"
    if one.gain >= LITTLE:
        return f"the readings make the error {_times(one.gain)} smaller"
    if one.gain <= 1.0 / LITTLE:
        return f"the readings make the error {_times(1.0 / one.gain) if one.gain else 'much'} larger"
    if far_from_limit(view, one.paired.arm):
        return "nothing: with or without them the optimiser is far from the limit"
    return "the readings hardly matter: the answer is there without them"


def far_from_limit(view: TaskView, arm: str) -> bool:
    """Whether the optimiser, not the readings, limits some unknown of an arm."""
    return any(one.ratio > FAR for one in view.limits if one.arm == arm)


def p_cell(p: float) -> Cell:
    """A p-value; bold where it is below the paper's criterion."""
    return Cell(num(p), p, best=p < SIGNIFICANT)


def difference_cell(pair: Paired) -> Cell:
    """The median paired difference with its interval."""
    exported = (pair.difference, pair.low, pair.high)
    if math.isnan(pair.low):
        return Cell(signed(pair.difference), exported)
    return Cell(f"{signed(pair.difference)} [{interval(pair.low, pair.high)}]", exported)


def _suffix(view: TaskView, arm: str) -> str:
    return "" if arm == view.reference else f"-{view.first(arm).observations}"


def _paper_pairs(view: TaskView, ours: str, error: str) -> PaperTable | None:
    own = [t for t in tables_of_study(view.results.name) if f"{error}.p" in t.columns and t.reference == ours]
    found = own[0] if own else (wilcoxon_table(view.task) if view.paper else None)
    return found if found and found.reference == ours and f"{error}.p" in found.columns else None


def _their_wins(paper: PaperTable, row: object, error: str) -> Cell:
    wins = row.get(f"{error}.wins", math.nan) if isinstance(row, dict) else math.nan
    if math.isnan(wins):
        return Cell(UNKNOWN, math.nan, paper=True)
    return Cell(f"{printed(wins)} of {paper.n}", wins, paper=True)


def _few_pairs(pairs: Sequence[Paired]) -> Iterable[str]:
    few = [p for p in pairs if p.test.used < NEEDED]
    if few:
        least = min(p.test.least_p for p in few)
        yield (f"With fewer than {NEEDED} pairs that differ, no exact p can be below {SIGNIFICANT}; the smallest "
               f"possible in the rows concerned is {num(least)}. They cannot show a difference.")  # fmt: skip


def _times(gain: float) -> str:
    return "infinitely many times" if math.isinf(gain) else f"{num(gain)} times"
