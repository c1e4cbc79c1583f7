"""What a user sees while a run computes: a few lines on the terminal, renewed in place. Never a truth."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tgsr._errors import plain

if TYPE_CHECKING:
    from rich.text import Text

    from tgsr.problem import Problem
    from tgsr.training import Progress


def seconds(value: float) -> str:
    """A duration as people say it."""
    if value < 100:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 6000 else f"{value / 3600:.1f} h"


class Panel:
    """The latest progress as text; `rich` asks for it a few times a second."""

    def __init__(self, name: str, units: Mapping[str, str]) -> None:
        self._name, self._units = name, units
        self._began = time.monotonic()
        self._latest: Progress | None = None
        self._first: tuple[Progress, float] | None = None  # of this phase, and when it came

    def update(self, progress: Progress) -> None:
        """Take note of an outer epoch."""
        first = self._first[0] if self._first else None
        if first is None or (first.stage, first.phase) != (progress.stage, progress.phase):
            self._first = (progress, time.monotonic())
        self._latest = progress

    def lines(self) -> list[str]:
        """The text, line by line."""
        spent = seconds(time.monotonic() - self._began)
        p = self._latest
        if p is None:
            return [f"{self._name}  compiling and taking the first steps, {spent}"]
        closures = f"{p.closures} closures" if p.budget is None else f"{p.closures} of {p.budget} closures"
        values = [f"{n} = {v:.6g} {self._units.get(n, '')}".rstrip() for n, v in p.unknowns.items()]
        return [
            f"{self._name}  {p.stage}, {p.phase}  epoch {p.epoch} of at most {p.epochs}, {spent}{self._remaining(p)}",
            f"  loss {p.loss:.4e}  {closures}",
            *(f"  {value}" for value in values),
        ]

    def _remaining(self, p: Progress) -> str:
        """An upper bound from this phase's pace: it may stop earlier, at its minimum."""
        assert self._first is not None  # an update came before
        first, then = self._first
        done = p.epoch - first.epoch
        if done < 1:
            return ""
        left = float(p.epochs - p.epoch)
        if p.budget is not None and p.closures > first.closures:
            left = min(left, done * max(p.budget - p.closures, 0) / (p.closures - first.closures))
        return f", at most {seconds((time.monotonic() - then) / done * left)} left"

    def __rich__(self) -> Text:
        from rich.text import Text

        text = "\n".join(plain(line) if line[0] != " " else f"  {plain(line)}" for line in self.lines())
        return Text(text, overflow="ellipsis", no_wrap=True)


@contextmanager
def progress_of(problem: Problem, *, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A function to call with each progress; None when asked to be quiet or nobody looks (no terminal)."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    panel = Panel(problem.name, {unknown.name: unknown.unit for unknown in problem.unknowns})
    with Live(panel, console=Console(stderr=True), transient=True, refresh_per_second=4):
        yield panel.update
