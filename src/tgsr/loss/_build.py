"""From a problem, an architecture and numbers of points to an objective."""

from __future__ import annotations

import numpy as np

from tgsr.loss._engine import chosen_engine
from tgsr.loss._objective import Objective, block_count
from tgsr.loss._plan import plan_term
from tgsr.loss._scaling import build_surrogate, part_sizes
from tgsr.loss._spread import Spread, whole_slots
from tgsr.loss._terms import build_terms
from tgsr.network._propagate import MLP
from tgsr.problem._conditions import Points
from tgsr.problem._problem import Problem


def build_objective(
    problem: Problem,
    mlp: MLP,
    points: Points,
    *,
    collapsing: bool = True,
    blocks: int | None = None,
    engine: str = "auto",
    single: bool = False,
    spread: Spread | None = None,
) -> Objective:
    """Trace every row of the problem, choose channels, sizes, blocks and engine. Nothing here sees a truth.

    `single` says that the arrays will be cast to float32, `spread` over which devices the points go.
    """
    surrogate = build_surrogate(problem, mlp)
    terms = build_terms(problem, points)
    sigmas = sum(part.kind == "data" for term in terms for part in term.parts)
    plans = tuple(plan_term(term, problem, surrogate, sigmas) for term in terms)
    sizes = tuple(tuple(part_sizes(problem, surrogate, plan)) for plan in plans)
    counts = [len(plan.term.draw(np.random.Generator(np.random.Philox(0)))[0]) for plan in plans]
    runs_on = chosen_engine(engine, plans, surrogate, counts, collapsing)
    how_many = whole_slots(blocks) if blocks else block_count(plans, surrogate, counts, collapsing, single)
    return Objective(problem, surrogate, plans, sizes, how_many, collapsing, engine=runs_on, spread=spread)
