"""A run directory for each test, on a disk whose fsync does not wait: a kill never loses the page cache."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `storage_cases` is shared with the processes that tests start

from storage_cases import new_run

from tgsr.storage import RunDirectory


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def run() -> Iterator[RunDirectory]:
    memory = Path("/dev/shm")  # thousands of small files: in memory where there is such a disk
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield new_run(Path(folder) / "runs")
