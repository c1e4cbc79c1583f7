"""Every format gives back the numbers that were written to it, in their order."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

import tgsr.problem
from tgsr._errors import InputError
from tgsr._random import stream
from tgsr.problem._data import Data
from tgsr.problem._noise import Gaussian, StudentT
from tgsr.problem._readers import read_data

NUMBERS = stream(0, "probes").normal(size=(3, 40)) * np.array([[1e-6], [1e5], [1.0]])
NAMES = ("pos m", "time_s", "T/°C")
COLUMNS = dict(zip(("x", "t", "T"), NAMES, strict=True))


def text(path: Path, separator: str = ",", prefix: str = "", quote: str = "", end: str = "\n") -> None:
    heading = separator.join(f"{quote}{name}{quote}" for name in NAMES)
    rows = [separator.join(f"{quote}{number!r}{quote}" for number in row) for row in NUMBERS.T.tolist()]
    path.write_bytes((prefix + end.join([heading, *rows])).encode())


def hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        for name, column in zip(NAMES, NUMBERS, strict=True):
            file[f"group/{name.replace('/', ' ')}"] = column


def matlab73(path: Path) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, column in zip("abc", NUMBERS, strict=True):
            file[name] = column[None, :]  # MATLAB's column vector, as its own layout stores it
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file")


def netcdf4(path: Path) -> None:
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"row": NUMBERS.shape[1]}
        for name, column in zip("abc", NUMBERS, strict=True):
            file.create_variable(name, ("row",), data=column)


def netcdf3(path: Path) -> None:
    with scipy.io.netcdf_file(path, "w") as file:
        file.createDimension("row", NUMBERS.shape[1])
        for name, column in zip("abc", NUMBERS, strict=True):
            file.createVariable(name, "d", ("row",))[:] = column


ABC = {"x": "a", "t": "b", "T": "c"}
POSITIONS: dict[str, Any] = {"x": 0, "t": 1, "T": 2}
FORMATS: dict[str, tuple[str, Callable[[Path], Any], dict[str, Any]]] = {
    "csv": ("d.csv", text, COLUMNS),
    "csv, upper case, windows": ("D.CSV", lambda p: text(p, end="\r\n"), COLUMNS),
    "csv, byte order mark": ("d.csv", lambda p: text(p, prefix="\ufeff"), COLUMNS),
    "csv, quoted": ("d.csv", lambda p: text(p, quote='"'), COLUMNS),
    "csv, comments and blank lines": ("d.csv", lambda p: text(p, prefix="# made today, by us\n\n"), COLUMNS),
    "csv by position": ("d.csv", text, POSITIONS),
    "semicolons": ("d.csv", lambda p: text(p, ";"), COLUMNS),
    "tabs": ("d.tsv", lambda p: text(p, "\t"), COLUMNS),
    "white space": ("d.txt", lambda p: text(p, "   ", quote='"'), COLUMNS),
    "savetxt": (
        "d.txt",
        lambda p: np.savetxt(p, NUMBERS.T, fmt="%.17g", header="a b c"),
        ABC,
    ),
    "savetxt without heading": ("d.dat", lambda p: np.savetxt(p, NUMBERS.T, fmt="%.17g"), POSITIONS),
    "npz": ("d.npz", lambda p: np.savez(p, **dict(zip("abc", NUMBERS, strict=True))), ABC),
    "npz, compressed": (
        "d.npz",
        lambda p: np.savez_compressed(p, **dict(zip("abc", NUMBERS, strict=True))),
        ABC,
    ),
    "npy": ("d.npy", lambda p: np.save(p, NUMBERS.T), POSITIONS),
    "npy, structured": (
        "d.npy",
        lambda p: np.save(p, np.rec.fromarrays(list(NUMBERS), names="a,b,c")),
        ABC,
    ),
    "parquet": (
        "d.parquet",
        lambda p: pq.write_table(pa.table(list(NUMBERS), names=list(NAMES)), p),
        COLUMNS,
    ),
    "hdf5": ("d.h5", hdf5, {k: f"group/{v.replace('/', ' ')}" for k, v in COLUMNS.items()}),
    "netcdf 4": ("d.nc", netcdf4, ABC),
    "netcdf 3": ("d.nc", netcdf3, ABC),
    "matlab 5": ("d.mat", lambda p: scipy.io.savemat(p, dict(zip("abc", NUMBERS, strict=True))), ABC),
    "matlab 7.3": ("d.mat", matlab73, ABC),
}


@pytest.mark.parametrize("case", FORMATS)
def test_every_format_gives_back_the_numbers(case: str, tmp_path: Path) -> None:
    name, write, columns = FORMATS[case]
    write(tmp_path / name)
    data = read_data(tmp_path / name, columns, 0.5).split(["x", "t"])
    for key, column in zip(("x", "t"), NUMBERS, strict=False):
        np.testing.assert_array_equal(data.points[key], column, strict=True)
    np.testing.assert_array_equal(data.values["T"], NUMBERS[2], strict=True)
    assert data.noise == {"T": Gaussian(0.5)}
    assert len(data) == data.rows.size == 40
    assert np.all(np.diff(data.rows) == 1)


def test_a_grid_becomes_one_row_per_point(tmp_path: Path) -> None:
    x, t = np.linspace(0, 1, 5), np.linspace(0, 2, 3)
    T = x[:, None] + 10 * t
    np.savez(tmp_path / "g.npz", x=x, t=t[:, None], T=T)
    np.savez(tmp_path / "mesh.npz", x=np.broadcast_to(x[:, None], T.shape), t=np.broadcast_to(t, T.shape), T=T)
    scipy.io.savemat(tmp_path / "g.mat", {"x": x[:, None], "t": t, "T": T})
    with h5netcdf.File(tmp_path / "g.nc", "w") as file:
        file.dimensions = {"t": 3, "x": 5}
        file.create_variable("x", ("x",), data=x)
        file.create_variable("t", ("t",), data=t)
        packed = file.create_variable("T", ("t", "x"), data=np.rint((T.T - 3) * 100).astype(np.int16))
        packed.attrs.update({"scale_factor": 0.01, "add_offset": 3.0})
    with h5py.File(tmp_path / "g.h5", "w") as plain:
        plain.update({"x": x, "t": t, "T": T.T})
    for name in ("g.npz", "mesh.npz", "g.mat", "g.nc", "g.h5"):
        data = read_data(tmp_path / name, {"x": "x", "t": "t", "T": "T"}).split(["x", "t"])
        assert len(data) == 15
        np.testing.assert_allclose(data.values["T"], data.points["x"] + 10 * data.points["t"], atol=1e-12)
        assert len({*zip(data.points["x"], data.points["t"], strict=True)}) == 15


def test_axes_of_one_length_are_not_guessed(tmp_path: Path) -> None:
    np.savez(tmp_path / "g.npz", x=np.arange(4.0), t=np.arange(4.0), T=np.eye(4))
    with pytest.raises(InputError, match="same length"):
        read_data(tmp_path / "g.npz", {"x": "x", "t": "t", "T": "T"})


def test_netcdf_tells_axes_of_one_length_apart(tmp_path: Path) -> None:
    with h5netcdf.File(tmp_path / "g.nc", "w") as file:
        file.dimensions = {"t": 2, "x": 2}
        file.create_variable("x", ("x",), data=np.array([0.0, 1.0]))
        file.create_variable("t", ("t",), data=np.array([0.0, 1.0]))
        file.create_variable("T", ("x", "t"), data=np.array([[0.0, 1.0], [2.0, -9.0]]), fillvalue=-9.0)
    data = read_data(tmp_path / "g.nc", {"x": "x", "t": "t", "T": "T"}, missing="drop").split(["x", "t"])
    np.testing.assert_array_equal(data.values["T"], 2 * data.points["x"] + data.points["t"])
    assert len(data) == 3
    assert data.notes == ("dropped for having no measurement of T: row 3 (counted from 0)",)


def test_rows_are_the_lines_of_the_file(tmp_path: Path) -> None:
    Path("d.csv").write_text("# a comment\nx,T\n0,1\n\n# another\n0.5,\n1,NA\n1,3\n")
    data = read_data("d.csv", {"x": "x", "T": "T"}, missing="drop", base=tmp_path).split(["x"])
    assert data.rows.tolist() == [3, 8]
    assert data.notes == ("dropped for having no measurement of T: rows 6 and 7",)
    Path("d.csv").write_text("x,T,q\n0,,1\n1,2,NaN\n")
    data = read_data("d.csv", {"x": "x", "T": "T", "q": "q"}, {"T": 1, "q": StudentT()}, base=".").split("x")
    np.testing.assert_array_equal(data.values["T"], [np.nan, 2])
    np.testing.assert_array_equal(data.values["q"], [1, np.nan])
    assert data.noise == {"T": Gaussian(1.0), "q": StudentT()}


def test_the_fast_and_the_careful_way_agree(tmp_path: Path) -> None:
    """A single empty cell sends its whole chunk down the careful way; all other numbers must not change."""
    rows = [f"{a!r},{b!r},9" for a, b in NUMBERS[:2].T.tolist()]
    (tmp_path / "fast.csv").write_text("\n".join(["x,T,q", *rows]))
    (tmp_path / "slow.csv").write_text("\n".join(["x,T,q", *rows[:-1], rows[-1][:-1]]))
    fast, slow = (read_data(tmp_path / f"{n}.csv", {"x": "x", "T": "T", "q": "q"}).split("x") for n in ("fast", "slow"))
    assert fast.values["T"].tobytes() == slow.values["T"].tobytes()
    assert np.isnan(slow.values["q"]).tolist() == [False] * 39 + [True]


def test_a_relative_path_starts_at_the_calling_file(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    text(tmp_path / "study" / "d.csv")
    source = "from tgsr.problem._readers import read_data\ndata = read_data('d.csv', {'x': 'pos m', 'T': 'T/°C'})"
    scope: dict[str, Any] = {"__file__": str(tmp_path / "study" / "problem.py")}
    exec(compile(source, scope["__file__"], "exec"), scope)
    assert len(scope["data"]) == 40
    with pytest.raises(InputError, match="Looked in") as caught:
        exec(compile(source, scope["__file__"], "exec"), {"__file__": str(tmp_path / "problem.py")})
    assert str(tmp_path) in str(caught.value)


def test_fingerprint_is_of_numbers_names_and_noise(tmp_path: Path) -> None:
    def made(**changes: Any) -> str:
        given: dict[str, Any] = {"points": {"x": [0, 1]}, "values": {"T": [1.0, 2.0], "q": [np.nan, 1.0]}}
        return Data(**{**given, **changes}).fingerprint()

    assert made() == made(name="other") == made(points={"x": np.array([0.0, 1.0], np.float32)})
    assert made() == made(values={"q": [-np.nan, 1.0], "T": [1.0, 2.0]})
    changes = [
        {"points": {"x": [1, 0]}},
        {"points": {"y": [0, 1]}},
        {"noise": 0.5},
        {"noise": {"T": 0.5, "q": None}},
        {"values": {"T": [1.0, 2.0]}},
        {"values": {"T": [1.0, np.nextafter(2, 3)], "q": [np.nan, 1.0]}},
    ]
    assert len({made(), *(made(**change) for change in changes)}) == 7


def test_data_cannot_be_changed_from_outside() -> None:
    x = np.array([0.0, 1.0])
    data = Data({"x": x}, {"T": [1, 2]})
    x[0] = 9.0
    assert data.points["x"][0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        data.points["x"][0] = 3.0
    assert repr(data) == "Data('data', 2 rows of T over x)"


def test_points_on_the_boundary_are_inside_and_others_are_named() -> None:
    data = Data({"x": [0.0, 1.0 + 1e-10, 0.5]}, {"T": [1, 2, 3]})
    assert data.check_against({"x": (0.0, 1.0)}, ["T"], lambda at: at["x"] >= 0) is data
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\).*\[0, 0.7\]") as caught:
        data.check_against({"x": (0.0, 0.7)}, ["T"])
    assert (caught.value.row, caught.value.field) == (1, "x")
    with pytest.raises(InputError, match=r"rows 0 and 2.*x=0\b"):
        data.check_against({"x": (0.0, 2.0)}, ["T"], lambda at: at["x"] > 0.7)


def test_no_reader_imports_jax() -> None:
    for folder in tgsr.problem.__path__:
        for path in [*Path(folder).glob("_read*.py"), Path(folder, "_data.py"), Path(folder, "_noise.py")]:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not any(name.split(".")[0] in ("jax", "equinox", "pickle") for name in names), path
