"""The benchmark tasks, written as any user would write a problem: equation, exact or reference field, constants.

    case = tgsr.tasks.task("boundary-layer").case(seed=0, profile="laptop")
    result = tgsr.solve(case.problem, network=case.network, training=case.training, seed=0)

Naming a task loads nothing; asking for one loads JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tgsr.tasks._catalogue import names as names
from tgsr.tasks._catalogue import task as task

if TYPE_CHECKING:
    from tgsr.tasks._boundary_layer import boundary_layer as boundary_layer
    from tgsr.tasks._profiles import PROFILES as PROFILES
    from tgsr.tasks._profiles import Profile as Profile
    from tgsr.tasks._profiles import as_profile as as_profile
    from tgsr.tasks._task import Physics as Physics
    from tgsr.tasks._task import Task as Task
    from tgsr.tasks._task import TaskCase as TaskCase

_HOME = {
    "boundary_layer": "tgsr.tasks._boundary_layer",
    **dict.fromkeys(("PROFILES", "Profile", "as_profile"), "tgsr.tasks._profiles"),
    **dict.fromkeys(("Physics", "Task", "TaskCase"), "tgsr.tasks._task"),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tgsr.tasks' has no attribute {name!r}")
