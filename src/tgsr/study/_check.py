"""Whether a study makes sense to what would carry it out: methods and their options, networks, trainings, files."""

from __future__ import annotations

import os

from tgsr._errors import InputError, shown_path
from tgsr.study import _values as values
from tgsr.study._grid import labels
from tgsr.study._parts import Arm, SourceSpec
from tgsr.study._settings import method_of, network_of, training_of
from tgsr.study._spec import Study
from tgsr.tasks import as_profile
from tgsr.training import Training


def checked(study: Study) -> Study:
    """`study`; errors name the key."""
    profile = _training(study)
    _settings(study, profile)
    for task in study.tasks:
        with values.within(f"task {task.name}"):
            if task.file is not None:
                _file("file", task.file)
            if task.source is not None:
                _source(task.source, profile)
    for place, method in enumerate(study.methods, 1):
        with values.within(f"methods[{place}]"):
            method_of(method, {})
    for place, arm in enumerate(study.arms, 1):
        with values.within(f"arm[{place}]"):
            method_of(arm.method, arm.options)
            _settings(arm, profile)
    shown = [label for arm in study.all_arms for label, _ in labels(arm, study.observations)]
    values.unique("label", shown)
    return study


def _training(study: Study) -> Training | None:
    """A training of the study's profile, if it has one: which task's does not matter for what may be changed."""
    builtin = [task.name for task in study.tasks if task.builtin]
    return as_profile(study.profile).training(builtin[0], "target") if builtin else None


def _settings(spec: Study | Arm, profile: Training | None) -> None:
    if spec.network is not None:
        network_of(spec.network)
    if spec.training is not None:
        with values.within("training"):
            training_of(spec.training, profile)
    if spec.source is not None:
        _source(spec.source, profile)


def _source(source: SourceSpec, profile: Training | None) -> None:
    with values.within("source"):
        if source.file is not None:
            _file("file", source.file)
        if source.run is not None and not os.path.exists(source.run):
            raise InputError("there is no such folder", field="run", remedy=f"Check {shown_path(source.run)}")
        if source.training is not None:
            with values.within("training"):
                training_of(source.training, None if source.file else profile)


def _file(field: str, given: str) -> None:
    head, colon, tail = given.rpartition(":")
    path = head if colon and head.endswith(".py") else given
    if not path.endswith(".py"):
        raise InputError("is not a Python file (.py)", field=field, remedy="Give the file that defines the problem")
    if not os.path.isfile(path):
        raise InputError("there is no such file", field=field, remedy=f"Check {shown_path(path)}")
    if path is head and not tail.isidentifier():
        raise InputError(f"{tail!r} cannot be a variable", field=field, remedy="Write FILE.py:name")
