"""The tasks by name. Listing them loads nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tgsr._errors import InputError, plain

if TYPE_CHECKING:
    from tgsr.tasks._task import Task

_NAMES = (
    "boundary-layer",
    "allen-cahn-burgers",
    "reaction-diffusion",
    "smooth-advection-diffusion",
    "advected-pulse",
)


def names() -> tuple[str, ...]:
    """The names of all tasks, in the order of the report."""
    return _NAMES


def task(name: str) -> Task:
    """The task of that name."""
    if name not in _NAMES:
        raise InputError(
            f"there is no task {plain(name, 40)!r}", field="task", remedy=f"The tasks are {', '.join(_NAMES)}"
        )
    return importlib.import_module(f"tgsr.tasks._{name.replace('-', '_')}").TASK
