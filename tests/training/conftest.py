"""`training_cases` is shared; nothing waits for the disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import training_cases as cases

import tgsr


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="session")
def straight() -> Callable[[str], tgsr.Result]:
    """The undisturbed run of a kind, once."""
    found: dict[str, tgsr.Result] = {}

    def run(kind: str) -> tgsr.Result:
        if kind not in found:
            found[kind] = cases.solved(kind)
        return found[kind]

    return run
