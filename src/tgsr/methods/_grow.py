"""No transfer either: a narrow network is trained first and then widened. The source is never read.

On a narrow network strong steps are cheap. A wide one that computes the same function starts where it ended, and main
training has only the rest to do: a random start of that width would spend nearly all its time on the way there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tgsr._random import stream
from tgsr.loss import build_objective
from tgsr.methods._method import Prepared, Setting, numpy_layers
from tgsr.methods._ranges import Count, check_options
from tgsr.network._propagate import MLP
from tgsr.training import Start, train

Arrays = Sequence[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Grow:
    """Train a network of the same depth with at most `width` neurons a layer, widen it, and go on.

    It gets at most half of the closures, and what it knows of the unknowns by then is kept. Where the network is no
    wider than that, this is `scratch`.
    """

    name: ClassVar[str] = "grow"
    needs_source: ClassVar[bool] = False
    width: Count = 12
    """Neurons in each layer of the narrow network, at least 1."""

    def __post_init__(self) -> None:
        check_options(self)

    def prepare(self, setting: Setting) -> Prepared:
        """The narrow network's training, then its function in the wide one."""
        wide, seed = setting.objective, setting.seed
        mlp = wide.surrogate.nets[0].mlp
        narrow_mlp = MLP(tuple(min(width, self.width) for width in mlp.widths), mlp.activation)
        if narrow_mlp == mlp:
            return Prepared(Start(setting.fresh))
        training = replace(setting.training, phases=(), budget=None)
        whole = setting.training.budget or sum(phase.epochs * phase.closures for phase in setting.training.phases)
        narrow = build_objective(
            wide.problem, narrow_mlp, training.points, engine="jax" if wide.engine == "jax" else "auto"
        )
        start = Start(narrow.surrogate.initial(stream(seed, "init", 1)))
        trained = train(
            narrow, start, training, seed,
            stage="narrow", keeper=setting.keeper, progress=setting.progress, budget=whole // 2,
        )  # fmt: skip
        stages, spent = {"narrow": trained.history.arrays()}, trained.history.closures
        if not trained.outcome.ok:
            sentence = f"The narrow network's training failed, so none was grown: {trained.outcome.sentence}"
            return Prepared(Start(setting.fresh), stages, spent, trained.outcome, sentence)
        layers = [(np.asarray(w), np.asarray(b)) for w, b in narrow.surrogate.layers(trained.theta)[0]]
        theta = wide.surrogate.with_fields_network(setting.fresh, widened(layers, numpy_layers(setting, setting.fresh)))
        own = sum(w.size + b.size for w, b in layers)  # unknown fields and unknowns follow
        rest = trained.theta[own:]
        return Prepared(Start(theta.at[theta.size - rest.size :].set(rest)), stages, spent)


def widened(narrow: Arrays, fresh: Arrays) -> list[tuple[np.ndarray, np.ndarray]]:
    """The narrow layers inside wide ones: other neurons stay as drawn, but the narrow ones do not hear them."""
    out = []
    for (weight, bias), (wide_weight, wide_bias) in zip(narrow, fresh, strict=True):
        rows, columns = weight.shape
        weights, biases = wide_weight.copy(), wide_bias.copy()
        weights[rows:, :columns] = 0.0
        weights[:rows, :columns], biases[:columns] = weight, bias
        out.append((weights, biases))
    return out
