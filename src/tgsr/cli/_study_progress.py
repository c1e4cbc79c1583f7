"""What a user sees while a study runs: two lines on a terminal, a line per ended run elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tgsr._errors import plain
from tgsr.cli._progress import seconds
from tgsr.cli._write import say

if TYPE_CHECKING:
    from rich.text import Text

    from tgsr.study._progress import StudyProgress


class StudyPanel:
    """The latest progress as text; `rich` asks for it a few times a second."""

    def __init__(self) -> None:
        self._latest: StudyProgress | None = None
        self._came = self._began = time.monotonic()

    def update(self, progress: StudyProgress) -> None:
        """Take note of an event."""
        self._latest, self._came = progress, time.monotonic()

    def lines(self) -> list[str]:
        """The text, line by line."""
        p, spent = self._latest, time.monotonic() - self._began
        if p is None:
            return [f"reading what is there, {seconds(spent)}"]
        left = "" if p.left != p.left else f", about {seconds(max(p.left - (time.monotonic() - self._came), 0))} left"
        failed = f", {p.failed} failed" if p.failed else ""
        first = f"{p.finished} of {p.total} runs finished{failed}, {seconds(spent)}{left}"
        return [first, *(f"  {name}" for name in p.running)]

    def __rich__(self) -> Text:
        from rich.text import Text

        text = "\n".join(plain(line) if line[0] != " " else f"  {plain(line)}" for line in self.lines())
        return Text(text, overflow="ellipsis", no_wrap=True)


@contextmanager
def following(quiet: bool) -> Iterator[Callable[[StudyProgress], None] | None]:
    """A function to call with each progress; None when asked to be quiet."""
    if quiet:
        yield None
    elif not sys.stderr.isatty():
        yield _line
    else:
        from rich.console import Console
        from rich.live import Live

        panel = StudyPanel()
        with Live(panel, console=Console(stderr=True), transient=True, refresh_per_second=2):
            yield panel.update


def _line(progress: StudyProgress) -> None:
    """For a log file: what has ended."""
    if not progress.latest.endswith(": submitted"):
        left = "" if progress.left != progress.left else f", about {seconds(progress.left)} left"
        say(f"{progress.finished + progress.failed} of {progress.total}: {progress.latest}{left}", err=True)
