"""What a run found, in words and numbers: estimates with errors, how it ended, and the networks themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr._errors import InputError
from tgsr._outcomes import Outcome
from tgsr.network._evaluate import evaluate
from tgsr.network._saved import SavedNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tgsr.training._history import History


@dataclass(frozen=True)
class Estimate:
    """An unknown's recovered value with its standard error and 95 % interval (NaN where they could not be had)."""

    value: float
    se: float
    interval: tuple[float, float]
    unit: str = ""
    identifiable: bool = True
    guess: float = math.nan

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if not self.identifiable:
            return f"{self.value:.4g}{unit}, not identifiable from this data"
        if not math.isfinite(self.se):
            return f"{self.value:.6g}{unit} (no standard error)"
        value, se = rounded(self.value, self.se)
        return f"{value} +- {se}{unit}"


def rounded(value: float, se: float) -> tuple[str, str]:
    """A value and its error to two digits of the error."""
    if se <= 0:
        return f"{value:.6g}", "0"
    digits = 1 - math.floor(math.log10(se))
    if -4 <= digits <= 8:
        return f"{value:.{max(digits, 0)}f}", f"{se:.{max(digits, 0)}f}"
    power = math.floor(math.log10(abs(value))) if value else 0
    shown = max(digits + power, 0)
    return f"{value:.{shown}e}", f"{se:.1e}"


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of `solve` or `transfer`. `print` shows estimates; `predict` evaluates fields; `plot` draws."""

    name: str
    unknowns: dict[str, Estimate]
    outcome: Outcome
    sentence: str
    history: History
    network: SavedNetwork
    unknown_fields: dict[str, tuple[SavedNetwork, bool]] = field(default_factory=dict)
    correlation: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    likelihood: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    stages: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    method: str = "scratch"
    closures: int = 0
    seconds: float = 0.0
    seed: int = 0
    provenance: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[dict[str, Any], bytes, bytes] | None = None  # spec, data, source: what identifies the run
    path: Path | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that `predict` gives."""
        return self.network.fields + tuple(self.unknown_fields)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all final weights."""
        import hashlib

        digest = hashlib.sha256(self.network.fingerprint().encode())
        for network, _ in self.unknown_fields.values():
            digest.update(network.fingerprint().encode())
        for name, estimate in self.unknowns.items():
            digest.update(f"{name}={estimate.value!r}".encode())
        return digest.hexdigest()

    def predict(self, **coordinates: Any) -> dict[str, np.ndarray]:
        """Fields at points: `result.predict(x=[0.1, 0.2], t=1.0)["T"]`. Arrays broadcast against each other."""
        known = self.network.coordinates
        for name in coordinates:
            if name not in known:
                raise InputError(f"there is no coordinate {name!r}", field=name, remedy=f"Give {', '.join(known)}")
        missing = [name for name in known if name not in coordinates]
        if missing:
            raise InputError(
                f"predict needs coordinate {missing[0]!r}", field=missing[0], remedy=f"Give {', '.join(known)}"
            )
        try:
            columns = np.broadcast_arrays(*(np.asarray(coordinates[name], dtype=float) for name in known))
        except (TypeError, ValueError):
            raise InputError(
                "the coordinates given to predict are not numbers of matching shapes",
                field=known[0],
                remedy="Give numbers or arrays that broadcast against each other",
            ) from None
        shape = columns[0].shape
        points = np.stack([c.reshape(-1) for c in columns], axis=1)
        out = {name: u.reshape(shape) for name, u in evaluate(self.network, points).items()}
        for name, (network, positive) in self.unknown_fields.items():
            own = points[:, [known.index(c) for c in network.coordinates]]
            out[name] = evaluate(network, own, positive=positive)[name].reshape(shape)
        return out

    def compare(self, other: Result) -> Comparison:
        """This result beside another of the same problem."""
        return Comparison(self, other)

    def plot(self) -> Figure:
        """A figure: loss and unknowns against closures, and the fields where that can be drawn."""
        from tgsr.report import draw_result

        return draw_result(self)

    def save(self, root: str | Path) -> Path:
        """Write this result as a run directory under `root`; returns its path. `tgsr.load` reads it back."""
        from tgsr._runs import write_result

        return write_result(self, root)

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.method}): {self.outcome} after {self.closures} closures in {self.seconds:.1f} s"]
        if not self.outcome.ok or self.outcome is Outcome.BUDGET:
            lines.append(f"  {self.sentence}")
        width = max((len(name) for name in self.unknowns), default=0)
        for name, e in self.unknowns.items():
            interval = ""
            if e.identifiable and math.isfinite(e.se):
                low, high = (f"{bound:.5g}" for bound in e.interval)
                interval = f"   (95 %: {low} to {high})"
            lines.append(f"  {name:<{width}} = {e}{interval}")
        for name, (network, _) in self.unknown_fields.items():
            lines.append(f"  {name}({', '.join(network.coordinates)}) is a function: see predict and plot")
        lines += [f"  {text}" for text in (*self.likelihood, *self.warnings)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> Mapping[str, str]:
        return {"text/plain": str(self)}


@dataclass(frozen=True)
class Comparison:
    """Two results of the same problem side by side: do they agree, and what did each cost?"""

    first: Result
    second: Result

    def __str__(self) -> str:
        a, b = self.first, self.second
        names = [n for n in a.unknowns if n in b.unknowns]
        left, right = f"{a.name} ({a.method})", f"{b.name} ({b.method})"
        rows = [("", left, right, "difference")]
        rows += [(name, str(a.unknowns[name]), str(b.unknowns[name]), self._difference(name)) for name in names]
        rows.append(("closures", str(a.closures), str(b.closures), f"{a.closures - b.closures:+d}"))
        rows.append(("seconds", f"{a.seconds:.1f}", f"{b.seconds:.1f}", f"{a.seconds - b.seconds:+.1f}"))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)

    __repr__ = __str__

    def _difference(self, name: str) -> str:
        """The difference in standard errors, where both have one."""
        a, b = self.first.unknowns[name], self.second.unknowns[name]
        if not (math.isfinite(a.se) and math.isfinite(b.se)) or max(a.se, b.se) <= 0:
            return f"{a.value - b.value:+.3g}"
        return f"{(a.value - b.value) / max(a.se, b.se):+.2f} standard errors"
