"""`training_cases` is shared; an objective of equal parts is built once, so that every test reuses its programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import training_cases as cases

import tgsr
from tgsr import _solve
from tgsr.loss import build_objective

BUILT: dict[Any, Any] = {}


def once(problem: Any, mlp: Any, points: Any, seed: int) -> Any:
    """`build_objective`, the same object for the same question (equal in bits: a fresh process shows it)."""
    key = (
        _solve.npz_bytes({"spec": str(problem.spec()), "data": _solve.data_bytes(problem).hex()}),
        mlp,
        points,
        seed,
    )
    if key not in BUILT:
        BUILT[key] = build_objective(problem, mlp, points, seed)
    return BUILT[key]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_solve, "build_objective", once)
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
