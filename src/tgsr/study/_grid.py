"""All runs of a study, as recipes: first the sources, one per task and seed for all arms that ask for the same.

A recipe holds whatever a run depends on, and nothing else: no label, no place on disk, no truth.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from tgsr._errors import InputError
from tgsr.storage import canonical_json
from tgsr.study._parts import Arm, NetworkSpec, Readings, SourceSpec, StudyTask, TrainingSpec
from tgsr.study._spec import Study

SOURCE = "source"


@dataclass(frozen=True)
class Trial:
    """One run: its place in the study (`arm`), and the recipe. None: as the problem or its profile says."""

    arm: str
    task: str
    role: str
    seed: int
    method: str = "scratch"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    profile: str = ""  # of built-in tasks
    budget: str | None = None  # of targets
    observations: int | None = None
    noise: float | None = None
    network: NetworkSpec | None = None
    training: TrainingSpec | None = None
    file: str | None = None  # the user's, relative to the study's folder
    source: str | None = None  # the key of the source trial
    given: str | None = None  # or the path of a finished run, relative to the study's folder

    def recipe(self) -> dict[str, Any]:
        """What identifies the run within the study, without what is left at its default."""
        found = {name: value for name, value in asdict(self).items() if name != "arm"}
        return {name: _bare(value) for name, value in found.items() if value not in (None, {}, "")}

    @cached_property
    def key(self) -> str:
        """A readable beginning and 12 hex digits of the recipe."""
        digest = sha256(canonical_json(self.recipe(), indent=None).encode("ascii")).hexdigest()[:12]
        return f"{self.task[:30]}.{re.sub('[^A-Za-z0-9_-]', '-', self.method)[:20]}.{self.seed}.{self.role}-{digest}"

    def as_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return {"arm": self.arm, **self.recipe()}

    @classmethod
    def from_json(cls, table: Mapping[str, Any], arm: str = "") -> Trial:
        """The trial of a recipe."""
        known = {one.name for one in fields(cls)}
        found = {"arm": arm, **{key: value for key, value in table.items() if key in known}}
        if found.get("network") is not None:
            found["network"] = NetworkSpec(**found["network"])
        if found.get("training") is not None:
            found["training"] = TrainingSpec(**found["training"])
        return cls(**found)


def _bare(value: Any) -> Any:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def expand(study: Study, folder: Path) -> tuple[Trial, ...]:
    """The trials of a study kept in `folder`: sources first, then targets by task, seed and arm. Loads JAX."""
    from tgsr.methods import needs_source
    from tgsr.study._settings import method_of, options_changed

    sources: dict[str, Trial] = {}
    targets: list[Trial] = []
    arms = []
    for arm in study.all_arms:
        method = method_of(arm.method, arm.options)
        arms.append((arm, options_changed(method), needs_source(method)))
    for task in study.tasks:
        chosen = [one for one in arms if one[0].tasks is None or task.name in one[0].tasks]
        for seed in task.seeds or study.seeds:
            for arm, options, reads in chosen:
                source = _source(study, task, arm, seed, folder, reads)
                if isinstance(source.get("source"), Trial):
                    one = source["source"]
                    source = {"source": sources.setdefault(one.key, _labelled(one, arm, sources)).key}
                for label, readings in labels(arm, study.observations):
                    targets.append(_target(study, task, arm, seed, label, readings, options, source, folder))
    return (*sources.values(), *targets)


def labels(arm: Arm, readings: tuple[Readings, ...]) -> Iterator[tuple[str, Readings]]:
    """The label of an arm with each number of readings; the first number keeps the arm's own."""
    for place, number in enumerate(arm.observations or readings):
        word = {0: "no readings", "all": "all readings"}.get(number, f"{number} readings")
        yield (f"{arm.label}, {word}" if place else arm.label), number


def _target(
    study: Study, task: StudyTask, arm: Arm, seed: int, label: str, readings: Readings,
    options: dict[str, Any], source: dict[str, Any], folder: Path,
) -> Trial:  # fmt: skip
    place = _place(study, task.name, task.file, folder)
    origin = _origin(study, task, arm)
    noise = study.noise if arm.noise is None else arm.noise
    if noise is not None and not task.builtin:
        raise InputError(
            f"is for built-in tasks, and {task.name!r} is yours", field="noise", remedy="State the noise in its file"
        )
    return Trial(
        arm=label,
        role="target",
        seed=seed,
        method=arm.method,
        options=options,
        budget=arm.budget or study.budget or _profile_budget(study, task),
        observations=_number(readings, study, task),
        noise=noise,
        network=arm.network or study.network or _shared_network(study, task, origin),
        training=arm.training or study.training,
        **place,
        **source,
    )


def _source(study: Study, task: StudyTask, arm: Arm, seed: int, folder: Path, reads: bool) -> dict[str, Any]:
    """Where a target's source comes from: a trial, or a finished run, whose architecture holds for all arms."""
    origin = _origin(study, task, arm)
    if origin.run is not None and (reads or not (arm.network or study.network)):
        return {"given": _relative(origin.run, folder)}
    if not reads:
        return {}
    if not task.builtin and not origin.file and not origin.task:
        what = f"{arm.label!r} reads a source network, and task {task.name!r} has none"
        raise InputError(what, field="source", remedy='Write source = "file.py" in its [[task]]')
    name = origin.task or task.name
    own = task if origin.task is None or origin.file else StudyTask(name)
    if origin.noise is not None and origin.file:
        raise InputError("is for built-in tasks", field="source.noise", remedy="State the noise in the file")
    readings = origin.observations
    trial = Trial(
        arm=SOURCE,
        role="source",
        seed=seed,
        observations=None if readings is None else _number(readings, study, own),
        noise=origin.noise,
        network=arm.network or study.network or _shared_network(study, task, origin),
        training=origin.training,
        **_place(study, name, origin.file, folder),
    )
    return {"source": trial}


def _origin(study: Study, task: StudyTask, arm: Arm) -> SourceSpec:
    """What is said about the source: by the arm, else by the task, else by the study."""
    found = study.source if task.source is None else task.source.completed(study.source)
    found = found if arm.source is None else arm.source.over(found)
    return found or SourceSpec()


def _place(study: Study, name: str, file: str | None, folder: Path) -> dict[str, Any]:
    """Task and profile, or task and file."""
    return {"task": name, "profile": study.profile} if file is None else {"task": name, "file": _relative(file, folder)}


def _relative(path: str, folder: Path) -> str:
    return Path(os.path.relpath(os.path.abspath(path), folder)).as_posix()


def _number(readings: Readings, study: Study, task: StudyTask) -> int | None:
    """How many readings; None is all that a file has."""
    if readings != "all":
        return int(readings)
    if not task.builtin:
        return None
    from tgsr.tasks import as_profile

    return as_profile(study.profile).readings


def _profile_budget(study: Study, task: StudyTask) -> str:
    from tgsr.tasks import as_profile

    return as_profile(study.profile).budget if task.builtin else "matched"


def _shared_network(study: Study, task: StudyTask, origin: SourceSpec) -> NetworkSpec | None:
    """The profile's network for both sides where one of them is a file and the other a built-in task."""
    if origin.run is not None or task.builtin != bool(origin.file):
        return None
    if task.builtin or origin.task:
        from tgsr.tasks import as_profile

        return NetworkSpec.of(as_profile(study.profile).network())
    return None


def _labelled(source: Trial, arm: Arm, others: Mapping[str, Trial]) -> Trial:
    """A source that is not the first of its task and seed is told apart by the arm that asked for it."""
    twin = any((one.task, one.seed) == (source.task, source.seed) for one in others.values())
    return replace(source, arm=f"{SOURCE} of {arm.label}") if twin else source
