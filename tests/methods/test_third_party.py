"""A package of one's own with a method of one's own: one file and one line of packaging, no fork.

[project.entry-points."tgsr.methods"]
shrink = "shrinking:Shrink"
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import method_cases  # noqa: F401  float64
import numpy as np
import pytest
from method_cases import TRAINING, Observe, observer, source

import tgsr
from tgsr.methods import as_method, methods

METHOD = '''
"""Start from the source network with its weights made smaller."""

from dataclasses import dataclass
from typing import ClassVar

from tgsr import InputError, Prepared, Setting
from tgsr.methods import copied
from tgsr.training import Start


@dataclass(frozen=True)
class Shrink:
    """Copy the source network, scale all of it, and train everything."""

    name: ClassVar[str] = "shrink"
    factor: float = 0.5  # in (0, 1]

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 1:
            raise InputError(f"factor = {self.factor}", field="factor", remedy="Give a number in (0, 1]")

    def prepare(self, setting: Setting) -> Prepared:
        surrogate, theta = setting.objective.surrogate, copied(setting, self.name)
        layers = [(self.factor * weight, self.factor * bias) for weight, bias in surrogate.layers(theta)[0]]
        return Prepared(Start(surrogate.with_fields_network(theta, layers)))
'''


def installed(folder: Path, entry: str) -> None:
    """What `pip install` leaves behind: the module and its metadata."""
    (folder / "shrinking.py").write_text(METHOD)
    about = folder / "shrinking-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shrinking\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[tgsr.methods]\n{entry}\n")


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("shrinking", None)


def test_a_method_of_another_package_is_used_by_its_name(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "shrink" not in methods()
    installed(on_path, "shrink = shrinking:Shrink")
    assert list(methods())[-1] == "shrink"
    observe: Observe = observer(monkeypatch)
    short = tgsr.Training(phases=(tgsr.Adam(1, 2),), points=TRAINING.points)
    seen = observe("shrink", training=short)
    assert isinstance(seen.result, tgsr.Result)
    assert (seen.result.method, seen.result.outcome.ok) == ("shrink", True)
    np.testing.assert_array_equal(seen.start.theta[:5], 0.5 * source().weights[0].ravel())
    assert observe(type(as_method("shrink"))(1.0), training=short).start.theta[0] == source().weights[0][0, 0]
    with pytest.raises(tgsr.InputError, match="'factor': factor = 2"):
        type(as_method("shrink"))(2)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("tgsr = shrinking:Shrink", "offers a method 'tgsr', which exists"),
        ("shrink = shrinking:Missing", "cannot be loaded .*no attribute 'Missing'"),
        ("shrink = nowhere:Shrink", "cannot be loaded .*No module named 'nowhere'"),
        ("shrink = shrinking:METHOD", "is no method"),
    ],
)  # fmt: skip
def test_a_package_that_does_not_deliver_is_named(entry: str, words: str, on_path: Path) -> None:
    installed(on_path, entry)
    (on_path / "shrinking.py").write_text(METHOD + "\nMETHOD = 3\n")
    with pytest.raises(tgsr.InputError, match=words) as caught:
        methods()
    assert "shrinking:" in str(caught.value) or "nowhere:" in str(caught.value)
