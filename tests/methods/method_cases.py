"""A decay law that is solved in moments, and ways to look into a transfer without changing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import tgsr
from tgsr import _estimates, _solve
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Objective, build_objective
from tgsr.methods import Method, Setting, as_method, main_objective, resolved_budget
from tgsr.network._saved import SavedNetwork
from tgsr.training import Keeper, Start, Trained, Training, train

WIDTHS = (5, 5)
TRAINING = Training(phases=(tgsr.LevenbergMarquardt(epochs=5, inner=3),), points=tgsr.Points(interior=12))
SEED = 4


@cache
def target() -> tgsr.Problem:
    rng = np.random.default_rng(1)
    t = rng.uniform(0.0, 2.0, 9)
    return tgsr.Problem(
        "decay",
        coordinates={"t": (0.0, 2.0)},
        fields=["u"],
        unknowns=[tgsr.Unknown("k", 0.5, positive=True)],
        residuals=[lambda u, k: u.t + k * u],
        conditions=[tgsr.Initial("u", 1.0)],
        data=[tgsr.Data({"t": t}, {"u": np.exp(-1.5 * t) + 0.01 * rng.normal(size=9)}, 0.01)],
    )


@cache
def own_objective() -> Objective:
    with computing():
        return build_objective(target(), tgsr.MLP(WIDTHS), TRAINING.points)


@cache
def method_objective(method: Method) -> Objective:
    """One objective per method's loss, so that programs are compiled once."""
    return main_objective(method, own_objective())


@cache
def source() -> SavedNetwork:
    """A network that nobody trained, with biases."""
    with computing():
        surrogate = own_objective().surrogate
        theta = surrogate.initial(stream(99, "init"))
        theta = theta + 0.1 * jnp.asarray(stream(99, "noise").normal(size=theta.shape))
        return _estimates.saved_network(target(), surrogate.nets[0], surrogate.layers(theta)[0])


def setting(method: Method | None = None, source: Any = None) -> Setting:
    objective = own_objective() if method is None else method_objective(method)
    whole = resolved_budget(own_objective(), TRAINING, "matched")
    fresh = objective.surrogate.initial(stream(SEED, "init"))
    return Setting(objective, fresh, source, SEED, whole.training, whole.main_epochs, Keeper())


@dataclass
class Seen:
    """What a transfer did: its result, where main training began and ended, and the streams it drew from."""

    result: tgsr.Result
    start: Start
    trained: Trained
    streams: list[tuple[Any, ...]] = field(default_factory=list)


Observe = Callable[..., Seen]


def observer(monkeypatch: pytest.MonkeyPatch) -> Observe:
    """`observe(method, ...)` is a transfer to the decay law."""

    def observe(method: str | Method, **options: Any) -> Seen:
        seen: list[Any] = []
        streams: list[tuple[Any, ...]] = []

        def main_training(objective: Objective, start: Start, *args: Any, **named: Any) -> Trained:
            seen[:] = [start, train(objective, start, *args, **named)]
            return seen[1]

        def noted(*which: Any) -> np.random.Generator:
            streams.append(which)
            return stream(*which)

        with monkeypatch.context() as patch:
            patch.setattr(_solve, "build_objective", lambda *_, **__: own_objective())
            patch.setattr(_solve, "main_objective", lambda method, own: method_objective(method))
            patch.setattr(_solve, "train", main_training)
            patch.setattr(_solve, "uncertainty", lambda *_: None)  # compiles for longer than everything else runs
            for module in ("tgsr._solve", "tgsr.loss._objective", "tgsr.methods._tgsr"):
                patch.setattr(f"{module}.stream", noted)
            known = {"source": source(), "training": TRAINING, "seed": SEED} | options
            result = tgsr.transfer(target(), method=as_method(method), **known)
        return Seen(result, *seen, streams)

    return observe
