"""Paired studies of methods: what is asked for, how it is run, what came out.

Naming this package loads nothing that computes.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tgsr.study._folder import StudyFolder as StudyFolder
    from tgsr.study._parts import Arm as Arm
    from tgsr.study._parts import NetworkSpec as NetworkSpec
    from tgsr.study._parts import SourceSpec as SourceSpec
    from tgsr.study._parts import StudyTask as StudyTask
    from tgsr.study._parts import TrainingSpec as TrainingSpec
    from tgsr.study._read import read_study as read_study
    from tgsr.study._record import Found as Found
    from tgsr.study._record import Record as Record
    from tgsr.study._results import Pending as Pending
    from tgsr.study._results import StudyResults as StudyResults
    from tgsr.study._results import results_of as results_of
    from tgsr.study._run import run_study as run_study
    from tgsr.study._spec import Study as Study

_WHERE = {
    "_folder": ("StudyFolder",),
    "_read": ("read_study",),
    "_record": ("Found", "Record"),
    "_results": ("Pending", "StudyResults", "results_of"),
    "_run": ("run_study",),
    "_parts": ("Arm", "NetworkSpec", "SourceSpec", "StudyTask", "TrainingSpec"),
    "_spec": ("Study",),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"tgsr.study.{_HOME[name]}"), name)
    raise AttributeError(f"module 'tgsr.study' has no attribute {name!r}")
