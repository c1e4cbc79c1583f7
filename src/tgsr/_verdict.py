"""Did a transfer help? Judged against a random start at the same seed, from measured quantities only, never a truth.

At each seed both runs have the same readings, points, first guesses and budget. In this order:

1. a run that failed is worse than one that did not;
2. quality: training loss at the end and misfit of the held-out readings. If one says clearly better and the other
   clearly worse, or if the two runs fit alike but their estimates differ, the seed tells nothing;
3. cost, where quality is alike: closures until the loss is near the best final loss of all methods at that seed.

"Helped" means better in more than half of the seeds and worse in none, "hurt" the mirror image, all else "cannot tell".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

LOSS_RATIO = 1.1
"""A final loss is clearly larger beyond this ratio: by default training stops when epochs gain less than 0.1 %, so
two runs that end in the same minimum differ by far less than 10 %."""
HELD_OUT_ERRORS = 2.0
"""Standard errors of the paired difference of misfits over the held-out readings: chance exceeds them 1 time in 20."""
HELD_OUT_RATIO = 1.05
"""And the larger misfit must exceed the smaller one by this: pairing makes tiny differences certain, and a fit that is
off by a fifth of the noise everywhere, which no reading could show, has a misfit of 1.04 instead of 1."""
NEAR_BEST = 1.05
"""The loss at which a run has arrived, over the best final loss of all methods at its seed: half of LOSS_RATIO's
margin, so that runs of like quality have usually arrived."""
COST_RATIO = 1.5
"""Closures are clearly fewer at 2/3 of the other's: another draw of points moves them by some 10 %."""
AGREEMENT = 3.0
"""Combined standard errors within which two estimates agree: chance exceeds them 1 time in 370."""
TRUTH_MARGIN = 0.10
"""The truth calls a mean parameter error different when it is off the other's by more than this share."""
CHANCE = 1.0
"""And where at some seed the estimates differ by more combined standard errors than this: below it, the noise of the
readings decides whose error is the smaller one, and another draw of them would decide otherwise."""

HELPED, HURT, OPEN = "helped", "hurt", "cannot tell"
SAME = "no difference"


@dataclass(frozen=True)
class Measured:
    """What is measured of one run. NaN: not comparable or not known; an infinite cost: never arrived."""

    method: str
    seed: int
    ok: bool
    outcome: str
    loss: float = math.nan
    closures: int = 0
    cost: float = math.nan
    deviances: np.ndarray = field(default_factory=lambda: np.zeros(0))  # 2 rho(z) per held-out reading
    estimates: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # (value, standard error)

    @property
    def held_out(self) -> tuple[float, float]:
        """Misfit of the held-out readings, `mean 2 rho(z)` (about 1 for a good fit), and its standard error."""
        d = self.deviances
        return (float(d.mean()), _standard_error(d)) if d.size else (math.nan, math.nan)


@dataclass(frozen=True)
class SeedVerdict:
    """One seed: +1 better than the random start, -1 worse, 0 alike or open; by what; and in words."""

    seed: int
    score: int
    by: str  # "outcome", "quality", "cost", or "" where nothing is clear
    words: str


@dataclass(frozen=True)
class Verdict:
    """`helped`, `hurt` or `cannot tell`, with the reason in a sentence or two."""

    method: str
    verdict: str
    reason: str
    by: str
    seeds: tuple[SeedVerdict, ...]

    def __str__(self) -> str:
        return f"{self.method}: {self.verdict}. {self.reason}"


def judge_seed(run: Measured, base: Measured) -> SeedVerdict:
    """A run against the random start at the same seed."""
    if not (run.ok and base.ok):
        words = f"it ended {run.outcome}, the random start {base.outcome}"
        return SeedVerdict(run.seed, int(run.ok) - int(base.ok), "outcome" if run.ok != base.ok else "", words)
    loss, held = _clearly_lower(base.loss, run.loss, LOSS_RATIO), _clearly_closer(run, base)
    apart = disagreement(run, base)
    fits = ", ".join(text for text in (_ratio_words("loss", run.loss, base.loss), _held_words(run, base)) if text)
    if loss * held < 0:
        return SeedVerdict(run.seed, 0, "", f"loss and held-out readings contradict each other ({fits})")
    quality = loss or held
    if quality:
        wrong = "the random start's" if quality > 0 else "its"
        found = f"; {wrong} {apart[0]} is {apart[1]:.1f} combined standard errors away" if apart else ""
        return SeedVerdict(run.seed, quality, "quality", fits + found)
    if apart:
        gap = f"{apart[0]} {apart[1]:.1f} combined standard errors apart"
        words = f"both fit alike ({fits or 'nothing to compare'}) with {gap}"
        return SeedVerdict(run.seed, 0, "", words)
    return _judge_cost(run, base, fits)


def judge(method: str, pairs: Sequence[tuple[Measured, Measured]]) -> Verdict:
    """The verdict over seeds on one method; `pairs` are (its run, the random start's run) per seed."""
    seeds = tuple(judge_seed(run, base) for run, base in pairs)
    better, worse, n = (sum(s.score > 0 for s in seeds), sum(s.score < 0 for s in seeds), len(seeds))
    verdict = HELPED if 2 * better > n and not worse else HURT if 2 * worse > n and not better else OPEN
    tally = [("better", better), ("worse", worse)][:: -1 if verdict == HURT else 1]
    counts = (
        f"clearly {tally[0][0]} in {tally[0][1]} of {n} seed{'s' if n > 1 else ''} and {tally[1][0]} in {tally[1][1]}"
    )
    if verdict == OPEN:
        reason = f"{_capital(counts)}. " + "; ".join(f"seed {s.seed}: {s.words}" for s in seeds)
        by = ""
    else:
        deciding = [s for s in seeds if s.score]
        by = max(("outcome", "quality", "cost"), key=lambda kind: sum(s.by == kind for s in deciding))
        reason = _reason(by, [p for p, s in zip(pairs, seeds, strict=True) if s.by == by], counts)
    weak = " One seed is one draw of chance, so this is weak: use 3 seeds or more." if n == 1 else ""
    return Verdict(method, verdict, reason + "." + weak, by, seeds)


def disagreement(run: Measured, other: Measured) -> tuple[str, float] | None:
    """The unknown on which two runs differ most, and by how many combined errors, if by more than AGREEMENT."""
    name, size = farthest(run, other)
    return (name, size) if size > AGREEMENT else None


def farthest(run: Measured, other: Measured) -> tuple[str, float]:
    """The unknown with the largest difference in combined standard errors (NaN where no errors are known)."""
    found = ("", math.nan)
    for name in [each for each in run.estimates if each in other.estimates]:
        (a, sa), (b, sb) = run.estimates[name], other.estimates[name]
        combined = math.hypot(sa, sb)
        if not (math.isfinite(combined) and combined > 0 and math.isfinite(a - b)):
            continue
        size = abs(a - b) / combined
        if not size <= found[1]:
            found = (name, size)
    return found


def truth_says(errors: Sequence[float], base: Sequence[float], apart: Sequence[float] = ()) -> str:
    """What mean parameter errors over seeds say: for evaluation only, the verdict never sees it.

    `apart` is by how many combined standard errors the estimates differ at each seed; NaN where that is not known.
    """
    if len(apart) and max(apart) <= CHANCE and not any(map(math.isnan, apart)):
        return SAME
    mine, other = float(np.mean(errors)), float(np.mean(base))
    if mine < (1.0 - TRUTH_MARGIN) * other:
        return HELPED
    return HURT if mine > (1.0 + TRUTH_MARGIN) * other else SAME


def _judge_cost(run: Measured, base: Measured, fits: str) -> SeedVerdict:
    """Quality is alike: who arrived sooner? A run that never arrived costs at least what it has spent."""
    alike = f"alike in quality{f' ({fits})' if fits else ''}"
    if math.isnan(run.cost) or math.isnan(base.cost):
        return SeedVerdict(run.seed, 0, "", f"{alike}; the cost of getting there cannot be compared")
    mine, other = _least_cost(run), _least_cost(base)
    score = 0
    if math.isfinite(base.cost) and mine >= COST_RATIO * other:
        score = -1
    elif math.isfinite(run.cost) and other >= COST_RATIO * mine:
        score = 1
    words = f"{alike}, {_cost_words(run.cost)} closures against {_cost_words(base.cost)}"
    return SeedVerdict(run.seed, score, "cost" if score else "", words)


def _least_cost(run: Measured) -> float:
    return run.cost if math.isfinite(run.cost) else float(run.closures)


def _clearly_lower(base: float, run: float, ratio: float) -> int:
    """+1 where `run` is clearly below `base`, -1 where clearly above, 0 else and where either is not known."""
    return int(run * ratio < base) - int(base * ratio < run)


def _clearly_closer(run: Measured, base: Measured) -> int:
    """The same of held-out readings, paired: large against its standard error, and large enough to matter."""
    if run.deviances.size < 2:
        return 0
    difference = run.deviances - base.deviances
    if abs(difference.mean()) <= HELD_OUT_ERRORS * _standard_error(difference):
        return 0
    return _clearly_lower(base.held_out[0], run.held_out[0], HELD_OUT_RATIO)


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan


def _reason(by: str, pairs: Sequence[tuple[Measured, Measured]], counts: str) -> str:
    if by == "outcome":
        return f"One of the two failed where the other did not: {counts}"
    if by == "cost":
        spent = [math.log(max(_least_cost(a), 1.0) / max(_least_cost(b), 1.0)) for a, b in pairs]
        return f"It reached the same quality with {_median(spent)} times the closures (median), {counts}"
    losses = [math.log(a.loss / b.loss) for a, b in pairs if a.loss > 0 and b.loss > 0]
    held = [math.log(a.held_out[0] / b.held_out[0]) for a, b in pairs if a.held_out[0] > 0 and b.held_out[0] > 0]
    parts = [
        f"{what} {_median(logs)} times" for what, logs in (("a loss", losses), ("a held-out misfit", held)) if logs
    ]
    first = f"At the same budget it ended with {' and '.join(parts)} the random start's (median), {counts}"
    apart = [found for a, b in pairs if (found := disagreement(a, b))]
    if not apart:
        known = not any(math.isnan(farthest(a, b)[1]) for a, b in pairs)
        return f"{first}; the estimates agree" if known else first
    name, size = max(apart, key=lambda each: each[1])
    return f"{first}; {name} differs by up to {size:.0f} combined standard errors, and the worse fit is the wrong one"


def _median(logs: Sequence[float]) -> str:
    return f"{math.exp(float(np.median(logs))):.3g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ratio_words(what: str, mine: float, other: float) -> str:
    return "" if math.isnan(mine) or math.isnan(other) else f"{what} {mine:.3g} against {other:.3g}"


def _held_words(run: Measured, base: Measured) -> str:
    return _ratio_words("held-out misfit", run.held_out[0], base.held_out[0])


def _cost_words(cost: float) -> str:
    return f"{cost:.0f}" if math.isfinite(cost) else "never enough"
