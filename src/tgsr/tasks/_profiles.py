"""How much effort a task gets: the paper's numbers, what a laptop does in under a minute, and seconds for tests."""

from __future__ import annotations

from dataclasses import dataclass

from tgsr._errors import InputError, plain
from tgsr.network._propagate import MLP
from tgsr.problem import Points
from tgsr.problem._names import nearest
from tgsr.training import LBFGS, LevenbergMarquardt, PaperLBFGS, Training
from tgsr.training._phases import Phase


@dataclass(frozen=True)
class Counts:
    """Points of the loss, by where they lie."""

    interior: int
    boundary: int
    initial: int
    readings: int


COUNTS = Counts(10_000, 2_500, 2_500, 1_000)
WEIGHTS = {"pde": 10.0, "ic": 10.0, "bc": 10.0, "data": 50.0}
# The diffusion source of the two advection-diffusion tasks has its own, as in the authors' implementation.
SOURCE_COUNTS = Counts(5_000, 1_000, 1_000, 1_000)
SOURCE_WEIGHTS = {"pde": 1.0, "ic": 10.0, "bc": 10.0, "data": 35.0}
LIGHT_SOURCES = ("smooth-advection-diffusion", "advected-pulse")
ROLES = ("source", "target")


@dataclass(frozen=True)
class Profile:
    """Network, optimiser and budget of a run, and the share of the paper's points that it takes."""

    name: str
    widths: tuple[int, ...]
    phases: tuple[Phase, ...]
    budget: str  # how a transfer counts its closures: "matched" or "paper"
    share: float = 1.0
    readings: int = COUNTS.readings
    closures: int | None = None

    def counts(self, task: str, role: str) -> Counts:
        """How many points a task takes in a role, the readings unless told otherwise."""
        whole = SOURCE_COUNTS if role == "source" and task in LIGHT_SOURCES else COUNTS
        interior, boundary, initial = (round(self.share * n) for n in (whole.interior, whole.boundary, whole.initial))
        return Counts(interior, boundary, initial, self.readings)

    def weights(self, task: str, role: str) -> dict[str, float]:
        """Weights of the parts of the loss, by kind."""
        return dict(SOURCE_WEIGHTS if role == "source" and task in LIGHT_SOURCES else WEIGHTS)

    def network(self) -> MLP:
        """The architecture, the same for every task and role."""
        return MLP(self.widths)

    def training(self, task: str, role: str) -> Training:
        """Optimiser, points drawn uniformly at random, and weights."""
        n = self.counts(task, role)
        points = Points(n.interior, n.boundary, n.initial, sampling="uniform")
        return Training(self.phases, points, self.weights(task, role), budget=self.closures)


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("paper", (100,) * 6, (PaperLBFGS(),), "paper"),
        Profile("laptop", (12,) * 6, (LevenbergMarquardt(epochs=10),), "matched", share=0.2),
        Profile("smoke", (8, 8), (LBFGS(epochs=2),), "matched", share=0.02, readings=100, closures=40),
    )
}


def as_profile(value: Profile | str) -> Profile:
    """A profile, or the one of that name."""
    if isinstance(value, Profile):
        return value
    if isinstance(value, str) and value in PROFILES:
        return PROFILES[value]
    raise InputError(f"there is no profile {plain(value, 40)!r}", field="profile", remedy=nearest(str(value), PROFILES))
