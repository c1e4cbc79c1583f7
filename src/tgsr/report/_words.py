"""Numbers and facts of a result in words, shared by pictures and pages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tgsr._errors import plain

if TYPE_CHECKING:
    from tgsr._result import Estimate, Result

TYPE_ORDER = ("phases", "points", "weights", "refinement", "budget")


def number(value: float, digits: int = 4) -> str:
    """A number short enough to read; NaN and infinity in words."""
    if math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "unbounded" if value > 0 else "minus infinity"
    return f"{value:.{digits}g}"


def percent(value: float) -> str:
    """A percentage, two or three digits."""
    return f"{value:.3g} %" if math.isfinite(value) else "not finite"


def duration(seconds: float) -> str:
    """Seconds as a person would say them."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes / 60:.1f} h"


def estimate_words(estimate: Estimate) -> str:
    """Value and error, with a proper plus-minus sign and a unit."""
    return plain(str(estimate).replace("+-", "±"))


def relative_error(estimate: Estimate) -> str:
    """The standard error as a share of the value."""
    if not math.isfinite(estimate.se) or not estimate.value:
        return "not known"
    return percent(100.0 * estimate.se / abs(estimate.value))


def interval_words(estimate: Estimate) -> str:
    """The 95 % interval."""
    low, high = estimate.interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return "unbounded" if not estimate.identifiable else "not known"
    return f"{low:.5g} to {high:.5g}"


def method_labels(results: Sequence[Result]) -> list[str]:
    """A short name for each of several results: the method, and what else is needed to tell them apart."""
    for naming in (
        lambda r: r.method,
        lambda r: f"{r.method}, seed {r.seed}",
        lambda r: f"{r.name}, {r.method}, seed {r.seed}",
    ):
        names = [naming(r) for r in results]
        if len(set(names)) == len(names):
            return names
    return [f"{i + 1}: {name}" for i, name in enumerate(names)]


def stated_noise(result: Result, data_set: int, field: str) -> float | None:
    """The noise level that a result's likelihood states for a measured field (None where it states none)."""
    if result.inputs is None:
        return None
    sets = result.inputs[0].get("problem", {}).get("data", [])
    name = sets[data_set]["name"] if data_set < len(sets) else "data"
    for start in (f"{name} {field}: ", f"{name}: "):
        for line in result.likelihood:
            found = re.search(r"(?:standard deviation|scale) is (\d[\d.e+-]*)", line)
            if line.startswith(start) and found:
                return float(found.group(1))
    return None


def training_words(spec: Mapping[str, Any]) -> str:
    """The Python expression that gives this training again, from its stored form."""
    return _expression(spec)


def _expression(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        given = {k: v for k, v in value.items() if k != "type" and v not in (None, [], ())}
        if "weights" in given and isinstance(given["weights"], (list, tuple)):
            given["weights"] = {k: v for k, v in given["weights"]}
        inside = ", ".join(f"{k}={_expression(v)}" for k, v in given.items())
        return f"tgsr.{value['type']}({inside})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_expression(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(_expression(v) for v in value) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def reproduce(result: Result) -> tuple[str, str]:
    """(command, Python lines) that give this result again."""
    scratch = result.method == "scratch"
    command = f"tgsr solve problem.py --seed {result.seed}"
    if not scratch:
        command = f"tgsr transfer SOURCE problem.py --method {result.method} --seed {result.seed}"
    spec = result.inputs[0] if result.inputs is not None else {}
    arguments = [f"seed={result.seed}"]
    if scratch:
        widths = tuple(result.network.widths[1:-1])
        arguments.append(f"network=tgsr.MLP({widths}, {result.network.activation!r})")
    else:
        options = {k: v for k, v in spec.get("method", {}).items() if k != "name"}
        arguments.append(f"method={result.method!r}" + (f"  # {options}" if options else ""))
    if "training" in spec:
        arguments.append(f"training={training_words(spec['training'])}")
    call = "tgsr.solve(\n    problem," if scratch else "tgsr.transfer(\n    problem, source,"
    lines = "".join(
        f"\n    {a}," if "  # " not in a else "\n    {},  #{}".format(*a.split("  #", 1)) for a in arguments
    )
    return command, f"import tgsr\n\nresult = {call}{lines}\n)"
