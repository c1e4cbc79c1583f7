"""Did starting from the source do harm? Events per matched seed against the random start (the paper's definition).

    d_lambda = e_lambda(method) - e_lambda(scratch),   d_u = e_u(method) - e_u(scratch)
    parameter negative transfer: d_lambda > 0;   masked: d_u <= 0 and d_lambda > 0

A masked event is one that the field does not show. Failures count: a method that failed where scratch did not is an
event; where both failed neither is. So events + wins + ties are the number of pairs, always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tgsr.study._pairs import Paired, arms_of, compare_arms
from tgsr.study._record import Record

BASE = "scratch"


@dataclass(frozen=True)
class NegativeTransfer:
    """One transfer method against the random start."""

    task: str
    arm: str
    seeds: tuple[int, ...]
    events: int  # parameters worse than from scratch
    wins: int
    ties: int
    masked: int | None  # None where the field error is not known
    only_arm: tuple[int, ...] = ()
    only_base: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """The number of matched seeds: events + wins + ties."""
        return len(self.seeds)


def negative_transfer(
    records: Sequence[Record], task: str, base: str = BASE, arms: Sequence[str] | None = None
) -> tuple[NegativeTransfer, ...]:
    """The events of every arm (or of those named) but `base`; empty where there is no such arm to compare with."""
    named = arms_of(records, task) if arms is None else tuple(arms)
    pairs = [(compare_arms(records, task, arm, base), compare_arms(records, task, arm, base, "field"))
             for arm in named if arm != base]  # fmt: skip
    return tuple(events(parameter, field) for parameter, field in pairs if parameter.n)


def events(parameter: Paired, field: Paired | None = None) -> NegativeTransfer:
    """Count events over the pairs of parameter errors and, where they are known, those of field errors."""
    worse = np.array(parameter.ours) > np.array(parameter.theirs)
    masked = None
    if field is not None and field.seeds == parameter.seeds and field.n:
        masked = int(np.sum(worse & (np.array(field.ours) <= np.array(field.theirs))))
    t = parameter.tally
    return NegativeTransfer(
        parameter.task, parameter.arm, parameter.seeds, t.losses, t.wins, t.ties, masked,
        parameter.only_arm, parameter.only_other,
    )  # fmt: skip
