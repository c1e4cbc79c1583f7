"""What a study is asked for: tasks, arms, seeds, and what holds for all of them. Frozen, printable, comparable.

The fields are the keys of a study's file (see `docs/studies.md`). Nothing heavy is loaded here: whether methods, their
options and trainings make sense is asked by `checked`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tgsr._errors import InputError, plain
from tgsr.study import _values as values
from tgsr.study._parts import PROFILES, Arm, NetworkSpec, Readings, SourceSpec, StudyTask, TrainingSpec, common, each
from tgsr.study._words import nearest
from tgsr.tasks import names as task_names

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from distributed import Client

    from tgsr.study._progress import StudyProgress
    from tgsr.study._results import StudyResults


@dataclass(frozen=True)
class Study:
    """A paired comparison of methods: the same tasks, seeds, readings, points, first guesses and source for all.

    study = tgsr.Study(name="layer", tasks=["boundary-layer"], methods=["scratch", "full", "tgsr"], seeds=10)
    results = study.run(jobs=2)
    """

    name: str
    tasks: tuple[StudyTask, ...] = ()
    methods: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = ()
    seeds: tuple[int, ...] = 3  # type: ignore[assignment]  # a number is counted from 0
    profile: str = "laptop"
    budget: str | None = None
    observations: tuple[Readings, ...] = ("all",)
    noise: float | None = None
    network: NetworkSpec | None = None
    training: TrainingSpec | None = None
    source: SourceSpec | None = None
    time_limit: float | None = None
    attempts: int = 5
    title: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        values.name("name", self.name)
        values.one_of("profile", self.profile, PROFILES)
        values.optional(values.positive, "time_limit", self.time_limit)
        values.whole("attempts", self.attempts, least=1, most=1000)
        tasks, methods = values.listed("tasks", self.tasks), values.listed("methods", self.methods)
        methods = each(lambda m: m if isinstance(m, str) else Arm.of(m), "methods", methods)
        listed = {
            "tasks": each(StudyTask.of, "tasks", [t for t in tasks if isinstance(t, str)])
            + each(StudyTask.of, "task", [t for t in tasks if not isinstance(t, str)]),
            "methods": tuple(values.text("methods", m) for m in methods if isinstance(m, str)),
            "arms": tuple(m for m in methods if isinstance(m, Arm))
            + each(Arm.of, "arm", values.listed("arms", self.arms)),
            "observations": ("all",) if self.observations is None else self.observations,
            "title": values.text("title", self.title, empty=True),
            "about": values.text("about", self.about, empty=True),
            "seeds": values.seeds("seeds", self.seeds),
        }
        values.settle(self, **listed)
        values.settle(self, **common(self))
        self._complete()

    def _complete(self) -> None:
        """Refuse a study without runs, and names that mean two things."""
        if not self.tasks:
            raise InputError("names no task", field="tasks", remedy=f"The built-in ones are {', '.join(task_names())}")
        if not self.all_arms:
            raise InputError("names no method", field="methods", remedy='Write methods = ["scratch", "full", "tgsr"]')
        values.unique("tasks", [task.name for task in self.tasks])
        values.unique("label", [arm.label for arm in self.all_arms])
        known = [task.name for task in self.tasks]
        for number, arm in enumerate(self.arms, 1):
            for name in arm.tasks or ():
                if name not in known:
                    what = f"{plain(name, 60)!r} is no task of this study"
                    raise InputError(what, field=f"arm[{number}].tasks", remedy=nearest(name, known))

    @property
    def all_arms(self) -> tuple[Arm, ...]:
        """The methods, each with its default options, then the arms."""
        return tuple(Arm(method) for method in self.methods) + self.arms

    def run(
        self,
        *,
        jobs: int | None = None,
        out: str | os.PathLike[str] = "studies",
        client: Client | None = None,
        executor: Executor | None = None,
        scheduler: str | None = None,
        scheduler_file: str | os.PathLike[str] | None = None,
        insecure: bool = False,
        threads: int = 1,
        again: bool = False,
        progress: Callable[[StudyProgress], None] | None = None,
    ) -> StudyResults:
        """Run what is missing and return all results. The same call again goes on where it stopped.

        By default `jobs` (2) processes of this machine carry the runs out, each with `threads` processor threads; or
        the workers of a Dask `client` or scheduler, or any `executor` of `concurrent.futures`. `jobs=0` computes in
        this very process, one run after the other and without time limits. `again` gives runs that crashed or took too
        long another chance. The study lies in `out`/name.
        """
        from tgsr.study._run import run_study

        return run_study(
            self, jobs=jobs, out=out, client=client, executor=executor, scheduler=scheduler,
            scheduler_file=scheduler_file, insecure=insecure, threads=threads, again=again, progress=progress,
        )  # fmt: skip
