"""What a transfer method is: from a fresh start and a source network to where main training begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError
from tgsr._outcomes import Outcome
from tgsr.loss import Objective
from tgsr.network._saved import SavedNetwork
from tgsr.network._start import transferred_arrays
from tgsr.training import Keeper, Progress, Start, Training


@dataclass(frozen=True)
class Setting:
    """Everything a method may use. Unknowns in `fresh` stand at the target's own first guess, always."""

    objective: Objective
    fresh: jax.Array  # theta from the stream 'init'
    source: SavedNetwork | None
    seed: int
    training: Training
    main_epochs: int  # outer epochs of main training, E_main
    keeper: Keeper
    progress: Callable[[Progress], None] | None = None


@dataclass(frozen=True)
class Prepared:
    """Where main training begins: theta, what is trained, what draws theta back, and what happened on the way."""

    start: Start
    stages: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    spent: int = 0  # closures used, or reserved, before main training
    failed: Outcome | None = None  # how preparation ended, if not well: main training is left out
    sentence: str = ""  # what failed, where, and what to do

    def arrays(self) -> dict[str, np.ndarray]:
        """For storage: a run that resumes in main training need not prepare again."""
        start = {k: np.asarray(v) for k, v in vars(self.start).items() if v is not None}
        stages = {f"stage/{s}/{k}": np.asarray(v) for s, arrays in self.stages.items() for k, v in arrays.items()}
        return {**{f"start/{k}": v for k, v in start.items()}, **stages, "spent": np.array(self.spent)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Prepared:
        """Back from storage."""
        start = {k.split("/", 1)[1]: v for k, v in arrays.items() if k.startswith("start/")}
        stages: dict[str, dict[str, np.ndarray]] = {}
        for key, value in arrays.items():
            if key.startswith("stage/"):
                _, stage, name = key.split("/", 2)
                stages.setdefault(stage, {})[name] = value
        theta = jnp.asarray(start.pop("theta"))
        return cls(Start(theta, **start), stages, int(arrays["spent"]))


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass with a name and this one function.

    A method that trains another loss than the target's own, or other numbers than weights and unknowns, has a second
    one, `objective(own: Objective) -> Objective`. What it returns is what `prepare` sees and main training minimises.
    One that reads no source network says so by `needs_source = False`.
    """

    @property
    def name(self) -> str:
        """What the catalogue and the tables call it."""
        ...

    def prepare(self, setting: Setting) -> Prepared:
        """From the fresh start to where main training begins."""
        ...


def needs_source(method: Method) -> bool:
    """Whether a method reads the source network."""
    return bool(getattr(method, "needs_source", True))


def source_of(setting: Setting, method: str) -> SavedNetwork:
    """The source network, or the error that none was given."""
    if setting.source is None:
        raise InputError(f"method {method!r} needs a source network", field="source", remedy="Give a result or a path")
    return setting.source


@dataclass(frozen=True)
class _Layers:
    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]


def copied(setting: Setting, method: str, match: str = "exact") -> jax.Array:
    """theta with weights and biases of the source; unknowns and unknown fields stay fresh."""
    source, surrogate = source_of(setting, method), setting.objective.surrogate
    layers = surrogate.layers(setting.fresh)[0]
    net = surrogate.nets[0]
    fresh = _Layers(tuple(np.asarray(w) for w, _ in layers), tuple(np.asarray(b) for _, b in layers))
    weights, biases = transferred_arrays(
        source,
        setting.objective.problem.domain.names,
        fresh,
        match,  # type: ignore[arg-type]
        fields=net.fields,
        activation=net.mlp.activation,
    )
    return surrogate.with_fields_network(setting.fresh, list(zip(weights, biases, strict=True)))


def main_objective(method: Method, own: Objective) -> Objective:
    """What main training minimises: the target's own loss, unless the method has another."""
    change: Callable[[Objective], Objective] | None = getattr(method, "objective", None)
    return own if change is None else change(own)


def numpy_layers(setting: Setting, theta: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
    """The layers of the fields' network as arrays."""
    return [(np.asarray(w), np.asarray(b)) for w, b in setting.objective.surrogate.layers(theta)[0]]


def trained_only(setting: Setting, trains: Callable[[int, str], bool]) -> np.ndarray:
    """1 where theta is trained: `trains(layer, kind)` says which arrays of the fields' network are, layers from 0.

    `kind` is 'weight' or 'bias'. Unknowns and unknown fields, which no source knows, always are.
    """
    mask = np.ones(setting.objective.surrogate.size)
    for name, where in setting.objective.surrogate.entries().items():
        net, _, rest = name.partition(".")
        if net == "net0":
            layer, kind = rest.split(".")
            mask[where] = trains(int(layer), kind)
    return mask
