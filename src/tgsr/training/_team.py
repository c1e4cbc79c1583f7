"""The devices, and the processes, that train together: what they are given, what comes back, what they agree on.

Every process runs the same loop on the same numbers; only the blocks of a closure are shared out. Alone, all of this is
nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from tgsr._errors import InputError
from tgsr.loss import Batch, Objective
from tgsr.training._gauss_newton import LevenbergMarquardt, MatrixFreeLM
from tgsr.training._phases import Phase


class Team:
    """Who trains with this process."""

    def __init__(self, objective: Objective, phases: Sequence[Phase]) -> None:
        self._objective, self._spread = objective, objective.spread
        self._placed: tuple[Batch, Batch] | None = None
        for phase in phases:
            if self._spread is not None and isinstance(phase, (LevenbergMarquardt, MatrixFreeLM)):
                raise InputError(
                    f"{phase.name} works with a Jacobian, which is not spread over devices or processes",
                    field="devices",
                    remedy="Use one device, or train with LBFGS, SSBroyden, Adam, SOAP or the preset 'paper'",
                )

    @property
    def many(self) -> bool:
        """Whether other processes take part."""
        return self._spread is not None and self._spread.processes > 1

    def batch(self, batch: Batch) -> Batch:
        """A batch as the programs take it."""
        if self._placed is None or self._placed[0] is not batch:
            self._placed = batch, self._objective.placed(batch)
        return self._placed[1]

    def give(self, tree: Any) -> Any:
        """Arrays of this process as the programs take them."""
        return tree if self._spread is None else self._spread.everywhere(tree)

    def take(self, tree: Any) -> Any:
        """Arrays that a program returned as this process's own."""
        return tree if self._spread is None else self._spread.here(tree)

    def asked(self, asked: bool) -> bool:
        """Whether any process was asked to stop: all have to stop after the same outer epoch."""
        return asked if not self.many or self._spread is None else 1 in self._spread.from_each(int(asked))

    def check(self, theta: jax.Array, batch: Batch, saved: Mapping[str, np.ndarray] | None) -> None:
        """Refuse to begin where the processes do not stand at the same numbers."""
        if not self.many or self._spread is None:
            return
        digest = 0
        for array in (theta, *jax.tree.leaves(batch), *(saved or {}).values()):
            digest = zlib.crc32(np.asarray(array).tobytes(), digest)
        if len(self._spread.from_each(digest >> 1)) > 1:
            raise InputError(
                "the processes of this training do not begin with the same numbers",
                remedy="Give all of them the same file, data and options, and a folder for the runs that all can read",
            )
