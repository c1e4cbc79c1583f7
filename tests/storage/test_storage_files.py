"""What is written is what is read: bytes, JSON and arrays, down to the last bit."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from storage_cases import same

from tgsr._errors import StorageError
from tgsr.storage import (
    canonical_json,
    npz_bytes,
    parse_json,
    read_arrays,
    read_bytes,
    read_json,
    read_sealed,
    read_tensors,
    tensor_bytes,
    write_arrays,
    write_bytes,
    write_json,
    write_sealed,
    write_tensors,
)

quick = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEYS = st.text(max_size=8).filter(lambda key: not key.startswith("$"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES += ["float16", "float32", "float64", "complex64"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
ARRAYS = st.sampled_from(TYPES).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES))
PRINTABLE = st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="\\$")
NAMES = st.text(PRINTABLE, min_size=1, max_size=9)


def alike(left: Any, right: Any) -> bool:
    """Equality that tells 1 from 1.0 and True, 0.0 from -0.0, and knows that nan is nan."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(alike, left, right))
    return left == right


@quick
@given(VALUES)
def test_json_gives_back_every_value_exactly(value: Any) -> None:
    text = canonical_json(value)
    assert alike(parse_json(text.encode("ascii")), value)
    assert canonical_json(parse_json(text.encode("ascii"))) == text
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@quick
@given(st.dictionaries(KEYS, VALUES, max_size=6), st.randoms())
def test_json_does_not_depend_on_the_order_of_keys(value: dict[str, Any], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)


def test_json_takes_numpy_scalars_and_tuples_by_value() -> None:
    class Level(IntEnum):
        HIGH = 2

    value = {"a": np.float32(0.1), "b": np.int8(3), "c": np.bool_(True), "d": (1, 2), "e": np.float64("nan")}
    text = canonical_json(value | {"f": Level.HIGH})
    plain = {"a": float(np.float32(0.1)), "b": 3, "c": True, "d": [1, 2], "e": math.nan, "f": 2}
    assert text == canonical_json(plain)


ODD = [
    object(),
    {1: 2},
    {"$float": "nan"},
    {"$x": 1},
    b"x",
    {1.5},
    np.zeros(2),
    1j,
    10**5000,
    np.longdouble(1),
]


@pytest.mark.parametrize("index", range(len(ODD)))
def test_json_refuses_what_it_would_have_to_change(index: int, tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        write_json(tmp_path / "x.json", {"deep": [ODD[index]]})
    assert not list(tmp_path.iterdir())


def test_json_names_the_place_of_what_it_refuses(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"x\.json, 'training\.steps\[1\]': a value of type complex"):
        write_json(tmp_path / "x.json", {"training": {"steps": [1, 2j]}})


def test_json_refuses_texts_that_mean_two_things_or_too_much(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(StorageError, match="deep"):
        canonical_json(deep)
    for text in (
        b'{"a":1,"a":2}',
        b"NaN",
        b"1e999",
        b'{"$float":"1"}',
        b'{"$x":1}',
        b'{"$float":{}}',
        b"[" * 10**5,
        b"\xff",
        b"",
        b"1 2",
    ):
        (tmp_path / "x.json").write_bytes(text)
        with pytest.raises(StorageError, match=r"x\.json"):
            read_json(tmp_path / "x.json")


@quick
@given(
    st.dictionaries(KEYS.filter(lambda key: key != "sha256"), VALUES, max_size=3),
    st.integers(0),
    st.integers(0, 7),
)
def test_a_seal_notices_every_flipped_bit(tmp_path: Path, value: dict[str, Any], at: int, bit: int) -> None:
    path = tmp_path / "sealed.json"
    write_sealed(path, value)
    assert alike(read_sealed(path), value)
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1 << bit
    path.write_bytes(data)
    with pytest.raises(StorageError):
        read_sealed(path)


@quick
@given(st.dictionaries(NAMES, ARRAYS, max_size=4))
def test_arrays_come_back_with_every_bit_type_and_shape(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    write_arrays(tmp_path / "a.npz", arrays)
    write_tensors(tmp_path / "a.safetensors", arrays)
    assert same(read_arrays(tmp_path / "a.npz"), arrays)
    assert same(read_tensors(tmp_path / "a.safetensors"), arrays)
    backwards = {name: np.asfortranarray(arrays[name]).reshape(arrays[name].shape) for name in reversed(arrays)}
    assert npz_bytes(backwards) == npz_bytes(arrays)
    assert tensor_bytes(backwards) == tensor_bytes(arrays)


def test_numpy_itself_reads_our_npz_and_we_read_numpys(tmp_path: Path) -> None:
    arrays = {
        "x": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "names": np.array(["Temp", "°C"]),
        "n": np.array(3),
    }
    write_arrays(tmp_path / "ours.npz", arrays)
    np.savez(tmp_path / "numpys.npz", **arrays)
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as loaded:
        assert same(dict(loaded), arrays)
    assert same(read_arrays(tmp_path / "numpys.npz"), arrays)


@pytest.mark.parametrize("write", [write_arrays, write_tensors])
def test_arrays_that_cannot_be_stored_exactly_are_refused(tmp_path: Path, write: Any) -> None:
    for arrays in (
        {"a": np.array([object()])},
        {"a": np.zeros(2, [("x", "f8")])},
        {"": np.zeros(2)},
        {"a\n": np.zeros(2)},
        {"a\\b": np.zeros(2)},
        {"$a": np.zeros(2)},
        {"__metadata__": np.zeros(2)},
        {"x" * 201: np.zeros(2)},
    ):
        with pytest.raises(StorageError):
            write(tmp_path / "file", arrays)
    assert not list(tmp_path.iterdir())


def test_bytes_are_checked_against_size_and_digest(tmp_path: Path) -> None:
    path = tmp_path / "file"
    digest = write_bytes(path, b"content")
    assert read_bytes(path, digest=digest) == b"content"
    with pytest.raises(StorageError, match="SHA-256"):
        read_bytes(path, digest="0" * 64)
    with pytest.raises(StorageError, match="at most 3"):
        read_bytes(path, limit=3)


def test_what_is_not_a_file_is_an_error_and_never_a_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "absent", "a\0b", "x" * 300):
        with pytest.raises(StorageError):
            read_bytes(tmp_path / name)
    for name in ("absent/x", "a\0b", "x" * 300):
        with pytest.raises(StorageError):
            write_bytes(tmp_path / name, b"")
    with pytest.raises(StorageError):
        write_bytes(tmp_path, b"")


def test_the_floor_imports_no_jax() -> None:
    code = "import sys, tgsr.storage; sys.exit(any(m in sys.modules for m in ('jax', 'equinox', 'torch')))"
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, check=False).returncode == 0
