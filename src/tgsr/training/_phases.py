"""The phases that training consists of: one optimiser each, and when to stop. Frozen, printable, comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tgsr.loss import Objective
from tgsr.training._checks import Stopping as Stopping
from tgsr.training._checks import positive as positive
from tgsr.training._checks import whole as whole
from tgsr.training._first_order import SOAP as SOAP
from tgsr.training._first_order import Adam as Adam
from tgsr.training._gauss_newton import LevenbergMarquardt as LevenbergMarquardt
from tgsr.training._gauss_newton import MatrixFreeLM as MatrixFreeLM
from tgsr.training._quasi_newton import LBFGS as LBFGS
from tgsr.training._quasi_newton import PaperLBFGS as PaperLBFGS
from tgsr.training._quasi_newton import SSBroyden as SSBroyden

Phase = LevenbergMarquardt | MatrixFreeLM | LBFGS | SSBroyden | Adam | SOAP | PaperLBFGS
PHASES: dict[str, type[Phase]] = {
    kind.name: kind for kind in (LevenbergMarquardt, MatrixFreeLM, LBFGS, SSBroyden, Adam, SOAP, PaperLBFGS)
}


def recipe(phase: Phase) -> Phase:
    """The phase as far as its compiled steps depend on it: how long, how held and when to stop are decided outside."""
    same: dict[str, Any] = {"epochs": 1, "stopping": Stopping()}
    return replace(phase, **same, **({"hold": 0} if hasattr(phase, "hold") else {}))


def notes(phases: Sequence[Phase], objective: Objective) -> tuple[str, ...]:
    """What the phases cannot do as asked, each once."""
    asked = [phase.note(objective) for phase in phases if isinstance(phase, LevenbergMarquardt)]
    return tuple(dict.fromkeys(note for note in asked if note))
