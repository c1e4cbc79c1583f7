"""TGSR-PINN (the paper's Algorithm 1) and the controls that change one step of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._random import stream
from tgsr.training import Start
from tgsr.methods._method import Prepared, Setting, copied
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
from tgsr.methods.tgsr._evidence import MAIN, collect
from tgsr.methods.tgsr._options import TgsrOptions

Correct = Callable[[Layers, Sequence[LayerCorrection]], Layers]


def algorithm(
    setting: Setting, name: str, options: TgsrOptions, *, rescore: Rescore | None = None, correct: Correct | None = None
) -> Prepared:
    """Algorithm 1. A control passes another `rescore` (which score) or `correct` (what is done to the neurons)."""
    objective, seed = setting.objective, setting.seed
    theta = copied(setting, name)  # 1: weights only; unknowns at their own first guess
    adapted = adapt(setting, theta, options)  # 2: short target adaptation
    if not adapted.outcome.ok:
        return Prepared(Start(adapted.theta), spent=adapted.history.closures, failed=adapted.outcome)
    evidence = [  # 3-4: K scoring batches, the state frozen
        collect(objective, adapted.theta, objective.draw(seed, "scoring", k, keep=adapted.batch), adapted.controls, options)
        for k in range(options.batches)
    ]
    layers = numpy_layers(setting, adapted.theta)
    found = corrections(evidence, layers, options, rescore)  # 5-6: score, signal, protection, decay factor
    corrected = (correct or (lambda rows, each: soft_decay(rows, each, options)))(layers, found)
    return Prepared(
        Start(with_layers(setting, adapted.theta, corrected)),
        stages={"adaptation": adapted.history.arrays(), "correction": stage_arrays(evidence, found)},
        spent=adapted.history.closures + options.batches,
    )


def numpy_layers(setting: Setting, theta: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
    """The layers of the fields' network as arrays."""
    return [(np.asarray(w), np.asarray(b)) for w, b in setting.objective.surrogate.layers(theta)[MAIN]]


def with_layers(setting: Setting, theta: jax.Array, layers: Layers) -> jax.Array:
    """theta with the fields' network replaced."""
    surrogate = setting.objective.surrogate
    all_layers = surrogate.layers(theta)
    all_layers[MAIN] = [(jnp.asarray(w), jnp.asarray(b)) for w, b in layers]
    return surrogate.flatten(all_layers, surrogate.raw(theta))  # type: ignore[arg-type]


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
        failed = None if adapted.outcome.ok else adapted.outcome
        stages = {"adaptation": adapted.history.arrays()}
        return Prepared(Start(adapted.theta), stages, adapted.history.closures + self.options.batches, failed)


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
