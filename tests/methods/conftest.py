"""Helpers of this folder can be imported; everything here runs in float64."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _float64(request: pytest.FixtureRequest) -> Iterator[None]:
    if "method_cases" not in vars(request.module):
        yield
        return
    from tgsr._jax import computing

    with computing():
        yield
