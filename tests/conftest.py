"""What every test gets: an empty working directory, and in CI the same examples of a property each time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

UNSEEN = pytest.StashKey[int]()  # browser tests that the run leaves out

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[UNSEEN] = 0


@pytest.fixture(autouse=True)
def _empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        item.config.stash[UNSEEN] += item.get_closest_marker("browser") is not None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if unseen := config.stash[UNSEEN]:
        terminalreporter.write_line(f"Browser tests skipped: {unseen}. To run them: make test BROWSER=1")
