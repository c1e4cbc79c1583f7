"""What training is told: phases, points, weights, refinement, a budget; and the presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tgsr._errors import InputError, plain
from tgsr.loss import Objective
from tgsr.problem import Points
from tgsr.problem._names import nearest
from tgsr.training._checks import UNSEEN
from tgsr.training._phases import LBFGS, PHASES, LevenbergMarquardt, PaperLBFGS, Phase, positive, whole


@dataclass(frozen=True)
class Refinement:
    """Every `every` outer epochs, redraw the share `fraction` of the interior points where residuals are large.

    Candidates are `candidates` times as many as interior points; the chance of one is proportional to
    |residual|^power / mean + floor. Shapes stay, so nothing is compiled anew.
    """

    every: int = 5
    fraction: float = 0.5
    candidates: int = 10
    power: float = 1.0
    floor: float = 1.0

    def __post_init__(self) -> None:
        whole(self, "every", "candidates")
        positive(self, "fraction", "power", "floor")
        if self.fraction > 1:
            raise InputError(f"Refinement.fraction is {self.fraction}", field="fraction", remedy="Give at most 1")


@dataclass(frozen=True)
class Training:
    """How to train. Everything left out is chosen by the problem's size.

    `weights` gives loss weights by part name or kind ('pde', 'bc', 'ic', 'data'); None balances them by the noise: a
    reading counts by its sigma, and equations are held about three times tighter than the noise. `budget` caps the
    evaluations of loss and gradient.
    """

    phases: tuple[Phase, ...] = ()
    points: Points = field(default_factory=Points)
    weights: Mapping[str, float] | None = None
    refinement: Refinement | None = None
    budget: int | None = None

    def __post_init__(self) -> None:
        phases = (self.phases,) if isinstance(self.phases, tuple(PHASES.values())) else tuple(self.phases)
        for phase in phases:
            if not isinstance(phase, tuple(PHASES.values())):
                raise InputError(
                    f"{plain(phase, 40)!r} is no phase", field="phases", remedy=f"Phases are {', '.join(PHASES)}"
                )
        object.__setattr__(self, "phases", phases)
        if not isinstance(self.points, Points):
            raise InputError(
                f"points is {plain(self.points, 40)!r}", field="points", remedy="Write Points(interior=...)"
            )
        if self.budget is not None:
            whole(self, "budget")
        if self.weights is not None:
            if isinstance(self.weights, tuple):  # already settled, as dataclasses.replace passes it
                object.__setattr__(self, "weights", dict(self.weights))
            if not isinstance(self.weights, Mapping):
                raise InputError("weights is no mapping", field="weights", remedy='Write {"pde": 10.0, "data": 50.0}')
            for name, value in self.weights.items():
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if not number or not 0 <= value < float("inf"):
                    raise InputError(f"the weight of {name!r} is {plain(value, 40)!r}", field=str(name))
            object.__setattr__(self, "weights", tuple(sorted((str(k), float(v)) for k, v in self.weights.items())))

    @property
    def weight_table(self) -> dict[str, float] | None:
        """Weights by name or kind, if given."""
        return None if self.weights is None else dict(self.weights)

    def spec(self) -> dict[str, Any]:
        """Plain values, for a run's identity."""

        def plain_value(value: Any) -> Any:
            if hasattr(value, "__dataclass_fields__"):
                kind = {"type": type(value).__name__}
                seen = [f for f in fields(value) if f.metadata != UNSEEN or getattr(value, f.name) != f.default]
                return kind | {f.name: plain_value(getattr(value, f.name)) for f in seen}
            return [plain_value(v) for v in value] if isinstance(value, tuple) else value

        return plain_value(self)


PRESETS: dict[str, Training] = {
    "paper": Training(phases=(PaperLBFGS(),), weights={"pde": 10.0, "bc": 10.0, "ic": 10.0, "data": 50.0}),
    "best": Training(),
}


def as_training(value: Training | str | None) -> Training:
    """A training, or the preset of that name."""
    if value is None:
        return Training()
    if isinstance(value, Training):
        return value
    if isinstance(value, str) and value in PRESETS:
        return PRESETS[value]
    raise InputError(
        f"{plain(value, 40)!r} is no training",
        field="training",
        remedy=nearest(str(value), PRESETS) + ", or tgsr.Training(...)",
    )


SMALL = 3000  # up to so many weights (or rows) a Gram matrix costs less than the closures it saves
JACOBIAN = 20_000_000  # numbers, where it has to be kept


def automatic_phases(objective: Objective, rows: int) -> tuple[Phase, ...]:
    """Levenberg-Marquardt where its linear algebra is small and in one place, else L-BFGS."""
    size = objective.surrogate.size
    small = objective.spread is None and (size <= SMALL or (rows <= SMALL and size * rows <= JACOBIAN))
    return (LevenbergMarquardt(accelerate=True),) if small else (LBFGS(),)
