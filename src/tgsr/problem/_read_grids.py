"""Files whose variables may lie on a grid (NetCDF, HDF5, MATLAB 7.3), and how a grid becomes rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError
from tgsr.problem._read_table import (
    MAX_ROWS,
    Column,
    Vector,
    check_stored,
    extra,
    missing_column,
    parsing,
    too_many,
)

Axes = dict[str, tuple[str, ...]]


def to_points(file: str, arrays: dict[str, Any], labels: dict[str, str], axes: Axes | None = None) -> dict[str, Vector]:
    """One row per point of the grid that the arrays span together.

    `axes[name]` are the names of an array's dimensions. Without them, arrays of one shape are taken point by
    point, and otherwise a vector belongs to the dimension of the grid that has its length, if only one has.
    """
    if axes is None:
        arrays = {name: array.squeeze() for name, array in arrays.items()}
        if len({array.shape for array in arrays.values()}) == 1:
            return {name: array.astype(np.float64).ravel() for name, array in arrays.items()}
        axes = _axes_by_length(file, arrays, labels)
    lengths: dict[str, int] = {}
    for name in sorted(arrays, key=lambda name: -arrays[name].ndim):
        for axis, length in zip(axes[name], arrays[name].shape, strict=True):
            if lengths.setdefault(axis, length) != length:
                raise InputError(
                    f"has {length} values along {axis!r} where another variable has {lengths[axis]}",
                    file=file,
                    field=labels[name],
                    remedy="Choose variables on one grid",
                )
    if math.prod(lengths.values()) > MAX_ROWS:
        raise too_many(file, math.prod(lengths.values()))
    order, found = list(lengths), {}
    for name, array in arrays.items():
        sorted_axes = sorted(axes[name], key=order.index)
        grid = array.transpose([axes[name].index(axis) for axis in sorted_axes])
        grid = grid.reshape([lengths[axis] if axis in sorted_axes else 1 for axis in order])
        found[name] = np.broadcast_to(grid, list(lengths.values())).astype(np.float64).ravel()
    return found


def _axes_by_length(file: str, arrays: dict[str, Any], labels: dict[str, str]) -> Axes:
    grid = max((array.shape for array in arrays.values()), key=len)
    described = ", ".join(f"{labels[name]} {'x'.join(map(str, a.shape)) or 1}" for name, a in arrays.items())
    fits = all(a.shape == grid or (a.ndim == 1 and a.size in grid) for a in arrays.values())
    if len(grid) < 2 or not fits:
        raise InputError(
            f"the arrays do not fit together: {described[:400]}",
            file=file,
            remedy="Save one value per measurement in each, or a grid with one vector per axis",
        )
    if len(set(grid)) < len(grid):
        raise InputError(
            f"two axes of the grid have the same length, so a vector fits both: {described[:400]}",
            file=file,
            remedy="Save the coordinates in the shape of the grid (numpy.meshgrid with indexing='ij')",
        )
    return {name: tuple(map(str, array.shape)) for name, array in arrays.items()}


def _unpacked(array: Any, attributes: Any) -> Any:
    """The physical values of a packed variable (CF conventions): NaN for fill values, scale, offset."""

    def attribute(key: str, default: Any) -> Any:
        value = attributes.get(key, default)
        return default if value is default else np.asarray(value).ravel()

    fills = [attribute(key, np.empty(0)) for key in ("_FillValue", "missing_value")]
    values = array.astype(np.float64)
    for fill in np.concatenate(fills):
        values[array == fill] = np.nan
    return values * attribute("scale_factor", np.ones(1))[0] + attribute("add_offset", np.zeros(1))[0]


def read_hdf5(path: Path, file: str, wanted: dict[str, Column]) -> dict[str, Vector]:
    """Numeric datasets of HDF5, NetCDF-4 or MATLAB 7.3, with dimension scales where the file has them."""
    h5py = extra("h5py", file)
    arrays: dict[str, Any] = {}
    axes: Axes = {}
    with parsing(file, "HDF5"), h5py.File(path, "r") as source:
        for name, column in wanted.items():
            stored: Any = source.get(column) if _within(source, column, h5py) else None
            if not isinstance(stored, h5py.Dataset):
                names: list[str] = []
                source.visititems(
                    lambda key, item, names=names: names.append(key) if isinstance(item, h5py.Dataset) else None
                )
                raise missing_column(file, column, names, "variable")
            if stored.is_virtual or stored.external:
                raise InputError(
                    "keeps its values in other files",
                    file=file,
                    field=str(column),
                    remedy="Copy them into this one",
                )
            if stored.attrs.get("MATLAB_class", b"double") in (b"char", b"logical", b"cell", b"struct"):
                raise InputError("is not a numeric MATLAB array", file=file, field=str(column), remedy="Save numbers")
            check_stored(file, str(column), stored.dtype, int(stored.size or 0))
            arrays[name] = _unpacked(stored[()], stored.attrs)
            if stored.is_scale and stored.ndim == 1:
                axes[name] = (stored.name,)
            elif all(len(dimension) for dimension in stored.dims):
                axes[name] = tuple(dimension[0].name for dimension in stored.dims)
    labels = {name: str(column) for name, column in wanted.items()}
    named = len(axes) == len(arrays) and any(axes.values())
    return to_points(file, arrays, labels, axes if named else None)


def _within(source: Any, column: Column, h5py: Any) -> bool:
    """Whether each step of the path stays in this file: an external link could open any other."""
    group = source
    if not isinstance(column, str):
        return False
    for step in column.strip("/").split("/"):
        if not isinstance(group, h5py.Group) or not isinstance(group.get(step, getlink=True), h5py.HardLink):
            return False
        group = group[step]
    return True


def read_netcdf3(path: Path, file: str, wanted: dict[str, Column]) -> dict[str, Vector]:
    """Variables of a classic NetCDF file."""
    from scipy.io import netcdf_file

    arrays: dict[str, Any] = {}
    axes: Axes = {}
    with parsing(file, "NetCDF"), netcdf_file(path, "r", mmap=False) as source:
        for name, column in wanted.items():
            variable = source.variables.get(column)
            if variable is None:
                raise missing_column(file, column, source.variables, "variable")
            check_stored(file, str(column), variable.data.dtype, math.prod(variable.data.shape))
            arrays[name] = _unpacked(variable.data, variable._attributes)
            axes[name] = tuple(variable.dimensions)
    return to_points(file, arrays, {name: str(column) for name, column in wanted.items()}, axes)
