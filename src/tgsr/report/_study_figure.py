"""A figure of a study, and the scene that the figures of a task are drawn in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tgsr.report._arms import ArmStyle, main_arms, paper_number
from tgsr.report._panel import Panel
from tgsr.report._study_curves import Runs
from tgsr.report._task_view import TaskView
from tgsr.study._results import StudyResults
from tgsr.study._shipped import shipped_specs


@dataclass(frozen=True)
class StudyFigure:
    """Panels that belong together. `words` say what they show and how to read them; numbers are in the panels' words.

    `key` is unique in a report and fit for a file name. `section` is that of the tables it belongs to.
    """

    key: str
    section: str
    title: str
    words: str
    panels: tuple[Panel, ...]
    columns: int


@dataclass(frozen=True, eq=False)
class Scene:
    """A task of a study, how its arms are drawn, and its runs where they are there."""

    results: StudyResults
    view: TaskView
    styles: Mapping[str, ArmStyle]
    runs: Runs

    @property
    def task(self) -> str:
        """The task's name."""
        return self.view.task

    @property
    def leading(self) -> str:
        """The arm that others are compared with."""
        return self.view.reference

    @cached_property
    def arms(self) -> tuple[str, ...]:
        """Those that belong side by side."""
        return main_arms(self.results, self.task)

    def paper(self, arm: str, column: str) -> float:
        """The paper's mean; NaN where it has none."""
        return float(paper_number(self.results, self.task, arm, column).value)

    def figure(
        self, kind: str, title: str, words: str, panels: Sequence[Panel | None], columns: int = 2
    ) -> list[StudyFigure]:
        """The figure of the panels that could be made; none where there is nothing to draw."""
        made = tuple(panel for panel in panels if panel is not None)
        if not made:
            return []
        return [StudyFigure(f"{self.view.key}-{kind}", self.task, title, words, made, min(columns, len(made)))]

    def ablation(
        self, kind: str, title: str, words: str, panels: Sequence[Panel | None], columns: int = 2
    ) -> list[StudyFigure]:
        """The same, in the section of the ablation where the study is one that ships."""
        section = self.results.name if self.results.name in shipped_specs() else self.task
        found = self.figure(kind, title, words, panels, columns)
        return [StudyFigure(f.key, section, f.title, f.words, f.panels, f.columns) for f in found]
