"""Bad binary files of every format, by what is wrong with them: one line that says so and what to do."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

from tgsr._errors import InputError
from tgsr.problem import _read_arrays, _read_file, _read_grids, _read_table, _read_text
from tgsr.problem._readers import read_data

V = {"x": [0.0, 1.0], "t": [0.0, 1.0], "T": [1.0, 2.0]}
XTT = {"x": "x", "t": "t", "T": "T"}


def npz(**changes: Any) -> Callable[[Path], None]:
    return lambda path: np.savez(path, **{k: np.asarray(v) for k, v in {**V, **changes}.items()})


def mat(**changes: Any) -> Callable[[Path], None]:
    return lambda path: scipy.io.savemat(path, {**V, **changes})


def parquet(**changes: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table({**V, **changes}), path)


def h5(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            file.update({k: np.array(v) for k, v in V.items()})
            change(file)

    return write


def replaced(value: Any) -> Callable[[Any], None]:
    def change(file: Any) -> None:
        del file["T"]
        if value is not None:
            file["T"] = value

    return change


def huge(file: Any) -> None:
    del file["T"]
    file.create_dataset("T", shape=(10**9,), dtype="f8")


def outward(file: Any) -> None:
    del file["T"]
    file.create_dataset("T", shape=(2,), dtype="f8", external=[("/etc/hostname", 0, 16)])


def npy_header(shape: str, descr: str = "<f8") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def archive(**members: bytes) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/"), content)
    return raw.getvalue()


def headers(content: bytes) -> bytes:
    return archive(**dict.fromkeys(("x.npy", "t.npy", "T.npy"), content))


def binary(name: str, cases: dict[str, tuple[Any, ...]], **more: Any) -> list[Any]:
    """Cases of one format: what is wrong, (the content, what the message says, the row if there is one)."""
    return [
        (f"{name}: {about}", name, content, row[0] if row else None, says, {"columns": XTT, **more})
        for about, (content, says, *row) in cases.items()
    ]


BINARIES = [
    *binary("d.npz", {
        "text": ("x,t,T\n0,0,1", "holds text"),
        "cut short": (archive(**{"x.npy": npy_header("(2,)")})[:60], "damaged"),
        "a network": (archive(archive__data=b"", archive__data_pkl=b""), "pickled objects are never read"),
        "no T": (lambda p: np.savez(p, x=[1.0], t=[1.0]), "no array 'T'"),
        "text values": (npz(T=["a", "b"]), "real numbers"),
        "booleans": (npz(T=[True, False]), "real numbers"),
        "complex": (npz(T=[1j, 2]), "real numbers"),
        "objects": (npz(T=np.array([1, None], object)), "real numbers"),
        "dates": (npz(T=np.array(["2024-01-01"] * 2, "M8[D]")), "real numbers"),
        "lengths": (npz(T=[1.0, 2.0, 3.0]), "fit together"),
        "nothing in it": (npz(T=[]), "no values"),
        "a lie about its size": (headers(npy_header("(10000000000,)")), "10,000,000,000"),
        "a lie about its end": (headers(npy_header("(3,)")), "damaged"),
        "a broken header": (headers(b"\x93NUMPY\x01\x00\x05\x00abcde"), "damaged"),
        "not finite": (npz(T=[1.0, np.inf]), "counted from 0", 1),
        "outside": (npz(x=[0.0, 7.0]), "outside the domain", 1),
    }),
    *binary("d.npz", {"chosen by position": (npz(), "by name")}, columns={"x": 0, "t": 1, "T": 2}),
    *binary("d.npz", {"delimiter": (npz(), "text files only")}, delimiter=","),
    *binary("d.npy", {
        "no names": (lambda p: np.save(p, np.ones((4, 3))), "by position"),
        "a vector": (lambda p: np.save(p, np.ones(4)), "shape (4,)"),
        "a pickle inside": (lambda p: np.save(p, np.array([None]), allow_pickle=True), "damaged"),
        "no such name": (lambda p: np.save(p, np.rec.fromarrays([[1.0]] * 2, names="x,t")), "no column 'T'"),
        "an empty table": (lambda p: np.save(p, np.rec.fromarrays([[]] * 3, names="x,t,T")), "no values"),
        "cut short": (npy_header("(1000000, 3)"), "damaged"),
    }),
    *binary("d.npy", {
        "too few columns": (lambda p: np.save(p, np.ones((4, 2))), "columns 0 to 1"),
        "text": (lambda p: np.save(p, np.array([["a"] * 3])), "real numbers"),
    }, columns={"x": 0, "t": 1, "T": 2}),
    *binary("d.parquet", {
        "text": ("x,t,T\n0,0,1", "holds text"),
        "cut short": (b"PAR1" + bytes(30), "damaged"),
        "no T": (lambda p: pq.write_table(pa.table({"x": [1.0], "t": [1.0]}), p), "no column 'T'"),
        "strings": (parquet(T=["1", "2"]), "string"),
        "booleans": (parquet(T=[True, False]), "bool"),
        "no rows": (parquet(**dict.fromkeys(V, pa.array([], pa.float64()))), "no rows"),
        "a null coordinate": (parquet(x=[0.0, None]), "no value for x", 1),
    }),
    *binary("d.h5", {
        "text": ("x,t,T\n0,0,1", "holds text"),
        "cut short": (b"\x89HDF\r\n\x1a\n" + bytes(30), "damaged"),
        "no T": (h5(replaced(None)), "no variable 'T'"),
        "strings": (h5(replaced("abc")), "real numbers"),
        "lengths": (h5(replaced(np.ones(5))), "fit together"),
        "huge": (h5(huge), "1,000,000,000"),
        "another file's values": (h5(outward), "other files"),
        "a link to another file": (h5(replaced(h5py.ExternalLink("/etc/d.h5", "T"))), "no variable"),
        "a group": (h5(lambda f: (replaced(None)(f), f.create_group("T"))), "no variable 'T'"),
        "an empty set": (h5(replaced(h5py.Empty("f8"))), "no values"),
    }),
    *binary("d.nc", {
        "text": ("x,t,T\n0,0,1", "holds text"),
        "cut short": (b"CDF\x01\x00\x00", "damaged"),
        "no such variable": (lambda p: scipy.io.netcdf_file(p, "w").close(), "no variable 'x'"),
    }),
    *binary("d.mat", {
        "text": ("x,t,T\n0,0,1", "holds text"),
        "cut short": (b"MATLAB 5.0 MAT-file" + bytes(200), "damaged"),
        "no T": (lambda p: scipy.io.savemat(p, {"x": [1.0], "t": [1.0]}), "no variable 'T'"),
        "characters": (mat(T="abc"), "MATLAB char"),
        "a cell array": (mat(T=np.array([1, "a"], object)), "MATLAB cell"),
        "a structure": (mat(T={"a": 1.0}), "MATLAB struct"),
        "logicals": (mat(T=np.array([True, False])), "MATLAB logical"),
        "complex": (mat(T=[1j, 2j]), "real numbers"),
        "lengths": (mat(T=[1.0, 2.0, 3.0]), "fit together"),
    }),
]  # fmt: skip


def test_bad_files(subtests: Any, tmp_path: Path) -> None:
    for i, (about, name, content, row, says, options) in enumerate(BINARIES):
        with subtests.test(about):
            path = tmp_path / str(i) / name
            path.parent.mkdir()
            if callable(content):
                content(path)
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            with pytest.raises(InputError) as caught:
                read_data(name, base=path.parent, **options).check_against({"x": (0, 1), "t": (0, 2)}, ["T"])
            message = str(caught.value)
            assert message.isprintable(), ascii(message)
            assert message.startswith(name)
            assert says in message, message
            assert caught.value.row == row
            assert caught.value.remedy


@pytest.mark.parametrize(
    ("module", "cap", "name"),
    [
        (_read_text, "MAX_ROWS", "d.csv"),
        (_read_text, "MAX_COLUMNS", "d.csv"),
        (_read_table, "MAX_ROWS", "d.npz"),
        (_read_grids, "MAX_ROWS", "grid.npz"),
        (_read_arrays, "MAX_ROWS", "d.parquet"),
        (_read_file, "MAX_BYTES", "d.csv"),
    ],
)
def test_caps(module: Any, cap: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("d.csv").write_text("x,t,T\n" + "0,0,0\n" * 4)
    np.savez("d.npz", **dict.fromkeys("xtT", np.ones(4)))
    np.savez("grid.npz", x=np.arange(2.0), t=np.arange(3.0), T=np.ones((2, 3)))
    pq.write_table(pa.table(dict.fromkeys("xtT", [1.0] * 4)), "d.parquet")
    assert len(read_data(name, XTT, base=tmp_path)) in (4, 6)
    monkeypatch.setattr(module, cap, 2)
    with pytest.raises(InputError, match=", more than the "):
        read_data(name, XTT, base=tmp_path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet()(tmp_path / "d.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"pip install 'tgsr\[data\]'"):
        read_data("d.parquet", XTT, base=tmp_path)
