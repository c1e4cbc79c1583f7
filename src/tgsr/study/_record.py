"""What a study knows of one run: everything that statistics, tables, figures and the report are made from.

A record is derived, never trained on: it is made from a verified run directory and, where there is one, the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Found:
    """An unknown as a run reports it, in its own unit; NaN where an error could not be had."""

    value: float
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    identifiable: bool = True


@dataclass(frozen=True)
class Record:
    """One run of a study.

    `arm` is what the study compares: a method with its options and its number of readings, under a label that is
    unique in the study ("tgsr", "tgsr, K = 1", "scratch, no readings"). `errors` are percent, by name: 'parameter' (the
    mean over unknowns), every unknown, 'field', and what a task adds ('layer' in percent, 'gradient' as a fraction).
    They are empty where no truth is known, and infinite where the run failed although one is. `bounds` are the
    Cramér-Rao bounds of the run's readings in percent of the truth, by unknown; empty where not known.
    """

    task: str
    role: str  # "target" or "source"
    arm: str
    method: str
    seed: int
    run: str  # the run directory, relative to the study's folder; "" where there is none
    outcome: str  # label of `tgsr.Outcome`, or "crashed", "timeout": the process itself ended
    ok: bool
    sentence: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # those that differ from the method's defaults
    profile: str = ""
    budget: str = ""
    observations: int = 0
    noise: float = math.nan  # the standard deviation of the readings
    errors: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    unknowns: Mapping[str, Found] = field(default_factory=dict)
    closures: int = 0  # all that the run spent, adaptation and scoring included
    allowed: int = 0  # closures that its budget let it spend (0: no limit)
    stages: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict
    )  # stage -> seconds, closures, memory (bytes)
    seconds: float = math.nan
    warnings: tuple[str, ...] = ()
    weights: str = ""  # SHA-256 of the final weights
    environment: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Record:
        """The record that `as_json` wrote."""
        unknowns = {name: Found(**found) for name, found in values["unknowns"].items()}
        return cls(**{**values, "unknowns": unknowns, "warnings": tuple(values["warnings"])})
