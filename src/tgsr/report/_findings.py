"""Answers for the first screen: what the numbers of a study say to a reader's questions, and where they say nothing.

Every sentence follows from the tables. A difference is called one only where the paired test, adjusted for all
comparisons made, is below 0.05; otherwise the answer is that the study cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tgsr.report._findings_cost import contributed, cost, limit, solver
from tgsr.report._findings_paper import against_paper
from tgsr.report._numbers import interval, num, signed
from tgsr.report._study_tables_pairs import NEEDED
from tgsr.report._table import Finding as Finding
from tgsr.report._task_view import PARAMETER, TaskView, median_of, views
from tgsr.study._negative_transfer import BASE, NegativeTransfer
from tgsr.study._pairs import Paired
from tgsr.study._results import StudyResults
from tgsr.study._signed_rank import SIGNIFICANT

BEST = "Which method recovers the parameters best here?"
HURT = "Did transfer hurt?"
FOUND = "What did the runs find?"
STATE = "Is the study complete?"
AGREE_SE = 2.0  # standard errors from the middle, within which runs agree


def findings(results: StudyResults) -> tuple[Finding, ...]:
    """Task by task, the questions in the order in which a reader asks them."""
    found = list(unfinished(results))
    for view in views(results):
        found += task_findings(view)
    return tuple(found)


def task_findings(view: TaskView) -> list[Finding]:
    """The questions that can be asked of a task; those that its runs cannot answer are answered with that."""
    first = [best_method(view), *hurt(view)] if view.has_truth else [estimates(view)]
    return [*first, *limit(view), *contributed(view), *cost(view), *solver(view), *against_paper(view)]


def unfinished(results: StudyResults) -> Iterable[Finding]:
    """Said before anything else: trials that have no result yet, and runs that failed."""
    if results.pending:
        n, of = len(results.pending), len(results.pending) + len(results.records)
        tasks = ", ".join(dict.fromkeys(p.task for p in results.pending))
        yield Finding("", STATE, f"No: {n} of {of} runs have no result yet; everything below may change.",
                      f"They belong to {tasks}. Run the study again to finish it.", "open")  # fmt: skip
    elif not results.records:
        yield Finding("", STATE, "There is nothing to report: the study has no runs.", "", "open")


def best_method(view: TaskView) -> Finding:
    """The method with the lowest median error, how far ahead it is, and whether chance explains it."""
    medians = {arm: view.summary(arm).median for arm in view.compared}
    known = {arm: value for arm, value in medians.items() if math.isfinite(value)}
    if not known:
        return Finding(view.task, BEST, "None: in the median every method failed.", _failures(view), "bad")
    best = min(known, key=lambda arm: (known[arm], view.summary(arm).finite_mean))
    sample = view.summary(best)
    own = f"{best} has a median parameter error of {num(sample.median)} % over {_seeds(sample.n)}"
    if not math.isnan(sample.median_low):
        own += f" (95 % interval {interval(sample.median_low, sample.median_high)})"
    if len(medians) == 1:
        answer = f"Only {best} was run: there is nothing to compare it with."
        return Finding(view.task, BEST, answer, " ".join([f"{own}.", _failures(view)]).strip(), "open")
    pairs = view.pairs(PARAMETER, best)
    return _compared(view, best, own, medians, pairs)


def _compared(view: TaskView, best: str, own: str, medians: dict[str, float], pairs: tuple[Paired, ...]) -> Finding:
    ahead = [p for p in pairs if p.adjusted < SIGNIFICANT and p.test.effect > 0]
    level = [p for p in pairs if p not in ahead]
    second = min((arm for arm in medians if arm != best), key=lambda arm: medians[arm])
    behind = (
        f"{second} with {num(medians[second])} %"
        if math.isfinite(medians[second])
        else f"{second}, which mostly failed"
    )
    detail = [f"{own}; next is {behind}{_factor(medians[best], medians[second])}."]
    rival = next((p for p in pairs if p.other == second), None)
    if rival is not None:
        detail.append(pair_sentence(rival))
    few = bool(pairs) and max(p.test.used for p in pairs) < NEEDED
    if not pairs:
        answer, tone = f"Cannot tell: {best} is lowest, but no other method shares a seed with it.", "open"
    elif not level:
        answer = f"{best}, and beyond chance: it is better than each of the other {len(pairs)}."
        tone = "good"
        detail.append(f"The largest Holm-adjusted p among them is {num(max(p.adjusted for p in pairs))}.")
    elif few:
        n = max(p.test.used for p in pairs)
        answer = f"Cannot tell: {best} is lowest here, but {_seeds(n)} cannot show it."
        detail.append(f"With {_seeds(n)} the smallest possible p is {num(2.0 ** (1 - n) if n else 1.0)}; "
                      f"it takes {NEEDED} for p < {SIGNIFICANT}.")  # fmt: skip
        tone = "open"
    elif ahead:
        answer = f"{best} is lowest, but chance could have put it before {_listed([p.other for p in level])}."
        detail.append(
            f"Beyond chance it is better than {_listed([p.other for p in ahead], 12)} (p after Holm < {SIGNIFICANT})."
        )
        tone = "neutral"
    else:
        answer, tone = f"Cannot tell: {best} is lowest, but not beyond chance against any other.", "open"
    detail += [s for s in (_other_mean(view, best), _chosen_late(best, view), _failures(view)) if s]
    return Finding(view.task, BEST, answer, " ".join(detail), tone)


def pair_sentence(pair: Paired) -> str:
    """A comparison in one sentence."""
    n = f"Seed by seed {pair.arm} is lower than {pair.other} in {pair.tally.wins} of {pair.n}"
    n += f" (and equal in {pair.tally.ties})" if pair.tally.ties else ""
    middle = f", median difference {signed(pair.difference)} points"
    middle += f" [{interval(pair.low, pair.high)}]" if not math.isnan(pair.low) else ""
    return f"{n}{middle}, p = {num(pair.test.p)}, after Holm {num(pair.adjusted)}."


def hurt(view: TaskView) -> Iterable[Finding]:
    """Events of negative transfer, the reference's and everyone's."""
    if not view.bases and view.ablation:
        return
    if not view.bases:
        yield Finding(view.task, HURT, f"Cannot tell: the study has no arm '{BASE}' to compare with.",
                      "Negative transfer is counted against a random start at the same seed.", "open")  # fmt: skip
        return
    events = {one.arm: one for one in view.negative_transfer}
    if not events:
        yield Finding(
            view.task, HURT, "Cannot tell: nothing was transferred at a seed that scratch has too.", "", "open"
        )
        return
    leading = events.get(view.reference) or next(iter(events.values()))
    told = []
    others = [f"{one.arm} {one.events} of {one.n}{f' ({one.masked} masked)' if one.masked else ''}"
              for one in events.values() if one is not leading]  # fmt: skip
    told += [f"The others: {'; '.join(others)}."] if others else []
    pairs = {arm: p for arm in events if (p := view.against_base(arm)) is not None}
    worse = [arm for arm, p in pairs.items() if p.test.p < SIGNIFICANT and p.test.effect < 0]
    better = [arm for arm, p in pairs.items() if p.test.p < SIGNIFICANT and p.test.effect > 0]
    told += [f"Worse than scratch beyond chance (unadjusted p < {SIGNIFICANT}): {_listed(worse, 12)}."] if worse else []
    told += [f"Better than scratch beyond chance: {_listed(better, 12)}."] if better else []
    if max(one.n for one in events.values()) < NEEDED:
        told.append(f"With fewer than {NEEDED} seeds none of this can be told from chance.")
    if leading.ties == leading.n:
        answer, tone = (
            f"Cannot tell: {leading.arm} and scratch did equally at every seed; where both fail, neither hurts.",
            "open",
        )
    else:
        answer = f"{leading.arm} is worse than scratch at {leading.events} of {_seeds(leading.n)}{_masked(leading)}."
        bad = leading.arm in worse or 2 * leading.events > leading.n
        tone = "bad" if bad else "open" if leading.n < NEEDED else "neutral" if leading.events else "good"
    yield Finding(view.task, HURT, answer, " ".join(told), tone)


def estimates(view: TaskView) -> Finding:
    """Without a truth: the values, and whether methods and seeds agree."""
    parts, sure = [], True
    for name in view.unknowns:
        runs = [r for r in view.records if r.ok and name in r.unknowns]
        values = [r.unknowns[name].value for r in runs]
        errors = [r.unknowns[name].se for r in runs if r.unknowns[name].identifiable]
        errors = [se for se in errors if math.isfinite(se)]
        if not values:
            continue
        unit = f" {runs[0].unknowns[name].unit}" if runs[0].unknowns[name].unit else ""
        middle, low, high = median_of(values), min(values), max(values)
        ends = f" ({num(low, 4)} to {num(high, 4)} in {len(values)} runs)" if len(values) > 1 else ""
        told = f"{name} = {num(middle, 4)}{unit}{ends}"
        if not errors:
            told += ", not identifiable from these readings"
        else:
            told += f", standard error {num(median_of(errors))}"
            sure = sure and max(middle - low, high - middle) <= AGREE_SE * median_of(errors)
        parts.append(told)
    if not parts:
        return Finding(view.task, FOUND, "Nothing: no run has estimates.", _failures(view), "bad")
    answer = "Which method is best cannot be told: no truth is known. " + "; ".join(parts) + "."
    agree = (
        "All runs lie within two standard errors of the middle." if sure
        else "Runs differ by more than their standard errors say: trust the spread, not the standard errors."
    )  # fmt: skip
    return Finding(
        view.task, FOUND, answer, " ".join(filter(None, [agree, _failures(view)])), "neutral" if sure else "open"
    )


def _masked(one: NegativeTransfer) -> str:
    if one.masked is None or not one.events:
        return ""
    if not one.masked:
        return ", and the field is worse there too"
    some = (
        "the field does not show it"
        if one.masked == one.events
        else f"at {one.masked} of them the field does not show it"
    )
    return f"; {some}"


def _factor(best: float, second: float) -> str:
    if best > 0 and math.isfinite(second) and second > best:
        return f", {num(second / best)} times as much"
    return ""


def _other_mean(view: TaskView, best: str) -> str:
    means = {arm: view.summary(arm).mean for arm in view.compared}
    lowest = min(means, key=lambda arm: means[arm])
    if lowest == best or not math.isfinite(means[lowest]):
        return ""
    mine = num(means[best]) if math.isfinite(means[best]) else "infinite, as runs failed"
    return f"By the mean, {lowest} is lowest ({num(means[lowest])} %; {best}: {mine})."


def _chosen_late(best: str, view: TaskView) -> str:
    if best == view.reference:
        return ""
    return f"{best} was picked after seeing the results, which makes its p-values look better than they are."


def _failures(view: TaskView) -> str:
    failed = {arm: view.summary(arm) for arm in view.arms}
    told = [f"{arm} {s.failed} of {s.n}" for arm, s in failed.items() if s.failed]
    return f"Runs that failed, counted as infinite: {', '.join(told)}." if told else ""


def _seeds(n: int) -> str:
    return f"{n} seed" if n == 1 else f"{n} seeds"


def _listed(names: list[str], most: int = 4) -> str:
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
