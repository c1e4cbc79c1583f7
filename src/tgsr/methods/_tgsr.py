"""TGSR-PINN (the paper's Algorithm 1) and the controls that change one step of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tgsr._outcomes import Outcome
from tgsr._random import stream
from tgsr.loss import Batch
from tgsr.methods._method import Prepared, Setting, copied, numpy_layers
from tgsr.methods._overhead import Overhead
from tgsr.methods.tgsr._adaptation import adapt
from tgsr.methods.tgsr._controls import magnitude_scores, random_scores, shuffled
from tgsr.methods.tgsr._correction import (
    LayerCorrection,
    Layers,
    Rescore,
    corrections,
    random_reset,
    soft_decay,
    stage_arrays,
)
from tgsr.methods.tgsr._decay import DecayError
from tgsr.methods.tgsr._evidence import collect
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.methods.tgsr._scores import ScoreError
from tgsr.training import Start, Trained

Correct = Callable[[Layers, Sequence[LayerCorrection]], Layers]


def algorithm(
    setting: Setting, name: str, options: TgsrOptions, *, rescore: Rescore | None = None, correct: Correct | None = None
) -> Prepared:
    """Algorithm 1. A control passes another `rescore` (which score) or `correct` (what is done to the neurons)."""
    objective, cost = setting.objective, Overhead()
    theta = copied(setting, name)  # 1: weights only; unknowns at their own first guess
    with cost.stage("adaptation"):
        adapted = adapt(setting, theta, options)  # 2: short target adaptation
    spent = cost.closures["adaptation"] = adapted.history.closures
    stages = {"adaptation": adapted.history.arrays()}
    if not adapted.outcome.ok:
        return failed_adaptation(adapted, stages)
    spent += options.batches
    try:
        with cost.stage("scoring", closures=options.batches):  # 3-4: K scoring batches, the state frozen
            evidence = [collect(objective, adapted.theta, batch, adapted.controls, options)
                        for batch in scoring_batches(setting, adapted, options)]  # fmt: skip
        with cost.stage("correction"):  # 5-6: score, signal, protection, decay factor, all from the adapted state
            layers = numpy_layers(setting, adapted.theta)
            found = corrections(evidence, layers, options, rescore)
            corrected = (correct or (lambda rows, each: soft_decay(rows, each, options)))(layers, found)
    except (ScoreError, DecayError) as error:
        failed = Outcome.SCORING if isinstance(error, ScoreError) else Outcome.FAILED
        return Prepared(Start(adapted.theta), stages, spent, failed, f"Neuron scoring failed: {error}")
    stages |= {"correction": stage_arrays(evidence, found), "overhead": cost.arrays()}
    return Prepared(Start(objective.surrogate.with_fields_network(adapted.theta, corrected)), stages, spent)


def scoring_batches(setting: Setting, adapted: Trained, options: TgsrOptions) -> Iterator[Batch]:
    """K batches of the size of training's, with the same readings."""
    for k in range(options.batches):
        yield setting.objective.draw(setting.seed, "scoring", k, keep=adapted.batch)


def failed_adaptation(adapted: Trained, stages: Mapping[str, Mapping[str, np.ndarray]]) -> Prepared:
    """The end of a transfer whose adaptation did not work out."""
    sentence = f"The short adaptation failed, so nothing was scored or trained: {adapted.outcome.sentence}"
    return Prepared(Start(adapted.theta), stages, adapted.history.closures, adapted.outcome, sentence)


@dataclass(frozen=True)
class Tgsr:
    """Target-guided selective reweighting: adapt briefly, score neurons, soften the ones the target does not use."""

    name: ClassVar[str] = "tgsr"
    options: TgsrOptions = field(default_factory=TgsrOptions)

    def prepare(self, setting: Setting) -> Prepared:
        """Algorithm 1 up to main training."""
        return algorithm(setting, self.name, self.options)


@dataclass(frozen=True)
class AdaptOnly:
    """Control: the short adaptation alone, then main training from a fresh optimiser."""

    name: ClassVar[str] = "adapt-only"
    options: TgsrOptions = field(default_factory=TgsrOptions)

    def prepare(self, setting: Setting) -> Prepared:
        """Stage 2 only; the closures of scoring are reserved all the same."""
        adapted = adapt(setting, copied(setting, self.name), self.options)
        stages = {"adaptation": adapted.history.arrays()}
        if not adapted.outcome.ok:
            return failed_adaptation(adapted, stages)
        return Prepared(Start(adapted.theta), stages, adapted.history.closures + self.options.batches)


@dataclass(frozen=True)
class RandomReset:
    """Control: the neurons that TGSR would soften are drawn anew instead."""

    name: ClassVar[str] = "random-reset"
    options: TgsrOptions = field(default_factory=TgsrOptions)

    def prepare(self, setting: Setting) -> Prepared:
        """Algorithm 1 with its last step replaced by a random reset."""

        def correct(layers: Layers, found: Sequence[LayerCorrection]) -> Layers:
            return random_reset(layers, found, lambda layer, neuron: stream(setting.seed, "resets", layer, neuron))

        return algorithm(setting, self.name, self.options, correct=correct)


@dataclass(frozen=True)
class RandomDecay:
    """Control: scores are random numbers, through the same signal and map."""

    name: ClassVar[str] = "random-decay"
    options: TgsrOptions = field(default_factory=TgsrOptions)

    def prepare(self, setting: Setting) -> Prepared:
        """Algorithm 1 with scores U[0, 1)."""

        def rescore(layer: int, score: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return random_scores(len(score), stream(setting.seed, "resets", layer))

        return algorithm(setting, self.name, self.options, rescore=rescore)


@dataclass(frozen=True)
class ScoreShuffled:
    """Control: the right scores on the wrong neurons of the same layer."""

    name: ClassVar[str] = "score-shuffled"
    options: TgsrOptions = field(default_factory=TgsrOptions)

    def prepare(self, setting: Setting) -> Prepared:
        """Algorithm 1 with scores permuted within each layer."""

        def rescore(layer: int, score: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return shuffled(score, stream(setting.seed, "resets", layer))

        return algorithm(setting, self.name, self.options, rescore=rescore)


@dataclass(frozen=True)
class MagnitudeDecay:
    """Control: the size of a neuron's incoming row stands for its score."""

    name: ClassVar[str] = "magnitude-decay"
    options: TgsrOptions = field(default_factory=TgsrOptions)

    def prepare(self, setting: Setting) -> Prepared:
        """Algorithm 1 with row norms for scores; neither source nor target is asked."""

        def rescore(layer: int, score: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return magnitude_scores(rows)

        return algorithm(setting, self.name, self.options, rescore=rescore)
