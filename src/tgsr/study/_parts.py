"""The parts of a study: networks, trainings, sources, tasks and arms, each with the keys of its table in the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tgsr._errors import InputError, plain
from tgsr.study import _values as values
from tgsr.study._words import nearest
from tgsr.tasks import names as task_names

PROFILES = ("paper", "laptop", "smoke")
BUDGETS = ("matched", "paper")
TRAININGS = ("profile", "best", "paper")
CHANGES = ("observations", "noise", "training")  # of a source run
Readings = int | str  # a number, or "all"


@dataclass(frozen=True)
class NetworkSpec:
    """The architecture: hidden widths and activation."""

    widths: tuple[int, ...]
    activation: str = "tanh"

    def __post_init__(self) -> None:
        values.settle(self, widths=values.widths(self.widths), activation=values.text("activation", self.activation))

    @classmethod
    def of(cls, value: Any) -> NetworkSpec:
        """From hidden widths, a table, or an `MLP`."""
        if isinstance(value, cls):
            return value
        if hasattr(value, "widths") and hasattr(value, "activation"):
            return cls(tuple(value.widths), value.activation)
        return built(cls, value) if isinstance(value, Mapping) else cls(value)


@dataclass(frozen=True)
class TrainingSpec:
    """How to train: a preset, and what differs from it. The values inside the tables are those of the classes meant."""

    preset: str | None = None  # None: the profile for built-in tasks, 'best' for files
    epochs: int | None = None
    closures: int | None = None
    weights: Mapping[str, float] | None = field(default=None, hash=False)
    points: Mapping[str, Any] | None = field(default=None, hash=False)
    optimiser: tuple[Mapping[str, Any], ...] | None = field(default=None, hash=False)
    refinement: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        if self.preset is not None:
            values.one_of("preset", self.preset, TRAININGS)
        for name in ("epochs", "closures"):
            values.optional(values.whole, name, getattr(self, name), least=1)
        for name in ("weights", "points", "refinement"):
            values.settle(self, **{name: values.optional(values.table, name, getattr(self, name))})
        values.settle(self, optimiser=values.optional(values.optimisers, "optimiser", self.optimiser))

    @classmethod
    def of(cls, value: Any) -> TrainingSpec:
        """From the name of a preset, a table, or a `Training`."""
        if isinstance(value, cls):
            return value
        if type(value).__name__ == "Training" and hasattr(value, "spec"):
            return cls(**values.training_table(value.spec()))
        if isinstance(value, str):
            values.one_of("training", value, TRAININGS)
            return cls(preset=value)
        return built(cls, value)


@dataclass(frozen=True)
class SourceSpec:
    """What is different about the source runs. One of `task`, `run` and `file` may say where they come from."""

    task: str | None = None
    run: str | None = None
    file: str | None = None
    observations: Readings | None = None
    noise: float | None = None
    training: TrainingSpec | None = None

    def __post_init__(self) -> None:
        origins = [name for name in ("task", "run", "file") if getattr(self, name) is not None]
        values.settle(self, **{name: values.path(name, getattr(self, name)) for name in origins})
        if len(origins) > 1:
            raise InputError(f"names both {' and '.join(origins)}", field=origins[1], remedy="Name one of them")
        if self.task is not None:
            values.one_of("task", self.task, task_names())
        changed = [name for name in CHANGES if getattr(self, name) is not None]
        if self.run is not None and changed:
            raise InputError(
                "a finished run cannot be changed", field=changed[0], remedy="Leave it out, or leave out run"
            )
        values.optional(values.readings, "observations", self.observations)
        values.optional(values.share, "noise", self.noise)
        values.settle(self, training=values.optional(_training, "training", self.training))

    @classmethod
    def of(cls, value: Any) -> SourceSpec:
        """From a table, or the file of a problem."""
        if isinstance(value, cls):
            return value
        return cls(file=value) if isinstance(value, str) else built(cls, value)

    @property
    def origin(self) -> dict[str, str | None]:
        """Where the source runs come from, if that is said."""
        return {"task": self.task, "run": self.run, "file": self.file}

    def over(self, below: SourceSpec | None) -> SourceSpec:
        """An arm's in place of its task's: where the arm names no origin, it is still the same problem."""
        return self if below is None or any(self.origin.values()) else replace(self, **below.origin)

    def completed(self, below: SourceSpec | None) -> SourceSpec:
        """A task's with what the study says of all sources, where the task says nothing."""
        if below is None or self.run is not None:
            return self
        origin = self.origin if any(self.origin.values()) else below.origin
        changes = {name: getattr(below, name) for name in CHANGES if getattr(self, name) is None}
        return replace(self, **origin, **changes)


@dataclass(frozen=True)
class StudyTask:
    """A task of the study: a built-in one, or the problem in a file of the user's."""

    name: str
    file: str | None = None
    source: SourceSpec | None = None
    seeds: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        values.name("name", self.name)
        values.settle(self, file=values.optional(values.path, "file", self.file))
        if self.file is None and self.name not in task_names():
            remedy = f"Give its file, or a built-in task ({nearest(self.name, task_names())})"
            raise InputError(f"there is no task {self.name!r}", field="name", remedy=remedy)
        if self.file is not None and self.name in task_names():
            raise InputError(f"{self.name!r} is a built-in task", field="name", remedy="Give yours another name")
        values.settle(
            self,
            source=values.optional(_source, "source", self.source),
            seeds=values.optional(values.seeds, "seeds", self.seeds),
        )

    @property
    def builtin(self) -> bool:
        """Whether it is one of `tgsr.tasks`."""
        return self.file is None

    @classmethod
    def of(cls, value: Any) -> StudyTask:
        """From a name or a table."""
        if isinstance(value, cls):
            return value
        return cls(value) if isinstance(value, str) else built(cls, value)


@dataclass(frozen=True)
class Arm:
    """What a study compares: a method with its options, and what else is different about its runs."""

    method: str
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    budget: str | None = None
    observations: tuple[Readings, ...] | None = None
    noise: float | None = None
    network: NetworkSpec | None = None
    training: TrainingSpec | None = None
    source: SourceSpec | None = None
    tasks: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        values.text("method", self.method)
        values.settle(
            self,
            label=values.label("label", self.label or self.method),
            options=values.table("options", self.options),
            tasks=values.optional(values.texts, "tasks", self.tasks),
            **common(self),
        )

    @classmethod
    def of(cls, value: Any) -> Arm:
        """From the name of a method, a table, or an instance of a method."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value)
        if not isinstance(value, Mapping) and callable(getattr(value, "prepare", None)):
            from tgsr.study._settings import options_changed

            return cls(value.name, options=options_changed(value))
        return built(cls, value)


def built(kind: type, value: Any) -> Any:
    """A spec from a table; a key that it does not have is an error."""
    if not isinstance(value, Mapping):
        raise InputError(f"is {plain(value, 60)!r}, not a table", remedy="Write { key = value, ... }")
    known = [one.name for one in fields(kind)]
    for key in value:
        if key not in known:
            raise InputError("is not a key here", field=str(key), remedy=nearest(str(key), known))
    needed = fields(kind)[0].name if kind in (StudyTask, Arm, NetworkSpec) else None
    if needed is not None and needed not in value:
        raise InputError("is missing", field=needed)
    return kind(**value)


def each(make: Callable[[Any], Any], what: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Every entry of a list made; an error says which one."""
    out = []
    for number, value in enumerate(given, 1):
        with values.within(f"{what}[{number}]"):
            out.append(make(value))
    return tuple(out)


def _training(name: str, value: Any) -> TrainingSpec:
    with values.within(name):
        return TrainingSpec.of(value)


def _source(name: str, value: Any) -> SourceSpec:
    with values.within(name):
        return SourceSpec.of(value)


def _network(name: str, value: Any) -> NetworkSpec:
    with values.within(name):
        return NetworkSpec.of(value)


def common(spec: Any) -> dict[str, Any]:
    """What a study and an arm may both say, checked."""
    values.optional(values.share, "noise", spec.noise)
    if spec.budget is not None:
        values.one_of("budget", spec.budget, BUDGETS)
    return {
        "observations": values.optional(values.readings_list, "observations", spec.observations),
        "network": values.optional(_network, "network", spec.network),
        "training": values.optional(_training, "training", spec.training),
        "source": values.optional(_source, "source", spec.source),
    }
