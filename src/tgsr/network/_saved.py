"""A trained network as plain arrays: what is written, read, imported and handed to a transfer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tgsr._errors import InputError
from tgsr.network._names import checked_activation, checked_names

FloatArray = NDArray[np.float32 | np.float64]


@dataclass(frozen=True, eq=False)
class SavedNetwork:
    """A fully connected network with the scales around it.

        a_0 = (x - centre) / half_width
        a_l = activation(a_{l-1} W_l + b_l),   l = 1 ... depth
        u   = offset + scale * (a_depth W + b)

    `weights[l]` has shape (n_in, n_out) and `biases[l]` shape (n_out,), both of one float type. The columns
    of the input are `coordinates`, those of the output `fields`, in that order. The arrays are copies
    that cannot be written to.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: str
    coordinates: tuple[str, ...]
    fields: tuple[str, ...]
    centre: NDArray[np.float64]
    half_width: NDArray[np.float64]
    offset: NDArray[np.float64]
    scale: NDArray[np.float64]

    def __post_init__(self) -> None:
        checked_activation(self.activation)
        coordinates = checked_names(self.coordinates, "coordinates")
        fields = checked_names(self.fields, "fields")
        if both := sorted(set(coordinates) & set(fields)):
            raise InputError(
                f"'{both[0]}' is both a coordinate and a field", field="fields", remedy="Use distinct names"
            )
        weights, biases = _layers(self.weights, self.biases)
        _same_count("coordinates", coordinates, "inputs", weights[0].shape[0])
        _same_count("fields", fields, "outputs", weights[-1].shape[1])
        kept = {
            "weights": weights,
            "biases": biases,
            "coordinates": coordinates,
            "fields": fields,
            "centre": _scales("centre", self.centre, len(coordinates), positive=False),
            "half_width": _scales("half_width", self.half_width, len(coordinates), positive=True),
            "offset": _scales("offset", self.offset, len(fields), positive=False),
            "scale": _scales("scale", self.scale, len(fields), positive=True),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons per layer from the input to the output, such as (2, 100, 100, 1)."""
        return (self.weights[0].shape[0], *(weight.shape[1] for weight in self.weights))

    @property
    def depth(self) -> int:
        """Number of hidden layers."""
        return len(self.weights) - 1

    @property
    def dtype(self) -> str:
        """'float32' or 'float64': the type of every weight and bias."""
        return self.weights[0].dtype.name

    def tensors(self) -> dict[str, FloatArray]:
        """The arrays of the layers by the name they carry in a file; `kernel` says (n_in, n_out)."""
        named: dict[str, FloatArray] = {}
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            named[f"layers.{layer}.kernel"], named[f"layers.{layer}.bias"] = weight, bias
        return named

    def fingerprint(self) -> str:
        """SHA-256 over every name and the bytes of every array: equal exactly when the networks are."""
        arrays = {
            **self.tensors(),
            "centre": self.centre,
            "half_width": self.half_width,
            "offset": self.offset,
            "scale": self.scale,
        }
        names = [self.activation, self.coordinates, self.fields, self.dtype, self.widths, list(arrays)]
        digest = hashlib.sha256(json.dumps(names).encode())
        for array in arrays.values():
            digest.update(little_endian(array))
        return digest.hexdigest()


def little_endian(array: FloatArray) -> bytes:
    """The bytes of `array` in the order a file has them, whatever the machine."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _layers(
    weights: Sequence[ArrayLike], biases: Sequence[ArrayLike]
) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
    if len(weights) != len(biases) or not len(weights):
        raise InputError(
            f"needs one bias per weight matrix and at least one, got {len(weights)} and {len(biases)}",
            field="weights",
        )
    matrices = tuple(_frozen(f"weights[{i}]", weight, 2) for i, weight in enumerate(weights))
    rows = tuple(_frozen(f"biases[{i}]", bias, 1) for i, bias in enumerate(biases))
    for i, (matrix, row) in enumerate(zip(matrices, rows, strict=True)):
        if row.shape[0] != matrix.shape[1]:
            raise InputError(
                f"has {row.shape[0]} entries where its weight matrix has {matrix.shape[1]} neurons",
                field=f"biases[{i}]",
            )
        if i and matrices[i - 1].shape[1] != matrix.shape[0]:
            raise InputError(
                f"takes {matrix.shape[0]} inputs where the layer before gives {matrices[i - 1].shape[1]}",
                field=f"weights[{i}]",
            )
    if len(types := sorted({array.dtype.name for array in (*matrices, *rows)})) > 1:
        raise InputError(
            f"the arrays mix {' and '.join(types)}",
            field="weights",
            remedy="Convert all of them to one of the two",
        )
    return matrices, rows


def _frozen(name: str, value: ArrayLike, dimensions: int) -> FloatArray:
    try:
        array = np.array(value, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"is not an array of numbers ({error})", field=name) from None
    if array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
        raise InputError(f"has type {array.dtype.name}", field=name, remedy="Weights and biases are float32 or float64")
    if array.ndim != dimensions or not array.size:
        raise InputError(f"has shape {array.shape} where {dimensions} non-empty dimensions are needed", field=name)
    if not np.isfinite(array).all():
        raise InputError("holds NaN or infinite numbers", field=name)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    array.flags.writeable = False
    return array


def _scales(name: str, value: ArrayLike, length: int, *, positive: bool) -> NDArray[np.float64]:
    """One number per coordinate or field; a width or scale must be positive, or the map cannot be undone."""
    try:
        array = np.array(value)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "fiu" or array.shape != (length,):
        raise InputError(f"must be a list of {length} numbers, got {value!r}", field=name)
    array = array.astype(np.float64)
    if not np.isfinite(array).all() or (positive and not (array > 0).all()):
        raise InputError(f"must hold finite{' positive' if positive else ''} numbers, got {value!r}", field=name)
    array.flags.writeable = False
    return array


def _same_count(what: str, names: tuple[str, ...], ends: str, count: int) -> None:
    if len(names) != count:
        raise InputError(
            f"the network has {count} {ends}, but {len(names)} {what} are named: {', '.join(names)}",
            field=what,
            remedy=f"Name one of the {what} per column of the network's {ends}, in order",
        )
