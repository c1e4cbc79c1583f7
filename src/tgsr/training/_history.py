"""What training went through: every part of the loss and every unknown in physical units, step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tgsr.optimiser import Trace


@dataclass
class History:
    """One row per inner step. `seconds` is measured at the end of each outer epoch and interpolated inside it."""

    parts: tuple[str, ...]  # names of the columns of `terms`
    unknowns: tuple[str, ...]  # names of the columns of `values`
    phases: list[str] = field(default_factory=list)  # name of phase k
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        empty = {
            "phase": np.zeros(0, dtype=np.int64),
            "seconds": np.zeros(0),
            "closures": np.zeros(0, dtype=np.int64),
            "loss": np.zeros(0),
            "terms": np.zeros((0, len(self.parts))),
            "values": np.zeros((0, len(self.unknowns))),
        }
        self.columns = self.columns or empty

    def __len__(self) -> int:
        return len(self.columns["loss"])

    def begin(self, phase: str) -> int:
        """Open a phase; returns its number."""
        self.phases.append(phase)
        return len(self.phases) - 1

    def extend(self, phase: int, trace: Trace, values: np.ndarray, start: float, end: float, spent: int) -> None:
        """Append the steps of one outer epoch that did something; `spent` closures came before it."""
        used = np.asarray(trace.closures) > 0
        count = int(used.sum())
        new = {
            "phase": np.full(count, phase, dtype=np.int64),
            "seconds": start + (end - start) * np.arange(1, count + 1) / max(count, 1),
            "closures": spent + np.cumsum(np.asarray(trace.closures)[used]).astype(np.int64),
            "loss": np.asarray(trace.loss)[used],
            "terms": np.asarray(trace.parts)[used],
            "values": values[used],
        }
        self.columns = {name: np.concatenate([old, new[name]]) for name, old in self.columns.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        """A column: 'loss', 'seconds', 'closures', 'phase', an unknown, or a part of the loss."""
        if name in self.unknowns:
            return self.columns["values"][:, self.unknowns.index(name)]
        if name in self.parts:
            return self.columns["terms"][:, self.parts.index(name)]
        return self.columns[name]

    @property
    def closures(self) -> int:
        """Evaluations of loss and gradient spent so far."""
        return int(self.columns["closures"][-1]) if len(self) else 0

    @property
    def seconds(self) -> float:
        """Seconds spent so far."""
        return float(self.columns["seconds"][-1]) if len(self) else 0.0

    def arrays(self) -> dict[str, np.ndarray]:
        """For storage."""
        names = {
            "part_names": np.array(self.parts, dtype=np.str_),
            "unknown_names": np.array(self.unknowns, dtype=np.str_),
            "phase_names": np.array(self.phases, dtype=np.str_),
        }
        return {**self.columns, **names}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> History:
        """Back from storage."""
        columns = {k: v for k, v in arrays.items() if not k.endswith("_names")}
        names = [tuple(str(n) for n in arrays[f"{kind}_names"]) for kind in ("part", "unknown", "phase")]
        return cls(names[0], names[1], list(names[2]), columns)
