"""The public face: cheap to import, its stub in step with it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tgsr

PATH = os.pathsep.join(map(os.path.abspath, sys.path))
HEAVY = (
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "scipy",
    "numpy",
    "matplotlib",
    "rich",
    "pyarrow",
    "h5py",
    "distributed",
)


def test_importing_loads_nothing_heavy() -> None:
    code = f"import sys, tgsr; print([m for m in {HEAVY!r} if m in sys.modules], tgsr.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": PATH},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("]")[0] == "["


def test_the_stub_lists_exactly_the_public_names() -> None:
    stub = Path(tgsr.__file__).with_suffix(".pyi")
    names = set()
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                assert alias.asname == alias.name
                names.add(alias.name)
                assert tgsr._HOME[alias.name] == node.module
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    assert names == set(tgsr.__all__)


@pytest.mark.parametrize("name", [n for n in tgsr.__all__ if n != "__version__"])
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    assert (getattr(tgsr, name).__doc__ or "").strip()
    assert name in dir(tgsr)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        tgsr.slove  # type: ignore[attr-defined]  # noqa: B018
