"""Whatever a file or an array holds, only InputError may escape, in one printable line."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tgsr._errors import InputError
from tgsr.problem._data import Data
from tgsr.problem._readers import read_data

CELL = st.one_of(
    st.floats().map(repr),
    st.integers(-9, 9).map(str),
    st.sampled_from(["", "NA", '"', '"1"', '""', "1,5", "=1", "#", " ", "\t", "\ufeff", "\x1b", "\u2028", "\x85"]),
    st.text(max_size=4),
)
LINE = st.tuples(st.lists(CELL, max_size=4), st.sampled_from([",", ";", "\t", " ", ", "])).map(
    lambda p: p[1].join(p[0])
)
TEXT = st.tuples(st.sampled_from(["x,T\n", "x;T\r\n", "x T\n", "# x\tT\n", ""]), st.lists(LINE, max_size=6)).map(
    lambda p: p[0] + "\n".join(p[1])
)


@contextlib.contextmanager
def only_input_errors() -> Any:
    message = ""
    try:
        yield
    except InputError as error:
        message = str(error)
    assert message.isprintable(), ascii(message)


def sound(data: Data, low: int) -> None:
    assert all(np.isfinite(column).all() for column in data.points.values())
    assert not any(np.isinf(column).any() for column in data.values.values())
    assert data.rows[0] >= low
    assert np.all(np.diff(data.rows) > 0)
    assert len(data.fingerprint()) == 64


@settings(max_examples=400)
@given(text=TEXT, positions=st.booleans(), missing=st.sampled_from(["error", "drop"]))
def test_text(text: str, positions: bool, missing: Any) -> None:
    Path("d.csv").write_text(text, encoding="utf-8", errors="replace", newline="")
    columns: Any = {"x": 0, "T": 1} if positions else {"x": "x", "T": "T"}
    with only_input_errors():
        sound(read_data("d.csv", columns, missing=missing, base=".").split(["x"]), 1)


@settings(max_examples=150)
@given(
    content=st.binary(max_size=200),
    suffix=st.sampled_from([".csv", ".npz", ".npy", ".parquet", ".h5", ".nc", ".mat"]),
)
def test_bytes(content: bytes, suffix: str) -> None:
    Path("d" + suffix).write_bytes(content)
    with only_input_errors():
        read_data("d" + suffix, {"x": "x", "T": "T"}, base=".")


@settings(max_examples=150)
@given(data=st.data(), suffix=st.sampled_from([".npz", ".npy", ".mat", ".nc"]))
def test_damaged_files(data: st.DataObject, suffix: str) -> None:
    path, x = Path("d" + suffix), np.linspace(0, 1, 5)
    if suffix == ".npz":
        np.savez(path, x=x, T=x)
    elif suffix == ".npy":
        np.save(path, np.rec.fromarrays([x, x], names="x,T"))
    elif suffix == ".mat":
        scipy.io.savemat(path, {"x": x, "T": x})
    else:
        with scipy.io.netcdf_file(path, "w") as file:
            file.createDimension("row", 5)
            for name in "xT":
                file.createVariable(name, "d", ("row",))[:] = x
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(1, len(content)))])
    with only_input_errors():
        read_data(path, {"x": "x", "T": "T"}, base=".").split(["x"])


ANY = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.text(max_size=3),
    st.booleans(),
    st.lists(
        st.one_of(st.floats(), st.integers(), st.none(), st.text(max_size=2), st.complex_numbers()),
        max_size=3,
    ),
    hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(max_dims=2, max_side=3)),
)
NAME = st.one_of(st.sampled_from(["x", "t", "T", "q"]), st.text(st.characters(codec="ascii"), max_size=3))


@settings(max_examples=300)
@given(
    points=st.one_of(ANY, st.dictionaries(NAME, ANY, max_size=2)),
    values=st.dictionaries(NAME, ANY, max_size=2),
    noise=st.one_of(ANY, st.dictionaries(NAME, ANY, max_size=2)),
    name=st.one_of(st.just("probe"), ANY),
    missing=st.sampled_from(["error", "drop"]),
)
def test_arrays(points: Any, values: Any, noise: Any, name: Any, missing: Any) -> None:
    with only_input_errors():
        data = Data(points, values, noise, name, missing=missing)
        sound(data, 0)
        data.check_against({"x": (0.0, 1.0)}, ["T"])
