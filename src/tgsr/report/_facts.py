"""The facts of a result as rows of plain text, ready for a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr._errors import plain
from tgsr.report._words import (
    duration,
    estimate_words,
    interval_words,
    number,
    percent,
    relative_error,
)

if TYPE_CHECKING:
    from tgsr._result import Result
    from tgsr._truth import Errors

MOST_LINES = 40
LINE = 600
STRONG = 0.9  # a correlation beyond it means that only a combination is well known


@dataclass(frozen=True)
class Card:
    """One unknown on the first screen."""

    name: str
    value: str
    error: str
    unit: str
    sure: bool
    facts: tuple[tuple[str, str], ...]


def header(result: Result, errors: Errors | None) -> dict[str, Any]:
    """What the first screen says beside the unknowns."""
    cut = [plain(text, LINE) for text in result.warnings[:MOST_LINES]]
    if len(result.warnings) > MOST_LINES:
        cut.append(f"{len(result.warnings) - MOST_LINES} more warnings are in the run's result.json.")
    return {
        "name": result.name,
        "method": result.method,
        "seed": result.seed,
        "outcome": result.outcome.label,
        "ok": result.outcome.ok,
        "sentence": plain(result.sentence, LINE),
        "closures": f"{result.closures:,}",
        "seconds": duration(result.seconds),
        "likelihood": [plain(text, LINE) for text in result.likelihood[:MOST_LINES]],
        "warnings": cut,
        "truth": None if errors is None else plain(str(errors), LINE),
        "readings": _reading_count(result),
    }


def unknown_cards(result: Result, errors: Errors | None) -> list[Card]:
    """Every unknown with its error, interval and first guess."""
    cards = []
    for name, e in result.unknowns.items():
        known = e.identifiable and math.isfinite(e.se)
        value, _, rest = estimate_words(type(e)(e.value, e.se, e.interval, "", True, e.guess)).partition(" ± ")
        facts = [
            ("95 % interval", interval_words(e)),
            ("relative error", relative_error(e)),
            ("first guess", number(e.guess)),
        ]
        if errors is not None and name in errors.parameters:
            facts.append(("off the truth by", percent(errors.parameters[name])))
        shown = (value, rest) if known else (number(e.value), "")
        cards.append(Card(name, *shown, plain(e.unit, 40), e.identifiable, tuple(facts)))
    return cards


def comparison_rows(results: Sequence[Result], labels: Sequence[str], known: Sequence[Errors | None]) -> dict[str, Any]:
    """A table with one row per result: estimates, costs and, where known, errors against the truth."""
    names = list(dict.fromkeys(name for r in results for name in r.unknowns))
    with_truth = any(e is not None for e in known)
    rows = []
    for result, text, errors in zip(results, labels, known, strict=True):
        cells = [estimate_words(result.unknowns[n]) if n in result.unknowns else "none" for n in names]
        if with_truth:
            cells += [
                percent(errors.parameter) if errors else "not known",
                ", ".join(percent(v) for v in errors.fields.values()) if errors and errors.fields else "not known",
            ]
        cells += [f"{result.closures:,}", f"{result.seconds:.1f}", result.outcome.label]
        rows.append((text, cells))
    truth = ["error of the unknowns", "error of the field"] if with_truth else []
    return {"columns": [*names, *truth, "closures", "seconds", "outcome"], "rows": rows}


def correlation_rows(result: Result) -> dict[str, Any] | None:
    """The correlation matrix with a class per cell that shades it; None where there is nothing to correlate."""
    matrix, names = np.asarray(result.correlation, dtype=float), list(result.unknowns)
    if len(names) < 2 or matrix.shape != (len(names), len(names)):
        return None
    if not np.isfinite(matrix).any():
        return {"names": names, "rows": [], "strong": []}
    rows = [
        (name, [(f"{v:+.2f}" if math.isfinite(v) else "none", _shade(v, i == j)) for j, v in enumerate(matrix[i])])
        for i, name in enumerate(names)
    ]
    strong = [
        f"{names[i]} and {names[j]} ({matrix[i, j]:+.2f})"
        for i in range(len(names))
        for j in range(i)
        if abs(matrix[i, j]) > STRONG
    ]
    return {"names": names, "rows": rows, "strong": strong[:MOST_LINES]}


def provenance_rows(result: Result) -> list[tuple[str, str]]:
    """Where the numbers come from, row by row."""
    words = {"tgsr": "tgsr version", "dtype": "precision", "engine": "engine", "threads": "threads"}
    rows = [(words.get(k, str(k)), plain(v, LINE)) for k, v in result.provenance.items()]
    rows += [("seed", str(result.seed)), ("method", result.method)]
    net = result.network
    rows.append(("network", f"{' x '.join(map(str, net.widths))}, {net.activation}, {net.dtype}"))
    if result.inputs is not None and (source := result.inputs[0].get("source")):
        rows.append(("source network (SHA-256)", str(source)))
    rows.append(("final weights (SHA-256)", result.fingerprint))
    if result.path is not None:
        rows.append(("run directory", result.path.name))
    return [(plain(k, 80), v) for k, v in rows]


def _shade(value: float, diagonal: bool) -> str:
    if diagonal or not math.isfinite(value):
        return "self"
    level = min(int(abs(value) * 5), 4)
    return f"{'pos' if value >= 0 else 'neg'}{level}"


def _reading_count(result: Result) -> int | None:
    if result.inputs is None:
        return None
    return sum(int(d.get("rows", 0)) for d in result.inputs[0].get("problem", {}).get("data", []))
