"""The one training loop: phases of compiled outer epochs, one place to count, stop, record and save."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._outcomes import Outcome
from tgsr.loss import Batch, Controls, Objective
from tgsr.optimiser import CONVERGED, NON_FINITE, RUNNING, STUCK, UNLIMITED, Program, Trace, row_count
from tgsr.training._controls import Weighing, misfits
from tgsr.training._history import History
from tgsr.training._keeper import InterruptedRunError, Keeper, flatten_state, restore_state, watching_for_interrupt
from tgsr.training._phases import Phase, notes, recipe
from tgsr.training._refine import refined
from tgsr.training._team import Team
from tgsr.training._training import Training, automatic_phases

DIVERGENCE = 1e6  # times the first loss
NEGLIGIBLE = 1e-4  # of the loss that noise at its floor would leave


@dataclass(frozen=True)
class Progress:
    """What a display may show between outer epochs (never a truth, never an error against one)."""

    stage: str
    phase: str
    epoch: int
    epochs: int
    loss: float
    unknowns: dict[str, float]
    closures: int
    budget: int | None
    seconds: float


@dataclass(frozen=True)
class Trained:
    """Where training ended."""

    theta: jax.Array
    outcome: Outcome
    history: History
    batch: Batch
    controls: Controls
    sigma: np.ndarray
    notes: tuple[str, ...] = ()  # what a phase could not do as asked


@dataclass(frozen=True)
class Start:
    """What a method hands to the loop: where to begin, what may move, and what draws it back."""

    theta: jax.Array
    mask: np.ndarray | None = None
    anchor: np.ndarray | None = None
    pull: np.ndarray | None = None


@dataclass
class _Cursor:
    """How far the loop is, apart from the optimiser's own state."""

    phase: int = 0
    epoch: int = 0
    stalled: int = 0
    best: float = math.inf
    last: float = math.inf
    first: float = math.inf
    seconds: float = 0.0

    def improves(self, loss: float, phase: Phase) -> bool:
        """Take note of an outer epoch's loss; False when the phase should stop."""
        rule = phase.stopping
        self.stalled = 0 if loss < self.best * (1.0 - rule.tolerance) else self.stalled + 1
        change = abs(loss - self.last)
        self.best, self.last = min(self.best, loss), loss
        return self.stalled < rule.patience and not change < rule.change


def train(
    objective: Objective,
    start: Start,
    training: Training,
    seed: int,
    *,
    stage: str = "main",
    keeper: Keeper | None = None,
    progress: Callable[[Progress], None] | None = None,
    budget: int | None = None,
    batch: Batch | None = None,
    redraw: str | None = None,
) -> Trained:
    """Train from `start`. `redraw` names the stream from which points are drawn anew in every outer epoch."""
    return _Loop(objective, start, training, seed, stage, keeper or Keeper(), progress, budget, batch, redraw).run()


@functools.lru_cache(maxsize=64)
def _program(phase: Phase, objective: Objective, rows: int) -> Program:
    """Compiled steps, kept so that another start, other noise or a resumed run compiles nothing."""
    return phase.program(objective, rows)


class _Loop:
    """The state of one call of `train`, spread over short methods."""

    def __init__(self, objective, start, training, seed, stage, keeper, progress, budget, batch, redraw) -> None:
        self.objective: Objective = objective
        self.start: Start = start
        self.training: Training = training
        self.seed: int = seed
        self.stage: str = stage
        self.keeper: Keeper = keeper
        self.progress: Callable[[Progress], None] | None = progress
        self.budget: int | None = training.budget if budget is None else budget
        self.redraw: str | None = redraw
        self.batch: Batch = batch if batch is not None else objective.draw(seed)
        phases = training.phases or automatic_phases(objective, row_count(objective, self.batch))
        self.phases = tuple(phase.within(self.budget) for phase in phases)
        self.team = Team(objective, self.phases)
        self.notes = notes(self.phases, objective)
        self.weighing = Weighing(objective, training.weight_table)
        self.sigma = self.weighing.first_sigma()
        names = tuple(part.name for part in objective.parts)
        self.history = History(names, objective.surrogate.unknown_names)
        self.cursor = _Cursor()
        self.theta = start.theta

    def controls(self) -> Controls:
        s = self.start
        return self.weighing.controls(self.sigma, self.theta, s.mask, s.anchor, s.pull)

    def run(self) -> Trained:
        saved = self.keeper.restore(self.stage)
        arrays = None
        if saved is not None:
            arrays = self._restore(*saved)
        self.team.check(self.theta, self.batch, arrays)
        outcome = Outcome.BUDGET
        with watching_for_interrupt() as stop:
            while self.cursor.phase < len(self.phases):
                phase = self.phases[self.cursor.phase]
                if arrays is None:
                    self.history.begin(phase.name)
                outcome = self._phase(phase, arrays, stop)
                arrays = None
                if not outcome.ok or self._spent_out(phase):
                    break
                self.cursor = _Cursor(self.cursor.phase + 1, seconds=self.cursor.seconds)
        # In its last outer epoch: the next stage must not begin.
        if self.stage != "main" and self.team.asked(stop.asked):
            raise InterruptedRunError(self._interruption(), getattr(self.keeper.directory, "path", None))
        return Trained(self.theta, outcome, self.history, self.batch, self.controls(), self.sigma, self.notes)

    def _spent_out(self, phase: Phase) -> bool:
        """Whether the budget leaves no room for another step."""
        return self.budget is not None and self.history.closures + phase.least > self.budget

    def _phase(self, phase: Phase, arrays: dict[str, np.ndarray] | None, stop) -> Outcome:
        program = _program(recipe(phase), self.objective, row_count(self.objective, self.batch))
        give = self.team.give
        state = program.start(give(self.theta), self.team.batch(self.batch), give(self.controls()))
        if arrays is not None:
            state = give(restore_state(state, arrays))
            self.theta = self.team.take(program.theta(state))
        number = len(self.history.phases) - 1
        while self.cursor.epoch < phase.epochs:
            if self._spent_out(phase):
                return Outcome.BUDGET
            if self.redraw is not None:
                self.batch = self.objective.draw(self.seed, self.redraw, self.cursor.epoch, keep=self.batch)
            state, trace = self._epoch(program, phase, state, number)
            verdict = self._judge(trace, phase)
            if verdict is not None:
                return verdict
            if self.cursor.epoch < phase.epochs:
                self._between_epochs()
            if self.team.asked(stop.asked):
                self._save(state)
                raise InterruptedRunError(self._interruption(), getattr(self.keeper.directory, "path", None))
            if self.keeper.due:
                self._save(state)
        return Outcome.BUDGET

    def _epoch(self, program: Program, phase: Phase, state, number: int):
        begin = time.perf_counter()
        left = UNLIMITED if self.budget is None else self.budget - self.history.closures
        setting = jnp.asarray([phase.setting(self.cursor.epoch), left], dtype=float)
        batch, (controls, setting) = self.team.batch(self.batch), self.team.give((self.controls(), setting))
        state, trace = jax.block_until_ready(program.epoch(state, batch, controls, setting))
        self.theta, trace = self.team.take((program.theta(state), trace))
        spent = self.history.closures
        start, self.cursor.seconds = self.cursor.seconds, self.cursor.seconds + time.perf_counter() - begin
        transforms = self.objective.surrogate.transforms
        raw = np.asarray(trace.raw)
        with np.errstate(all="ignore"):  # what diverges may overflow on the way to physical units
            values = np.stack([t.value(raw[:, i]) for i, t in enumerate(transforms)], axis=1) if transforms else raw
        self.history.extend(number, trace, values, start, self.cursor.seconds, spent)
        self.cursor.epoch += 1
        if self.progress is not None:
            shown = dict(zip(self.history.unknowns, map(float, values[-1]), strict=True))
            loss = float(trace.loss[-1])
            self.progress(
                Progress(
                    self.stage, phase.name, self.cursor.epoch, phase.epochs, loss, shown,
                    self.history.closures, self.budget, self.cursor.seconds,
                )
            )  # fmt: skip
        return state, trace

    def _judge(self, trace: Trace, phase: Phase) -> Outcome | None:
        """How the phase ends after this outer epoch, or None to go on."""
        status, loss = int(trace.status), float(trace.loss[-1])
        if status == NON_FINITE or not math.isfinite(loss):
            return Outcome.NON_FINITE_START if self.cursor.epoch == 1 else Outcome.NON_FINITE
        if self.cursor.epoch == 1:
            self.cursor.first = float(trace.loss[0])
        if loss > DIVERGENCE * max(self.cursor.first, 1e-300):
            return Outcome.DIVERGED
        if status == STUCK:
            return Outcome.STUCK
        if self.weighing.data and self.weighing.weights is None and loss < NEGLIGIBLE:
            return Outcome.CONVERGED  # readings without noise, met far below what a network is asked to resolve
        if status == CONVERGED:
            return Outcome.CONVERGED
        if not self.cursor.improves(loss, phase) and not self._spent_out(phase):  # an epoch cut short tells nothing
            return Outcome.CONVERGED
        assert status == RUNNING
        return None

    def _between_epochs(self) -> None:
        """Follow estimated noise, move points to where residuals are large. Shapes stay."""
        if self.weighing.estimating:
            new = self.weighing.updated_sigma(self.sigma, misfits(self.objective, self.theta, self.batch))
            if np.any(np.abs(np.log(new / self.sigma)) > 0.02):  # a new loss: forget what the old one had reached
                self.sigma = new
                self.cursor.best = self.cursor.last = math.inf
        rule = self.training.refinement
        if rule is not None and self.cursor.epoch % rule.every == 0:
            self.batch = refined(
                self.objective, self.theta, self.batch, self.controls(), rule, self.seed, self.cursor.epoch
            )
            self.cursor.best = self.cursor.last = math.inf

    # ---- saving

    def _save(self, state) -> None:
        arrays = flatten_state(state)
        arrays |= {f"history.{k}": v for k, v in self.history.columns.items()}
        arrays |= {f"batch.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(self.batch))}
        arrays["sigma"] = self.sigma
        meta = {"cursor": vars(self.cursor), "phases": self.history.phases}
        self.keeper.save(self.stage, arrays, meta)

    def _restore(self, arrays: dict[str, np.ndarray], meta: dict) -> dict[str, np.ndarray]:
        self.cursor = _Cursor(**meta["cursor"])
        self.history.phases = list(meta["phases"])
        self.history.columns = {k: arrays[f"history.{k}"] for k in self.history.columns}
        leaves, tree = jax.tree.flatten(self.batch)
        self.batch = jax.tree.unflatten(tree, [jnp.asarray(arrays[f"batch.{i}"]) for i in range(len(leaves))])
        self.sigma = arrays["sigma"]
        return arrays

    def _interruption(self) -> str:
        at = f"{self.history.closures} closures into stage {self.stage!r}"
        if self.keeper.directory is None:
            return f"Interrupted {at}. Nothing was saved: pass out='runs' to keep runs that can be resumed."
        return f"Interrupted {at}; saved in {self.keeper.directory.path}. Give the same call again to go on from here."
