"""A comparison of methods as text and as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tgsr._compare import MethodComparison, TruthCheck
from tgsr._errors import plain
from tgsr._runs import as_json
from tgsr._verdict import AGREEMENT, Measured, farthest


def comparison_text(comparison: MethodComparison, check: TruthCheck | None = None) -> str:
    """The table of runs, agreement, verdicts and notes; errors against a truth beside them where there is one."""
    parts = [
        f"{comparison.name}: {', '.join(comparison.methods)} at {len(comparison.seeds)} seed(s)",
        "",
        _table(comparison, check),
    ]
    failed = {f"{m}: {run.sentence}" for (m, _), run in comparison.runs.items() if not run.measured.ok}
    parts += [*sorted(failed), "", *agreements(comparison), *comparison.notes, ""]
    for method, verdict in comparison.verdicts.items():
        parts.append(str(verdict))
        if check is not None and method in check.says:
            errors = f"mean parameter error {check.mean(method):.3g} % against {check.mean('scratch'):.3g} %"
            parts.append(f"  The truth (evaluation only) says: {check.says[method]}, {errors}.")
    return "\n".join(parts)


def comparison_json(comparison: MethodComparison, check: TruthCheck | None = None) -> dict[str, Any]:
    """Everything as plain values."""
    record: dict[str, Any] = {
        "name": comparison.name,
        "methods": list(comparison.methods),
        "seeds": list(comparison.seeds),
        "held_out": comparison.held_out,
        "verdicts": {
            method: {
                "verdict": v.verdict,
                "by": v.by,
                "reason": v.reason,
                "seeds": [vars(seed) for seed in v.seeds],
            }
            for method, v in comparison.verdicts.items()
        },
        "agreement": agreements(comparison),
        "notes": list(comparison.notes),
        "runs": [],
    }
    for (method, seed), run in comparison.runs.items():
        m, result = run.measured, run.result
        one: dict[str, Any] = {
            "method": method,
            "seed": seed,
            "outcome": m.outcome,
            "sentence": run.sentence,
            "loss": m.loss,
            "held_out_misfit": m.held_out[0],
            "held_out_misfit_se": m.held_out[1],
            "closures": m.closures,
            "closures_to_best": m.cost,
            "seconds": None if result is None else result.seconds,
            "unknowns": {} if result is None else as_json(result)["unknowns"],
            "run": None if result is None or result.path is None else str(result.path),
        }
        if check is not None:
            errors = check.errors[method, seed]
            one["errors_against_truth"] = None if errors is None else vars(errors)
        record["runs"].append(one)
    if check is not None:
        record["truth_says"] = {
            method: {"says": says, "error": check.mean(method), "error_scratch": check.mean("scratch")}
            for method, says in check.says.items()
        }
    return record


def agreements(comparison: MethodComparison) -> list[str]:
    """Do estimates agree between methods at a seed, and between seeds of a method? One sentence each."""
    runs, lines = {key: run.measured for key, run in comparison.runs.items() if run.measured.ok}, []
    pairs = [
        (f"at seed {s} {a} and {b}", runs[a, s], runs[b, s])
        for s in comparison.seeds
        for i, a in enumerate(comparison.methods)
        for b in comparison.methods[i + 1 :]
        if (a, s) in runs and (b, s) in runs
    ]
    lines.append(_agreement("Methods", pairs))
    if len(comparison.seeds) > 1:
        pairs = [
            (f"{m} at seeds {a} and {b}", runs[m, a], runs[m, b])
            for m in comparison.methods
            for i, a in enumerate(comparison.seeds)
            for b in comparison.seeds[i + 1 :]
            if (m, a) in runs and (m, b) in runs
        ]
        lines.append(_agreement("Seeds", pairs))
    return lines


def _agreement(what: str, pairs: Sequence[tuple[str, Measured, Measured]]) -> str:
    sizes = [(farthest(a, b), where) for where, a, b in pairs]
    known = [((name, size), where) for (name, size), where in sizes if not math.isnan(size)]
    if not known:
        return f"{what}: whether estimates agree is not known, for want of standard errors."
    (name, size), where = max(known, key=lambda each: each[0][1])
    if size <= AGREEMENT:
        return f"{what} agree: estimates differ by at most {size:.1f} combined standard errors ({name}, {where})."
    return f"{what} disagree: {where} differ by {size:.1f} combined standard errors in {name}."


def _table(comparison: MethodComparison, check: TruthCheck | None) -> str:
    unknowns = list(dict.fromkeys(n for run in comparison.runs.values() for n in run.measured.estimates))
    rows = [["method", "seed", "outcome", "loss", "held-out misfit", *unknowns, "closures", "to within 5 %"]]
    if check is not None:
        rows[0].append("off the truth by")
    for (method, seed), run in comparison.runs.items():
        m, known = run.measured, {} if run.result is None else run.result.unknowns
        misfit = "-" if math.isnan(m.held_out[0]) else f"{m.held_out[0]:.3g} +- {m.held_out[1]:.2g}"
        cost = "-" if math.isnan(m.cost) else f"{m.cost:.0f}" if math.isfinite(m.cost) else "never"
        estimates = [str(known[n]) if n in known else "-" for n in unknowns]
        loss = "-" if math.isnan(m.loss) else f"{m.loss:.3g}"
        rows.append([method, str(seed), m.outcome, loss, misfit, *estimates, str(m.closures), cost])
        if check is not None:
            errors = check.errors[method, seed]
            rows[-1].append("-" if errors is None else f"{errors.parameter:.3g} %")
    rows = [[plain(cell, 60) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
