"""The runs of a study as the page lists them, one by one, and as its script draws them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tgsr._errors import plain
from tgsr.report._arms import ArmStyle
from tgsr.report._numbers import num
from tgsr.report._style import DARK
from tgsr.report._words import duration, number, percent
from tgsr.study._pairs import tasks_of
from tgsr.study._record import Found, Record
from tgsr.study._results import StudyResults
from tgsr.study._statistics import median

LINE = 300
FRACTIONS = ("gradient",)  # errors that are no percentages
PAGE = "report.html"  # of a run, in its directory
MOST_WARNINGS = 8


@dataclass(frozen=True)
class Run:
    """A row of the list and what unfolds below it."""

    identity: str
    arm: str
    seed: int
    outcome: str
    ok: bool
    cells: tuple[tuple[str, str], ...]  # what is printed, and the number that it is sorted by ("": words)
    facts: tuple[tuple[str, str], ...]
    page: str  # relative link to the run's own page; "" where it has none


@dataclass(frozen=True)
class Group:
    """The runs of a task, or the source runs."""

    key: str
    title: str
    columns: tuple[str, ...]
    runs: tuple[Run, ...]
    failed: int


def run_groups(results: StudyResults, base: Path | None) -> list[Group]:
    """Every run once: by task, then the sources. Links to the runs' own pages are relative to the folder `base`."""
    numbered = list(enumerate(results.records))
    groups = []
    for place, task in enumerate(tasks_of(results.records)):
        own = [(i, r) for i, r in numbered if r.role == "target" and r.task == task]
        groups.append(_group(f"runs-{place}", plain(task, 80), own, results, base))
    sources = [(i, r) for i, r in numbered if r.role != "target"]
    return groups + ([_group("runs-sources", "Source runs", sources, results, base)] if sources else [])


def colour_class(style: ArmStyle) -> str:
    """The class of the style sheet that has the colour of an arm."""
    return f"k{list(DARK).index(style.colour)}"


def error_words(name: str, value: float) -> str:
    """An error with its unit: percent, but for those that are fractions."""
    return num(value) if name in FRACTIONS or not math.isfinite(value) else f"{num(value)} %"


def measure_words(name: str) -> str:
    """What an error is called."""
    return f"{name} error"


def scatter_data(results: StudyResults, styles: Mapping[str, ArmStyle]) -> dict[str, Any]:
    """Numbers for the script: per task what can be put on an axis, and every run. A failed run has null for errors."""
    tasks = []
    for task in tasks_of(results.records):
        own = [(i, r) for i, r in enumerate(results.records) if r.role == "target" and r.task == task]
        measures = _measures([r for _, r in own])
        runs = [
            [i, styles[r.arm].number, r.seed, plain(r.outcome, 40), int(r.ok), *(_short(m.of(r)) for m in measures)]
            for i, r in own
        ]
        named = [
            {"key": m.key, "name": plain(m.name, 60), "unit": plain(m.unit, 24), "log": m.log, "limit": _short(m.limit)}
            for m in measures
        ]
        tasks.append({"name": plain(task, 80), "measures": named, "runs": runs})
    ordered = sorted(styles.values(), key=lambda s: s.number)
    looks = [(s.colour, s.marker) for s in ordered]
    arms = [  # an arm that looks like an earlier one is that one with fewer readings: its points are hollow
        [plain(s.arm, 60), colour_class(s), s.marker, int(look in looks[:i])]
        for i, (s, look) in enumerate(zip(ordered, looks, strict=True))
    ]
    return {"arms": arms, "tasks": tasks}


@dataclass(frozen=True)
class _Measure:
    """Something that every run has a number of, and that can be put on an axis."""

    key: str
    name: str
    unit: str
    of: Callable[[Record], float]
    log: bool = False
    limit: float = math.nan


def _measures(records: Sequence[Record]) -> list[_Measure]:
    """Errors first, then costs, then the estimates themselves."""
    errors = list(dict.fromkeys(name for r in records for name in r.errors))
    unknowns = list(dict.fromkeys(name for r in records for name in r.unknowns))
    units = {name: found.unit for r in records for name, found in r.unknowns.items()}
    return [
        *(
            _Measure(
                f"error:{name}", measure_words(name), "" if name in FRACTIONS else "%", partial(_error, name), True,
                _limit(records, name, unknowns),
            )
            for name in errors
        ),
        _Measure("closures", "closures", "", lambda r: r.closures),
        _Measure("seconds", "seconds", "s", lambda r: r.seconds),
        *(_Measure(f"estimate:{n}", f"estimate of {n}", units[n], partial(_found, n)) for n in unknowns),
    ]  # fmt: skip


def _error(name: str, r: Record) -> float:
    return r.errors.get(name, math.nan) if r.ok else math.inf


def _found(name: str, r: Record) -> float:
    return r.unknowns[name].value if name in r.unknowns else math.nan


def _limit(records: Sequence[Record], error: str, unknowns: Sequence[str]) -> float:
    """The median Cramér-Rao bound behind an error; the mean over the unknowns for the parameter error."""
    named = unknowns if error == "parameter" else (error,)
    each = [[r.bounds[n] for r in records if 0 < r.bounds.get(n, math.inf) < math.inf] for n in named]
    return sum(map(median, each)) / len(each) if each and all(each) else math.nan


def _short(value: float) -> float | int | None:
    """Four digits are more than a screen shows; JSON knows no infinity."""
    if isinstance(value, int):
        return value
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _group(
    key: str, title: str, numbered: Sequence[tuple[int, Record]], results: StudyResults, base: Path | None
) -> Group:
    errors = [name for name in ("parameter", "field") if any(name in r.errors for _, r in numbered)]  # the rest unfolds
    several = len({r.task for _, r in numbered}) > 1 or any(r.role != "target" for _, r in numbered)
    runs = []
    for i, r in numbered:
        cells = [(plain(r.task, 80), "")] if several else []
        cells += [(error_words(name, _error(name, r)), _sort(_error(name, r))) for name in errors]
        cells += [(f"{r.closures:,}", str(r.closures)), (_seconds(r.seconds), _sort(r.seconds))]
        facts = tuple((plain(what, 80), plain(words, LINE)) for what, words in _facts(r))
        runs.append(
            Run(f"run-{i}", plain(r.arm, 80), r.seed, plain(r.outcome, 40), r.ok, tuple(cells), facts,
                _page_of(r, results.folder, base))
        )  # fmt: skip
    columns = [*(["task"] if several else []), *(measure_words(n) for n in errors), "closures", "time"]
    return Group(key, title, tuple(columns), tuple(runs), sum(not r.ok for _, r in numbered))


def _facts(r: Record) -> list[tuple[str, str]]:
    """Everything else that is known of a run."""
    facts = [("how it ended", f"{r.outcome}: {r.sentence}" if r.sentence else r.outcome)]
    facts += [(name, _estimate(found)) for name, found in r.unknowns.items()]
    shown = [f"{name} {error_words(name, v)}" for name, v in r.errors.items() if r.ok and math.isfinite(v)]
    if shown:
        facts.append(("errors", ", ".join(shown)))
    if r.bounds:
        facts.append(("limit of its readings", ", ".join(f"{name} {percent(v)}" for name, v in r.bounds.items())))
    noise = f", noise {number(r.noise)}" if math.isfinite(r.noise) else ""
    facts.append(("readings", f"{r.observations:,}{noise}" if r.observations else "none"))
    method = ", ".join(f"{name} = {value}" for name, value in r.options.items())
    facts.append(("method", f"{r.method} ({method})" if method else r.method))
    allowed = f" of {r.allowed:,} allowed" if r.allowed else ""
    facts.append(("closures", f"{r.closures:,}{allowed}" + (f", budget {r.budget}" if r.budget else "")))
    if r.stages:
        facts.append(("stages", "; ".join(f"{name} {_stage(stage)}" for name, stage in r.stages.items())))
    facts += [("warning", text) for text in r.warnings[:MOST_WARNINGS]]
    if r.weights:
        facts.append(("final weights (SHA-256)", f"{r.weights[:16]}..."))
    if r.run:
        facts.append(("run directory", r.run))
    return facts


def _estimate(found: Found) -> str:
    unit = f" {found.unit}" if found.unit else ""
    if not found.identifiable:
        return f"{number(found.value)}{unit}, not identifiable"
    error = f" ± {number(found.se, 2)}" if math.isfinite(found.se) else ""
    return f"{number(found.value)}{error}{unit}"


def _stage(stage: Mapping[str, float]) -> str:
    words = [duration(stage["seconds"])] if math.isfinite(stage.get("seconds", math.nan)) else []
    words += [f"{stage['closures']:,.0f} closures"] if stage.get("closures") else []
    words += [f"{stage['memory'] / 2**20:,.0f} MiB"] if stage.get("memory") else []
    return ", ".join(words)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if math.isfinite(value) else "not known"


def _sort(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "Infinity" if value > 0 else "NaN"


def _page_of(record: Record, folder: Path | None, base: Path | None) -> str:
    if folder is None or base is None or not record.run:
        return ""
    page = folder / record.run / PAGE
    if not page.resolve().is_relative_to(folder.resolve()) or not page.is_file():
        return ""
    return quote(Path(os.path.relpath(page.resolve(), base.resolve())).as_posix())
