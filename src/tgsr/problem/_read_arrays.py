"""Files that hold plain arrays or columns: NumPy, Parquet, and MATLAB up to version 7.2."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError
from tgsr.problem._read_grids import to_points
from tgsr.problem._read_table import (
    MAX_COLUMNS,
    MAX_ROWS,
    Column,
    Vector,
    check_stored,
    extra,
    list_names,
    missing_column,
    parsing,
    shown,
    too_many,
)


def read_numpy(path: Path, file: str, wanted: dict[str, Column]) -> dict[str, Vector]:
    """NPZ: one array per name. NPY: the columns of a table, by position or, in a structured array, name."""
    if path.suffix.lower() == ".npy":
        return _read_npy(path, file, wanted)
    arrays: dict[str, Any] = {}
    with parsing(file, "a NumPy archive"), zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
        if not members:
            raise InputError(
                "is a zip archive without NumPy arrays",
                file=file,
                remedy="Write it with numpy.savez; archives of pickled objects are never read",
            )
        for name, column in wanted.items():
            if column not in members:
                raise missing_column(file, column, members, "array")
            with archive.open(members[str(column)]) as stream:
                version = np.lib.format.read_magic(stream)
                header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = header(stream)
            check_stored(file, str(column), dtype, int(np.prod(shape, dtype=object)))
            with archive.open(members[str(column)]) as stream:
                arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
    return to_points(file, arrays, {name: str(column) for name, column in wanted.items()})


def _read_npy(path: Path, file: str, wanted: dict[str, Column]) -> dict[str, Vector]:
    with parsing(file, "a NumPy array"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    names = array.dtype.names
    if names is not None and array.ndim == 1:
        found = {}
        for name, column in wanted.items():
            if column not in names:
                raise missing_column(file, column, names)
            check_stored(file, str(column), array.dtype[str(column)], array.size)
            found[name] = array[str(column)].astype(np.float64)
        return found
    if array.ndim != 2:
        raise InputError(
            f"holds an array of shape {array.shape}, not a table with one row per measurement",
            file=file,
            remedy="Save several arrays with numpy.savez",
        )
    for column in wanted.values():
        if not isinstance(column, int) or column >= array.shape[1]:
            raise InputError(
                f"there is no column {shown(column)}: columns 0 to {array.shape[1] - 1} have no names",
                file=file,
                remedy="Choose columns by position: columns={'x': 0, 'T': 1}",
            )
    check_stored(file, "table", array.dtype, array.shape[0])
    return {name: array[:, int(column)].astype(np.float64) for name, column in wanted.items()}


def read_parquet(path: Path, file: str, wanted: dict[str, Column]) -> dict[str, Vector]:
    """Columns of a Parquet table; null is a missing value."""
    parquet = extra("pyarrow.parquet", file)
    types = extra("pyarrow.types", file)
    with parsing(file, "Parquet"), parquet.ParquetFile(path) as source:
        schema = source.schema_arrow
        if source.metadata.num_rows > MAX_ROWS:
            raise too_many(file, source.metadata.num_rows)
        if len(schema.names) > MAX_COLUMNS:
            raise InputError(f"has {len(schema.names):,} columns", file=file, remedy=f"Keep at most {MAX_COLUMNS:,}")
        for column in wanted.values():
            if column not in schema.names:
                raise missing_column(file, column, schema.names)
            if schema.names.count(column) > 1:
                raise InputError(
                    "several columns have this name",
                    file=file,
                    field=str(column),
                    remedy="Rename one of them",
                )
            kind = schema.field(column).type
            if not (types.is_integer(kind) or types.is_floating(kind)):
                raise InputError(
                    f"holds {shown(kind, 40)} values where real numbers are needed",
                    file=file,
                    field=str(column),
                    remedy="Store it as integers or floating-point numbers",
                )
        table = source.read(columns=list(wanted.values()))
        if table.num_rows == 0:
            raise InputError("holds no rows", file=file, remedy="Add at least one measurement")
        double = extra("pyarrow", file).float64()
        return {
            name: np.array(table.column(column).cast(double, safe=False).to_numpy(), dtype=np.float64)
            for name, column in wanted.items()
        }


def read_matlab(path: Path, file: str, wanted: dict[str, Column]) -> dict[str, Vector]:
    """Numeric arrays of a MATLAB file, version 5 to 7.2: vectors of equal length, or a grid with its axes."""
    from scipy.io import loadmat, whosmat

    numeric = {"double", "single", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
    with parsing(file, "a MATLAB file"):
        stored = {name: (shape, kind) for name, shape, kind in whosmat(path)}
        for column in wanted.values():
            if column not in stored:
                raise missing_column(file, column, stored, "variable")
            shape, kind = stored[str(column)]
            if kind not in numeric:
                raise InputError(
                    f"holds MATLAB {kind} values where real numbers are needed",
                    file=file,
                    field=str(column),
                    remedy=f"Numeric are {list_names(n for n, s in stored.items() if s[1] in numeric)}",
                )
            check_stored(file, str(column), np.dtype(np.float64), int(np.prod(shape, dtype=object)))
        loaded = loadmat(path, variable_names=list(wanted.values()))
        arrays = {name: np.asarray(loaded[str(column)]) for name, column in wanted.items()}
    for name, column in wanted.items():
        check_stored(file, str(column), arrays[name].dtype, arrays[name].size)  # complex is not declared beforehand
    return to_points(file, arrays, {name: str(column) for name, column in wanted.items()})
