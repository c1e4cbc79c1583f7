"""`explain`: what a transfer scored, softened and why, layer by layer, in words and one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tgsr._errors import InputError, plain
from tgsr.report._words import duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tgsr._result import Result
    from tgsr.methods import TgsrOptions

MOST_NAMED = 5
OTHER_SCORES = {
    "random-decay": "This is a control: its scores are random numbers, so no neuron has a reason.",
    "score-shuffled": "This is a control: scores were dealt to other neurons of the layer, so no neuron has a reason.",
    "magnitude-decay": "This is a control: the size of its incoming weights is a neuron's score.",
}
CONTROLS = {**OTHER_SCORES, "random-reset": "This is a control: softened neurons were drawn anew instead of scaled."}
UNSCORED = {
    "scratch": "It started from random weights",
    "full": "It copied every weight and bias of the source and trained all of them",
    "adapt-only": "It is a control that adapts to the target and corrects nothing",
}


@dataclass(frozen=True, eq=False)
class Layer:
    """What was decided about one hidden layer, as its run stored it. `number` counts from 1, neurons from 0."""

    number: int
    branch: str
    at_floor: int
    eta: float
    confidence: float
    score: np.ndarray
    chi: np.ndarray
    signal: np.ndarray
    protected: np.ndarray
    gamma: np.ndarray
    softened: np.ndarray
    low_sensitivity: np.ndarray  # below the layer's mean, averaged over the scoring batches
    low_variance: np.ndarray
    mixture: np.ndarray | None  # weight_low, mean_low, mean_high, sd_low, sd_high, delta BIC

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray], number: int) -> Layer:
        """Layer `number` of a correction stage."""
        own = {key.partition(".")[2]: a for key, a in arrays.items() if key.startswith(f"layer{number}.")}
        low = [(means := own[key].mean(axis=0)) < means.mean() for key in ("T", "V")]
        arrays_of = {key: own[key] for key in ("score", "chi", "signal", "protected", "gamma")}
        return cls(
            number,
            str(own["branch"]),
            int(own["at_floor"]),
            float(own["eta"]),
            float(own["confidence"]),
            **arrays_of,
            softened=own["softened"].astype(bool),
            low_sensitivity=low[0],
            low_variance=low[1],
            mixture=own.get("mixture"),
        )

    @property
    def most_softened(self) -> list[int]:
        """The neurons (from 0) with the smallest decay factors among the softened ones, at most five."""
        return [int(j) for j in np.argsort(self.gamma, kind="stable")[:MOST_NAMED] if self.softened[j]]

    def reason(self, neuron: int) -> str:
        """Why a neuron (from 0) has a low score."""
        low = [
            word
            for word, which in (("sensitivity", self.low_sensitivity), ("variance", self.low_variance))
            if which[neuron]
        ]
        return f"low {' and '.join(low)}" if low else "not low in either, but low among its layer"


@dataclass(frozen=True, eq=False)
class Explanation:
    """What a transfer did before its main training. `print` shows it in words, `plot` draws it."""

    name: str
    method: str
    text: str
    layers: tuple[Layer, ...] = ()
    options: TgsrOptions | None = None
    adaptation: Mapping[str, float] = field(default_factory=dict)
    overhead: tuple[Mapping[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def plot(self) -> Figure:
        """Per layer: scores in order, compressed scores with the fitted mixture, and every decay factor."""
        from tgsr.report._explain_figure import draw_explanation

        return draw_explanation(self)

    def as_json(self) -> dict[str, Any]:
        """Plain values; neurons count from 1."""
        names = ("weight_low", "mean_low", "mean_high", "sd_low", "sd_high", "delta_bic")
        reasoned = self.method not in OTHER_SCORES
        return {
            "name": self.name,
            "method": self.method,
            "text": self.text,
            "adaptation": dict(self.adaptation),
            "overhead": [dict(stage) for stage in self.overhead],
            "layers": [
                {
                    "layer": one.number,
                    "neurons": len(one.gamma),
                    "at_floor": one.at_floor,
                    "branch": one.branch,
                    "eta": one.eta,
                    "mixture": None if one.mixture is None else dict(zip(names, map(float, one.mixture), strict=True)),
                    "score": one.score.tolist(),
                    "signal": one.signal.tolist(),
                    "gamma": one.gamma.tolist(),
                    "softened": [int(j) + 1 for j in np.flatnonzero(one.softened)],
                    "most_softened": [
                        {"neuron": j + 1, "gamma": float(one.gamma[j]), "why": one.reason(j) if reasoned else None}
                        for j in one.most_softened
                    ],
                }
                for one in self.layers
            ],
        }


def explain(run: Result | str | Path) -> Explanation:
    """What the transfer `run` (a result, or the path of its run directory) scored, softened and why."""
    from tgsr._result import Result

    if isinstance(run, (str, Path)):
        from tgsr._runs import load

        run = load(run)
    if not isinstance(run, Result):
        raise InputError(f"{plain(run, 40)!r} is no result", field="run", remedy="Give a result or the path of a run")
    adapted, lines = _adaptation(run)
    overhead = _overhead(run)
    arrays = run.stages.get("correction", {})
    layers = tuple(Layer.of(arrays, n) for n in range(1, 1 + sum(key.endswith(".gamma") for key in arrays)))
    if not layers:
        what = UNSCORED.get(run.method, "It has its own way to begin")
        head = f"{run.name} ({run.method}): no neuron was scored or softened. {what}."
        return Explanation(run.name, run.method, "\n".join([head, *lines]), adaptation=adapted, overhead=overhead)
    options = _options(run)
    total, soft = sum(len(one.gamma) for one in layers), sum(int(one.softened.sum()) for one in layers)
    text = [f"{run.name} ({run.method}): {soft} of {total} hidden neurons were softened before main training."]
    text += [CONTROLS[run.method]] if run.method in CONTROLS else []
    text += lines
    for one in layers:
        text += _layer_words(one, len(layers), options, run.method not in OTHER_SCORES)
    if overhead:
        each = ", ".join(f"{o['stage']} {duration(o['seconds'])} and {o['closures']} closures" for o in overhead)
        text.append(
            f"Cost before main training: {each}; of {duration(run.seconds)} and {run.closures} closures in all."
        )
    return Explanation(run.name, run.method, "\n".join(text), layers, options, adapted, overhead)


def branch_words(one: Layer, options: TgsrOptions) -> str:
    """Which branch gave the signal, and why."""
    if one.branch == "degenerate":
        return "no signal: the scores tell no neuron from another"
    if one.mixture is None:
        return "signal by rank, as the options ask"
    weight, gain = float(one.mixture[0]), float(one.mixture[5])
    gains = f"two groups fit better than one by a BIC of {gain:.1f} (more than {options.bic_threshold:g} is needed)"
    share = f"the low group holds {weight:.0%} of the neurons (at most {options.low_weight_cap:.0%} may be)"
    if one.branch == "gmm":
        return f"signal by mixture: {gains}, and {share}; they are set apart with confidence {one.confidence:.2f}"
    if one.mixture[1] == one.mixture[2]:
        why = "the scores cannot be split in two groups"
    elif gain <= options.bic_threshold:
        worse = (
            f"two groups fit worse than one by a BIC of {-gain:.1f} (a gain above {options.bic_threshold:g} is needed)"
        )
        why = gains if gain > 0 else worse
    else:
        why = f"two groups are found, but {share}"
    return f"{'signal by rank' if one.branch == 'rank' else 'no signal, as the mixture alone was asked for'}: {why}"


def _layer_words(one: Layer, layers: int, options: TgsrOptions, reasoned: bool) -> list[str]:
    n, soft = len(one.gamma), int(one.softened.sum())
    floor = f"{one.at_floor} of them at the floor (below the layer's mean in sensitivity and variance alike)"
    shallow = " (shallow layers are softened less)" if options.protection == "depth" and layers > 1 else ""
    lines = [
        f"Layer {one.number} of {layers}: {n} neurons, {floor if one.at_floor else 'none at the floor'}.",
        f"  {_capital(branch_words(one, options))}. Signals from {one.signal.min():.2f} to {one.signal.max():.2f}.",
        f"  Protection leaves {one.eta:.0%} of the signal{shallow}.",
        f"  Decay factors: mean {one.gamma.mean():.3f}, least {one.gamma.min():.3f}; {soft} of {n} neurons softened, "
        f"that is by {options.softened_from:.0%} or more.",
    ]
    if soft:
        named = [
            f"{j + 1} (to {one.gamma[j]:.3f}{f', {one.reason(j)}' if reasoned else ''})" for j in one.most_softened
        ]
        same = sum(bool(g == one.gamma.min()) for g in one.gamma)
        tie = f" {same} neurons share the least factor." if same > len(named) else ""
        lines.append(f"  Softened most: neuron {'; '.join(named)}.{tie}")
    return lines


def _adaptation(run: Result) -> tuple[dict[str, float], list[str]]:
    """The numbers of the short adaptation, and a sentence on it."""
    arrays = run.stages.get("adaptation", {})
    if not len(arrays.get("loss", ())):
        return {}, []
    from tgsr.methods.tgsr._adaptation import INNER

    loss, closures = arrays["loss"], int(arrays["closures"][-1])
    epochs = -(-len(loss) // INNER)
    about = {
        "epochs": epochs,
        "closures": closures,
        "loss_first": float(loss[0]),
        "loss_last": float(loss[-1]),
    }
    share = f"{closures / run.closures:.0%} of all" if run.closures else "all there were"
    return about, [
        f"Short adaptation: {epochs} outer epoch{'s' if epochs > 1 else ''}, {closures} closures ({share}); the loss "
        f"went from {number(float(loss[0]))} after the first step to {number(float(loss[-1]))}."
    ]


def _overhead(run: Result) -> tuple[dict[str, Any], ...]:
    arrays = run.stages.get("overhead", {})
    keys = ("stage", "seconds", "closures", "peak_mib")
    rows: Sequence[Any] = (
        list(zip(*(arrays[k].tolist() for k in keys), strict=True)) if set(keys) <= arrays.keys() else []
    )
    return tuple(dict(zip(keys, row, strict=True)) for row in rows)


def _options(run: Result) -> TgsrOptions:
    """The options of the run, as its identity stores them."""
    from tgsr.methods import TgsrOptions

    stored = run.inputs[0]["method"].get("options") if run.inputs is not None else None
    return TgsrOptions(**(stored or {}))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
