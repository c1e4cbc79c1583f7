"""How much a method may spend: the same closures for all ("matched"), or the paper's way of counting."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tgsr.loss import Objective
from tgsr.methods.tgsr._adaptation import INNER, adaptation_epochs
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.optimiser import row_count
from tgsr.training import Training, automatic_phases

BUDGETS = ("matched", "paper")


@dataclass(frozen=True)
class Resolved:
    """The training of a run with its phases settled, E_main, and the closures of everything together."""

    training: Training
    main_epochs: int
    closures: int | None


def resolved_budget(objective: Objective, training: Training, budget: str | None) -> Resolved:
    """Settle phases and budget. None: a run without transfer, limited by `training.budget` alone."""
    # Row counts follow from the points asked for, so no batch need be drawn to choose an optimiser.
    phases = training.phases or automatic_phases(objective, row_count(objective, objective.draw(0)))
    epochs = sum(phase.epochs for phase in phases)
    settled = replace(training, phases=phases, weights=training.weight_table)
    if budget != "matched":
        return Resolved(settled, epochs, training.budget)
    # C: the closures of E_ad + E_main outer epochs. A method that adapts for less may train for longer.
    adaptation = INNER * adaptation_epochs(epochs, TgsrOptions())
    whole = training.budget or adaptation + sum(phase.epochs * phase.closures for phase in phases)
    longer = replace(phases[-1], epochs=phases[-1].epochs + -(-adaptation // phases[-1].closures))
    return Resolved(replace(settled, phases=(*phases[:-1], longer)), epochs, whole)
