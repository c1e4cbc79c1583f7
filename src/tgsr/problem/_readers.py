"""`read_data`: measurements from a file the user names. Nothing in a file is ever executed or unpickled."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path

from tgsr._errors import InputError
from tgsr.problem._data import check_label
from tgsr.problem._names import check_name
from tgsr.problem._noise import Noise, as_noise
from tgsr.problem._read_arrays import read_matlab, read_numpy, read_parquet
from tgsr.problem._read_file import TEXT, kind_of, locate
from tgsr.problem._read_grids import read_hdf5, read_netcdf3
from tgsr.problem._read_table import Column, Missing, Table, Vector, nearest, shown, shown_path
from tgsr.problem._read_text import read_text


def read_data(
    path: str | os.PathLike[str],
    columns: Mapping[str, Column],
    noise: Noise | float | Mapping[str, Noise | float | None] | None = None,
    *,
    missing: Missing = "error",
    delimiter: str | None = None,
    name: str | None = None,
    base: str | os.PathLike[str] | None = None,
) -> Table:
    """Measurements from a CSV, NumPy, Parquet, NetCDF, HDF5 or MATLAB file.

    `columns` maps the problem's names to the file's: a column's heading (or its position from 0), or a
    variable's path such as `"probe/temperature"`. Gridded variables become one row per grid point. An empty
    cell or NaN in a measured column means "not measured there"; rows without a coordinate or without any
    measurement are an error, or left out with `missing="drop"`. `noise` is a standard deviation, a noise
    model, or None to estimate it; one for all fields or one per field. `delimiter` overrules the one detected
    in a text file (" " for any white space). A relative path starts at `base`, else at the folder of the
    Python file that calls this function, else (in a notebook) at the working directory.
    """
    caller = inspect.currentframe()
    calling = caller.f_back.f_globals.get("__file__") if caller is not None and caller.f_back is not None else None
    file = locate(path, base, calling)
    shown_file = shown_path(path)
    wanted = _wanted(columns, shown_file)
    if missing not in ("error", "drop"):
        raise InputError(f"missing={shown(missing)} is not known", file=shown_file, remedy="Use 'error' or 'drop'")
    per_field = (
        {key: as_noise(value) for key, value in noise.items()} if isinstance(noise, Mapping) else as_noise(noise)
    )
    for key in per_field if isinstance(per_field, dict) else ():
        if key not in wanted:
            raise InputError(
                f"noise is given for {shown(key)}, which is not in columns",
                file=shown_file,
                remedy=nearest(str(key), wanted, "names in columns"),
            )
    suffix = file.suffix.lower()
    kind = kind_of(file, suffix, shown_file)
    if delimiter is not None and suffix not in TEXT:
        raise InputError("delimiter is for text files only", file=shown_file, remedy="Leave delimiter out")
    found, lines = _read(file, kind, wanted, delimiter, shown_file)
    label = check_label(
        "".join(c for c in file.stem if c.isprintable())[:100].strip() or "data" if name is None else name
    )
    return Table(found, per_field, label, str(path), lines, missing)


def _read(file: Path, kind: str, wanted: dict[str, Column], delimiter: str | None, shown_file: str) -> tuple:
    if kind == "text":
        return read_text(file, shown_file, wanted, delimiter)
    reader = {
        "zip": read_numpy,
        "npy": read_numpy,
        "parquet": read_parquet,
        "matlab": read_matlab,
        "netcdf3": read_netcdf3,
        "hdf5": read_hdf5,
    }[kind]
    found: dict[str, Vector] = reader(file, shown_file, wanted)
    return found, None


def _wanted(columns: object, file: str) -> dict[str, Column]:
    example = "Write columns={'x': 'name of the x column', 'T': 'name of the T column'}"
    if not isinstance(columns, Mapping) or len(columns) < 2:
        raise InputError("columns must name at least one coordinate and one measured field", file=file, remedy=example)
    seen: dict[object, str] = {}
    for key, column in columns.items():
        check_name(key, "coordinate or field")
        if (
            isinstance(column, bool)
            or not isinstance(column, (str, int))
            or column == ""
            or (isinstance(column, int) and column < 0)
        ):
            raise InputError(
                f"{shown(key)} needs a column's heading or position from 0, not {shown(repr(column), 40)}",
                file=file,
                remedy=example,
            )
        if column in seen:
            raise InputError(
                f"the column {shown(column)} is used for {shown(seen[column])} and for {shown(key)}",
                file=file,
                remedy="Give each name a column of its own",
            )
        seen[column] = key
    return dict(columns)
