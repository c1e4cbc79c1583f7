"""An audit of recorded layers: how strongly each was softened, and when its mixture branch would have opened.

Every run of a method that scores neurons keeps, for each hidden layer, the fitted mixture and the decay factors. What
another threshold would have decided follows from them, and nothing has to be trained again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

BIC, CAP = 10.0, 0.5  # the paper's threshold and cap
BIC_TRIED = (5.0, 10.0, 20.0, 40.0)
CAPS_TRIED = (0.35, 0.50, 0.65)
BRANCHES = ("gmm", "rank", "closed", "degenerate")


@dataclass(frozen=True)
class LayerAudit:
    """One hidden layer of one run."""

    task: str
    arm: str
    seed: int
    layer: int  # from 1
    layers: int
    width: int
    branch: str
    eta: float
    decay: float  # mean of 1 - gamma
    softened: int
    low_weight: float  # of the fitted mixture; NaN where none was fitted, or the scores could not be split
    delta_bic: float

    @property
    def fitted(self) -> bool:
        """Whether there is a mixture to ask about other thresholds."""
        return bool(np.isfinite(self.low_weight) and np.isfinite(self.delta_bic))

    def opens(self, threshold: float = BIC, cap: float = CAP) -> bool:
        """Whether the mixture branch opens with these constants."""
        return self.fitted and self.delta_bic > threshold and self.low_weight <= cap


def layer_audits(task: str, arm: str, seed: int, stage: Mapping[str, np.ndarray]) -> tuple[LayerAudit, ...]:
    """The layers of a run, from the arrays of its correction stage; none where nothing was scored."""
    count = sum(key.endswith(".gamma") for key in stage)
    out = []
    for number in range(1, count + 1):
        own = {key.partition(".")[2]: array for key, array in stage.items() if key.startswith(f"layer{number}.")}
        gamma, mixture = np.asarray(own["gamma"], dtype=float), own.get("mixture")
        split = mixture is not None and mixture[1] != mixture[2]  # two equal means: the scores could not be split
        weight, gain = (float(mixture[0]), float(mixture[5])) if split else (np.nan, np.nan)  # type: ignore[index]
        softened = int(np.count_nonzero(own["softened"]))
        decay = float(np.mean(1.0 - gamma))
        out.append(
            LayerAudit(task, arm, seed, number, count, len(gamma), str(own["branch"]), float(own["eta"]), decay,
                       softened, weight, gain)
        )  # fmt: skip
    return tuple(out)


@dataclass(frozen=True)
class Switching:
    """How many of the recorded layers open at one setting, and how many decide as at the paper's constants."""

    factor: str  # 'depth', 'bic_threshold' or 'low_weight_cap'
    setting: float
    open: int
    layers: int
    agree: int


def switching_audit(audits: Sequence[LayerAudit]) -> tuple[Switching, ...]:
    """By depth at the paper's constants, then by threshold, then by cap. Layers without a fit never open."""
    depths = sorted({one.layers for one in audits})
    out = [_counted("depth", depth, [one for one in audits if one.layers == depth], BIC, CAP) for depth in depths]
    out += [_counted("bic_threshold", value, audits, value, CAP) for value in BIC_TRIED]
    out += [_counted("low_weight_cap", value, audits, BIC, value) for value in CAPS_TRIED]
    return tuple(out)


def mean_decay(audits: Iterable[LayerAudit]) -> dict[int, float]:
    """By seed the mean of 1 - gamma over all hidden neurons."""
    by_seed: dict[int, list[LayerAudit]] = {}
    for one in audits:
        by_seed.setdefault(one.seed, []).append(one)
    return {
        seed: float(np.average([one.decay for one in own], weights=[one.width for one in own]))
        for seed, own in sorted(by_seed.items())
    }


def _counted(factor: str, setting: float, audits: Sequence[LayerAudit], threshold: float, cap: float) -> Switching:
    opens = [one.opens(threshold, cap) for one in audits]
    agree = sum(one.opens() == now for one, now in zip(audits, opens, strict=True))
    return Switching(factor, float(setting), sum(opens), len(opens), agree)
