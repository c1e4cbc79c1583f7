"""Findings about the paper: does what it reports hold in this study? Said plainly, with both numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy import stats

from tgsr.report._numbers import num, printed, quoted_cell
from tgsr.report._table import Finding
from tgsr.report._task_view import PARAMETER, TaskView
from tgsr.study._pairs import Paired
from tgsr.study._signed_rank import SIGNIFICANT
from tgsr.study._statistics import summarise
from tgsr.study.paper import PaperTable, tables_of_study, wilcoxon_table

AGREE = "Does this agree with the paper?"
VERDICTS = {
    "confirmed": f"hold (p < {SIGNIFICANT})",
    "contradicted": "are contradicted",
    "reversed": "come out in the other order, within chance",
    "open": "come out in the same order, within chance",
}


@dataclass(frozen=True)
class Claim:
    """A comparison of the paper beside ours, from the side of its reference."""

    pair: Paired
    words: str  # what the paper prints
    better: bool  # its reference has the lower mean error
    wins: int | None  # of its reference, where it prints them
    n: int

    @property
    def verdict(self) -> str:
        """What our pairs say of the paper's order.

        'confirmed': the same order, p < 0.05. 'contradicted': the other order with p < 0.05, or fewer wins than the
        paper has by more than chance (Fisher's exact test on wins, p < 0.05). 'reversed': the other order, within
        chance. 'open': the same order, within chance.
        """
        same = self.pair.test.effect * (1.0 if self.better else -1.0)
        sure = self.pair.test.p < SIGNIFICANT
        if same > 0 and sure:
            return "confirmed"
        if (same < 0 and sure) or self.fewer_wins < SIGNIFICANT:
            return "contradicted"
        return "reversed" if same < 0 else "open"  # of no direction, too: nothing is told

    @property
    def fewer_wins(self) -> float:
        """P(so many fewer wins here than in the paper, if wins are as likely here as there); 1 where it prints none."""
        decided = self.pair.tally.wins + self.pair.tally.losses
        if self.wins is None or not decided:
            return 1.0
        here, there = (self.pair.tally.wins, decided), (self.wins, self.n)
        if here[0] * there[1] >= there[0] * here[1]:
            return 1.0
        table = [[here[0], here[1] - here[0]], [there[0], there[1] - there[0]]]
        return float(stats.fisher_exact(table).pvalue)  # type: ignore[attr-defined]


def against_paper(view: TaskView) -> Iterable[Finding]:
    """The paper's order of the methods against ours."""
    paper = _results(view)
    if paper is None or not view.has_truth:
        return
    claims, lowest = list(_claims(view, paper)), _lowest(view, paper)
    if not claims:
        if lowest:
            yield Finding(
                view.task, AGREE, "Cannot tell: no comparison of the paper was repeated here.", lowest, "open"
            )
        return
    by_verdict = {verdict: [c for c in claims if c.verdict == verdict] for verdict in VERDICTS}
    right, wrong = by_verdict["confirmed"], by_verdict["contradicted"]
    counts = ", ".join(f"{len(own)} {VERDICTS[verdict]}" for verdict, own in by_verdict.items() if own)
    counts = f"of {len(claims)} comparisons of {claims[0].pair.arm} in the paper that are repeated here, {counts}"
    if wrong:
        answer, tone = f"No: {counts}.", "bad"
    elif len(right) == len(claims):
        answer, tone = f"Yes: {counts}.", "good"
    else:
        answer, tone = f"{'In part' if right else 'Not shown'}: {counts}.", "open"
    detail = [lowest]
    detail += [_told(c) for c in (*wrong, *by_verdict["reversed"])]
    for verdict, heading in (("confirmed", "Holds against"), ("open", "Within chance against")):
        if by_verdict[verdict]:
            detail.append(f"{heading} {', '.join(c.pair.other for c in by_verdict[verdict])}.")
    yield Finding(view.task, AGREE, answer, " ".join([*detail, _effort(view)]).strip(), tone)


def _results(view: TaskView) -> PaperTable | None:
    own = [t for t in tables_of_study(view.results.name) if t.task in ("", view.task) and PARAMETER in t.columns]
    return own[0] if own else view.paper


def _claims(view: TaskView, paper: PaperTable) -> Iterable[Claim]:
    ours = view.reference
    theirs = _name(view, paper, ours)
    if not paper.quoted(theirs, PARAMETER).known or theirs != (paper.reference or "tgsr"):
        return
    tests = paper if f"{PARAMETER}.p" in paper.columns else (None if view.ablation else wilcoxon_table(view.task))
    for pair in view.pairs(PARAMETER, ours):
        name = _name(view, paper, pair.other)
        mine, other = paper.quoted(theirs, PARAMETER), paper.quoted(name, PARAMETER)
        if other.known:
            row = tests.row(name, view.task) if tests else {}
            p, wins = row.get(f"{PARAMETER}.p", math.nan), row.get(f"{PARAMETER}.wins", math.nan)
            told = f"{printed(mine.value)} against {printed(other.value)} %"
            told += f", {wins} of {tests.n} wins" if tests and not math.isnan(wins) else ""
            told += f", p = {printed(p)}" if not math.isnan(p) else ", no test printed"
            better = float(mine.value) < float(other.value)
            yield Claim(pair, told, better, None if math.isnan(wins) else int(wins), tests.n if tests else 0)


def _name(view: TaskView, paper: PaperTable, arm: str) -> str:
    """What the table calls an arm: its label in an ablation, the method with default options elsewhere."""
    return arm if view.ablation and paper.row(arm, view.task) else view.paper_arm(arm)


def _told(claim: Claim) -> str:
    pair = claim.pair
    means = f"{num(summarise(pair.ours).mean)} against {num(summarise(pair.theirs).mean)} % on average"
    ours = f"{means}, {pair.tally.wins} of {pair.n} wins"
    fewer = f"; so many fewer wins have p = {num(claim.fewer_wins)}" if claim.fewer_wins < SIGNIFICANT else ""
    start = "Contradicted" if claim.verdict == "contradicted" else "The other order"
    return (
        f"{start}: {pair.arm} and {pair.other}, here {ours}, p = {num(pair.test.p)}; in the paper {claim.words}{fewer}."
    )


def _lowest(view: TaskView, paper: PaperTable) -> str:
    """Whose mean parameter error is lowest, here and there, among the methods that both have."""
    both = [(arm, paper.quoted(_name(view, paper, arm), PARAMETER), view.summary(arm).mean) for arm in view.compared]
    both = [(arm, theirs, ours) for arm, theirs, ours in both if theirs.known]
    if len(both) < 2:
        return ""
    there, here = min(both, key=lambda b: float(b[1].value)), min(both, key=lambda b: b[2])
    if math.isinf(here[2]):
        return "Here every method that the paper has too had a failed run, so no mean is finite."
    theirs = quoted_cell(there[1]).text
    among = "Of the paper's methods"
    if there[0] == here[0]:
        return f"{among} {here[0]} has the lowest mean in both ({num(here[2])} % here, {theirs} % there)."
    return (
        f"{among} {here[0]} has the lowest mean here ({num(here[2])} %; {there[0]}: {num(there[2])} %) and "
        f"{there[0]} in the paper ({theirs} %; {here[0]}: {quoted_cell(here[1]).text} %)."
    )


def _effort(view: TaskView) -> str:
    if view.results.profile == "paper":
        return ""
    return f"Our profile is '{view.results.profile}': the paper's question at another effort, not its experiment."
