"""Findings about what stands behind an error: the statistical limit, the readings, the cost, and other ways there."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tgsr.report._numbers import num, signed
from tgsr.report._study_tables_cost import FULL, MAIN, allowed_words, in_order
from tgsr.report._study_tables_pairs import LITTLE, NEEDED, far_from_limit, leaks
from tgsr.report._table import Finding
from tgsr.report._task_view import TaskView, median_of
from tgsr.report._words import duration
from tgsr.study._limits import EFFICIENT, FAR, LEAK, Control, Limit
from tgsr.study._signed_rank import SIGNIFICANT
from tgsr.tasks import names as task_names

LIMIT = "What is the statistical limit?"
DATA = "What did the data contribute?"
COST = "What did it cost?"
SOLVER = "Would a conventional solver do?"
UNANIMOUS = 3  # seeds that all say the same are taken at their word, with p beside them


def best_arm(view: TaskView) -> str:
    """The arm with the lowest median error; the reference where none is known."""
    if not view.has_truth:
        return view.reference
    return min(view.compared, key=lambda arm: (view.summary(arm).median, view.summary(arm).finite_mean))


def limit(view: TaskView) -> Iterable[Finding]:
    """Error over bound of the best method, unknown by unknown."""
    if not view.has_truth:
        return
    best = best_arm(view)
    own = [one for one in view.limits if one.arm == best]
    if not own:
        yield Finding(view.task, LIMIT, "Not known: no Cramér-Rao bound was computed for these readings.", "", "open")
        return
    bounds = ", ".join(f"{one.unknown} {num(one.bound)} %" for one in own)
    if all(math.isinf(one.ratio) for one in own):
        answer = f"The Cramér-Rao bound of the readings is {bounds}, but in the median every method failed."
        yield Finding(view.task, LIMIT, answer, "", "bad")
        return
    ratios = ", ".join(f"{one.unknown} {num(one.ratio)}" for one in own)
    detail = (
        f"Median error over bound: {ratios}. An efficient estimator has {EFFICIENT:.2f}. Below {LEAK} the answer also "
        f"came from elsewhere than the readings (or, with few seeds, from luck); above {FAR:g} the optimiser failed, "
        "not the readings."
    )
    enough = all(one.n >= NEEDED for one in own)
    tone = "bad" if any(one.ratio > FAR or leaks(one) for one in own) else "good" if enough else "open"
    yield Finding(view.task, LIMIT, f"{_verdict(best, own)} Cramér-Rao bound of the readings: {bounds}.", detail, tone)


def _verdict(best: str, own: list[Limit]) -> str:
    far, leak = [o.unknown for o in own if o.ratio > FAR], [o.unknown for o in own if leaks(o)]
    parts = []
    if far:
        parts.append(f"{best} is far from what the readings allow for {', '.join(far)}: the optimiser is the limit.")
    if leak:
        parts.append(
            f"{best} is better than the readings allow for {', '.join(leak)}: the answer also came from elsewhere."
        )
    rest = [o.unknown for o in own if o.unknown not in (*far, *leak)]
    if rest:
        where = f" for {', '.join(rest)}" if far or leak else ""
        parts.append(f"{best} is about as good as the readings allow{where}.")
    return " ".join(parts)


def contributed(view: TaskView) -> Iterable[Finding]:
    """The control without readings."""
    if not view.has_truth:
        return
    if not view.controls and view.ablation:
        return
    if not view.controls:
        yield Finding(view.task, DATA, "Not tested: the control without readings was not run.",
                      "Add 0 to the study's observations to run it.", "open")  # fmt: skip
        return
    wanted = (best_arm(view), view.reference)
    one = next((c for arm in wanted for c in view.controls if c.paired.arm == arm), view.controls[0])
    with_, without = one.with_readings.median, one.without.median
    numbers = f"median parameter error {num(with_)} % with {one.readings:,} readings, {num(without)} % with none"
    test = f"lower with them in {one.paired.tally.wins} of {one.paired.n} seeds, p = {num(one.paired.test.p)}"
    others = [f"{c.paired.arm} {num(c.gain)}" for c in view.controls if c is not one]
    detail = [f"{one.paired.arm}: {test}."]
    detail += [f"Error without over error with, other methods: {', '.join(others)}."] if others else []
    answer, tone = _data_words(view, one)
    yield Finding(view.task, DATA, f"{answer} ({one.paired.arm}: {numbers}).", " ".join(detail), tone)


def _data_words(view: TaskView, one: Control) -> tuple[str, str]:
    t, n = one.paired.tally, one.paired.n
    sure = one.paired.test.p < SIGNIFICANT or (n >= UNANIMOUS and n in (t.wins, t.losses))
    if math.isinf(one.with_readings.median):
        return "Cannot tell: in the median the runs with readings failed", "open"
    if one.gain >= LITTLE:
        return (
            ("The readings carry the answer", "good")
            if sure
            else ("Much, it seems, but the seeds do not agree", "open")
        )
    if one.gain <= 1.0 / LITTLE:
        harm = "the error is smaller without any, so conditions or source term give the answer away"
        return (f"They did harm: {harm}", "bad") if sure else ("Harm, it seems, but the seeds do not agree", "open")
    if far_from_limit(view, one.paired.arm):
        return "Cannot tell: with or without them the error is far from what the readings allow", "open"
    return "Hardly anything: the answer is there without them, from conditions or source term", "bad"


def cost(view: TaskView) -> Iterable[Finding]:
    """Closures and seconds of a run, and what the leading method spends beyond full fine-tuning."""
    arm = best_arm(view)
    runs = list(view.runs(arm).values())
    seconds = [r.seconds for r in runs if math.isfinite(r.seconds)]
    closures = [r.closures for r in runs if r.closures]
    if not seconds:
        yield Finding(view.task, COST, "Not known: no run of the leading method ended by itself.", "", "open")
        return
    limit = f" of {allowed_words(runs)}" if any(run.allowed for run in runs) else ""
    spent = f"{num(median_of(closures))}{limit} closures" if closures else "closures not known"
    answer = f"A run of {arm} takes {duration(median_of(seconds))} and {spent} (medians)."
    detail, everyone = [], [r.seconds for r in view.records if math.isfinite(r.seconds)]
    if FULL in view.arms and arm != FULL:
        theirs = [r.seconds for r in view.runs(FULL).values() if math.isfinite(r.seconds)]
        full = median_of(theirs)
        if min(len(theirs), len(seconds)) >= UNANIMOUS and full > 0:  # with fewer, compiling decides
            detail.append(
                f"That is {signed(round(100 * (median_of(seconds) / full - 1), 1))} % in time against full fine-tuning."
            )
    before = [(n, s["seconds"]) for r in runs for n, s in r.stages.items() if n != MAIN]
    if before:
        stages = {n: median_of(s for m, s in before if m == n) for n in in_order(n for n, _ in before)}
        detail.append(f"Before main training: {', '.join(f'{n} {duration(s)}' for n, s in stages.items())}.")
    runs_ = f"All {len(view.records)} target runs" if len(view.records) > 1 else "The one target run"
    detail.append(f"{runs_} of this task: {duration(sum(everyone))}. Sources come on top.")
    yield Finding(view.task, COST, answer, " ".join(detail), "neutral")


def solver(view: TaskView) -> Iterable[Finding]:
    """The advice of docs/when-not.md, where it applies."""
    few = 0 < len(view.unknowns) <= 8
    if view.task in task_names():
        answer = (
            "Most likely, and faster: the unknowns are a few constants, and for given ones the equation can be solved."
        )
        detail = (
            "Least squares over a finite-difference or spectral solver takes from a fraction of a second to a few "
            "seconds and reaches the statistical limit. None was run here. See the page 'When not to use this'."
        )
        yield Finding(view.task, SOLVER, answer, detail, "neutral")
    elif few:
        answer = (
            "Perhaps: where the equation can be solved for given constants, try least squares over that solver first."
        )
        detail = "Networks earn their keep where nothing can be solved forward. See the page 'When not to use this'."
        yield Finding(view.task, SOLVER, answer, detail, "neutral")
