"""The box, its faces, the points drawn from both, and listed points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgsr._errors import InputError
from tgsr._random import stream
from tgsr.problem._domain import SAMPLINGS, Domain, unit_points

BOX = Domain({"x": (-2.0, 3.0), "t": (0.0, 1e5), "w": (1e-6, 3e-6)})
DISC = Domain({"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, region=lambda x, y: x**2 + y**2 < 1)


@pytest.mark.parametrize("how", SAMPLINGS)
@pytest.mark.parametrize("domain", [BOX, DISC], ids=["box", "disc"])
def test_points_lie_inside_and_come_again(how: str, domain: Domain) -> None:
    points = domain.draw(100, stream(0, "points"), how)
    np.testing.assert_array_equal(points, domain.draw(100, stream(0, "points"), how))
    assert ((points >= domain.low) & (points <= domain.high)).all()
    assert domain.inside(points).all()
    assert len(np.unique(points, axis=0)) == len(points)
    if how == "grid":
        assert len(points) == (64 if domain is BOX else 80)
    else:
        assert len(points) == 100
        assert not np.array_equal(points, domain.draw(100, stream(1, "points"), how))
    middle = (domain.low + domain.high) / 2
    assert (np.abs(points.mean(axis=0) - middle) < 0.15 * (domain.high - domain.low)).all()


@pytest.mark.parametrize("how", SAMPLINGS)
def test_points_of_a_face(how: str) -> None:
    face = BOX.face("t=high")
    points = BOX.draw(49, stream(0, "points"), how, face)
    assert len(points) == 49
    assert (points[:, 1] == 1e5).all()
    assert (np.ptp(points[:, [0, 2]], axis=0) > 0.8 * np.array([5.0, 2e-6])).all()
    line = Domain({"t": (0.0, 3.0)})
    np.testing.assert_array_equal(line.draw(9, stream(0, "points"), how, line.face("t=3")), [[3.0]])


@pytest.mark.parametrize("how", ["sobol", "latin-hypercube", "grid"])
def test_even_samplings_fill_every_tenth(how: str) -> None:
    points = unit_points(1024 if how != "grid" else 32**2, 2, stream(0, "points"), how)
    for column in points.T:
        shares = np.histogram(column, 10, (0.0, 1.0))[0] / len(points)
        assert (np.abs(shares - 0.1) < 0.03).all()


def test_faces() -> None:
    found = [BOX.face(text) for text in ("x=-2", " x = 3.0 ", "x=0", "t=100000", "w=low", "w=1e-6", "x=2.9999999999")]
    assert [(f.axis, f.side) for f in found] == [(0, -1), (0, 1), (0, 0), (1, 1), (2, -1), (2, -1), (0, 1)]
    assert found[-1].value == 3.0
    assert [f.name for f in BOX.faces(["x=0", "t=low"])] == ["x=0", "t=0"]


def test_listed_points() -> None:
    points = BOX.listed({"t": [0, 1], "x": 0.5, "w": np.array([2e-6, 3e-6])})
    np.testing.assert_array_equal(points, [[0.5, 0.0, 2e-6], [0.5, 1.0, 3e-6]])


def test_ranges_are_kept_as_written() -> None:
    assert BOX.ranges == {"x": (-2.0, 3.0), "t": (0.0, 1e5), "w": (1e-6, 3e-6)}


@given(
    low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), factor=st.sampled_from([1e-9, 1e-3, 1e4]),
    how=st.sampled_from(SAMPLINGS), count=st.integers(1, 40),
)  # fmt: skip
def test_points_change_with_the_unit(low: float, width: float, factor: float, how: str, count: int) -> None:
    one, other = Domain({"x": (low, low + width)}), Domain({"x": (low * factor, (low + width) * factor)})
    points, scaled = (d.draw(count, stream(0, "points"), how) for d in (one, other))
    size = max(abs(low), abs(low + width))
    np.testing.assert_allclose(scaled / factor, points, rtol=0, atol=1e-12 * size)
    assert ((points >= one.low) & (points <= one.high)).all()


@pytest.mark.parametrize(
    "region",
    [
        lambda x, y: (x > 5) & (y > 5), lambda x, y: x + y, lambda x, y: True, lambda x, y: None,
        lambda x, y: x > 0 and y > 0, lambda x, y: np.array([True]), lambda x, y: 1 / 0, lambda x, y: x > "a",
    ],
    ids=["empty", "float", "scalar", "none", "and", "one", "error", "type"],
)  # fmt: skip
def test_a_region_that_cannot_be(region: object) -> None:
    domain = Domain({"x": (0.0, 1.0), "y": (0.0, 1.0)}, region=region)  # type: ignore[arg-type]
    for how in ("sobol", "grid"):
        with pytest.raises(InputError, match="region") as caught:
            domain.draw(20, stream(0, "points"), how)
        assert caught.value.remedy
        assert "\n" not in str(caught.value)


def test_an_unknown_sampling() -> None:
    with pytest.raises(InputError, match="did you mean 'sobol'"):
        BOX.draw(5, stream(0, "points"), "sobl")
