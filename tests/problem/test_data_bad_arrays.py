"""Bad arrays, and data that do not fit their problem: one line that says what is wrong and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tgsr._errors import InputError
from tgsr.problem._data import Data


def check(message: str) -> None:
    assert message.isprintable(), ascii(message)
    assert message.endswith(".")
    assert len(message) < 1500


ARRAYS: list[tuple[str, dict[str, Any]]] = [
    ("holds bool", {"values": {"T": [True, False]}}),
    ("holds complex", {"values": {"T": [1j, 2]}}),
    ("holds str", {"values": {"T": ["1", "2"]}}),
    ("such as 'None'", {"values": {"T": [1.0, None]}}),
    ("holds datetime", {"values": {"T": np.array(["2024", "2025"], "M8[s]")}}),
    ("cannot be read", {"values": {"T": [[1, 2], [3]]}}),
    ("shape (2, 1)", {"values": {"T": np.ones((2, 1))}}),
    ("shape ()", {"values": {"T": 5.0}}),
    ("holds str", {"values": {"T": "abc"}}),
    ("holds object", {"values": {"T": None}}),
    ("holds object", {"values": {"T": {1.0, 2.0}}}),
    ("such as", {"values": {"T": [10**400, 1]}}),
    ("differ in length", {"values": {"T": [1.0]}}),
    ("no measurements", {"points": {"x": []}, "values": {"T": []}}),
    ("infinite values in row 1 (counted from 0)", {"values": {"T": [1.0, np.inf]}}),
    ("infinite values in row 0", {"points": {"x": [np.inf, 0]}}),
    ("no value for x", {"points": {"x": [0.0, np.nan]}}),
    ("no measurement of T", {"values": {"T": [np.nan, 1.0]}}),
    ("measured nowhere", {"values": {"T": [1.0, 2.0], "q": [np.nan, np.nan]}}),
    ("both as", {"points": {"T": [1, 2]}}),
    ("names no coordinate", {"points": {}}),
    ("must map", {"points": [1, 2]}),
    ("must map", {"values": None}),
    ("cannot name", {"points": {"a b": [1, 2]}}),
    ("cannot name", {"points": {"lambda": [1, 2]}}),
    ("text, not", {"points": {1: [1, 2]}}),
    ("above zero", {"noise": np.nan}),
    ("not measured", {"noise": {"q": 1.0}}),
    ("nothing about", {"noise": {}}),
    ("named", {"name": ""}),
    ("missing=", {"missing": "keep"}),
]


def test_bad_arrays(subtests: Any) -> None:
    for says, change in ARRAYS:
        with subtests.test(says, change=str(change)):
            with pytest.raises(InputError) as caught:
                Data(**{"points": {"x": [0, 1]}, "values": {"T": [1.0, 2.0]}, **change})
            check(str(caught.value))
            assert says in str(caught.value), str(caught.value)


def test_bad_fits_to_a_problem() -> None:
    data = Data({"x": [0.5]}, {"T": [1.0]})
    for coordinates, fields, says in (
        ({"y": (0, 1)}, ["T"], "not a coordinate"),
        ({"x": (0, 1)}, ["U"], "not a field"),
        ({"x": (0, 1), "t": (0, 1)}, ["T"], "at which 't'"),
        ({"x": (1, 2)}, ["T"], "outside the domain"),
    ):
        with pytest.raises(InputError, match=says) as caught:
            data.check_against(coordinates, fields)
        check(str(caught.value))
