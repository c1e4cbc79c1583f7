"""Weights of a PyTorch, DeepXDE, Flax or Keras MLP from a safetensors file, checked and never guessed.

A state dict holds arrays and no architecture. What it cannot say the caller says: activation, names of
inputs and outputs, scales. What it does say is checked: the layers are numbered without a gap, every layer
has a bias, the shapes chain, and nothing that is not a plain linear layer is passed over.

Not visible in any state dict, and so the caller's to know: transforms of the input or output, an activation
after the last layer, and activations that differ from layer to layer. A network that has one is another
function than the one imported.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tgsr._errors import InputError
from tgsr.network._names import checked_activation, checked_names
from tgsr.network._safetensors import Tensor, parse, read_given
from tgsr.network._saved import FloatArray, SavedNetwork

_KEY = re.compile(r"(?P<stem>.*?)(?P<number>[0-9]{1,6})[./](?P<part>weight|kernel|bias)", re.DOTALL)
_TYPES = {"F32": "float32", "F64": "float64"}
_HALF = {"F16": "float16", "BF16": "bfloat16", "F8_E5M2": "float8", "F8_E4M3": "float8"}
_RENAME = "Save a state dict with keys '<name>.<number>.weight' and '<name>.<number>.bias' and no others"


def import_network(
    path: str | PathLike[str],
    *,
    activation: str,
    coordinates: Sequence[str],
    fields: Sequence[str],
    centre: ArrayLike | None = None,
    half_width: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    prefix: str | None = None,
) -> SavedNetwork:
    """The multilayer perceptron in a safetensors state dict.

    Keys end in a layer number and `weight` (PyTorch, DeepXDE: stored as (n_out, n_in)) or `kernel`
    (Flax, Keras: (n_in, n_out)) or `bias`: `0.weight`, `net.2.bias`, `linears.0.weight`,
    `Dense_1.kernel`. Numbers count from 0 in even steps (a Sequential numbers its activations too) or
    from 1 in steps of one. With `prefix` only the keys that start with it are looked at.

    The imported network takes (x - centre) / half_width and gives offset + scale * output; without these the
    numbers pass as they are. float32 and float64 are taken as stored; half precision is refused, since a
    rounding of 1e-3 in every weight should be somebody's decision.
    """
    file = Path(path)
    scales = Scales(centre, half_width, offset, scale)
    return assemble(parse(read_given(file), file), file, activation, coordinates, fields, scales, prefix)


class Scales(NamedTuple):
    """The affine maps around an imported network; None leaves the numbers as they are."""

    centre: Any
    half_width: Any
    offset: Any
    scale: Any


def assemble(
    tensors: Mapping[str, Tensor],
    file: Path,
    activation: str,
    coordinates: Sequence[str],
    fields: Sequence[str],
    scales: Scales,
    prefix: str | None,
) -> SavedNetwork:
    """The network in a state dict from any kind of file; every refusal names the file and the key."""
    checked_activation(activation)
    inputs, outputs = checked_names(coordinates, "coordinates"), checked_names(fields, "fields")
    weights: list[FloatArray] = []
    biases: list[FloatArray] = []
    before = ""
    for weight_key, bias_key in _layers(_selected(tensors, prefix, file), file):
        weight, bias = _matrix(tensors[weight_key], weight_key, file), _row(tensors[bias_key], bias_key, file)
        if weights and weight.shape[0] != weights[-1].shape[1]:
            raise InputError(
                f"takes {weight.shape[0]} inputs, but '{before}' gives {weights[-1].shape[1]} outputs",
                file=file,
                field=weight_key,
                remedy="`weight` is read as (n_out, n_in) and `kernel` as (n_in, n_out)",
            )
        if bias.shape[0] != weight.shape[1]:
            raise InputError(
                f"has {bias.shape[0]} entries, but '{weight_key}' gives {weight.shape[1]} outputs",
                file=file,
                field=bias_key,
            )
        if (weights and weight.dtype != weights[0].dtype) or bias.dtype != weight.dtype:
            raise InputError(
                "float32 and float64 are mixed",
                file=file,
                field=weight_key,
                remedy="Convert all tensors to one type",
            )
        weights.append(weight)
        biases.append(bias)
        before = weight_key
    for what, names, ends, count in (
        ("coordinates", inputs, "inputs", weights[0].shape[0]),
        ("fields", outputs, "outputs", weights[-1].shape[1]),
    ):
        if len(names) != count:
            raise InputError(
                f"the network has {count} {ends}, but {len(names)} {what} are named: {', '.join(names)}",
                file=file,
                field=what,
                remedy=f"Name one of the {what} per column of the {ends}, in order",
            )
    return SavedNetwork(
        weights=tuple(weights),
        biases=tuple(biases),
        activation=activation,
        coordinates=inputs,
        fields=outputs,
        centre=np.zeros(len(inputs)) if scales.centre is None else scales.centre,
        half_width=np.ones(len(inputs)) if scales.half_width is None else scales.half_width,
        offset=np.zeros(len(outputs)) if scales.offset is None else scales.offset,
        scale=np.ones(len(outputs)) if scales.scale is None else scales.scale,
    )


def _selected(tensors: Mapping[str, Tensor], prefix: str | None, file: Path) -> list[str]:
    keys = [key for key in tensors if prefix is None or key.startswith(prefix)]
    if not keys:
        raise InputError(
            f"no key starts with '{prefix}'",
            file=file,
            field="prefix",
            remedy=f"The first key is '{next(iter(tensors), '')}'",
        )
    return sorted(keys)


def _layers(keys: Sequence[str], file: Path) -> list[tuple[str, str]]:
    """The (weight, bias) keys of each layer in the order of their numbers, 10 after 9."""
    found: dict[int, dict[str, str]] = {}
    first: re.Match[str] | None = None
    kernels: dict[bool, str] = {}
    for key in keys:
        match = _KEY.fullmatch(key)
        if match is None:
            raise InputError("is not part of a plain linear layer", file=file, field=key, remedy=_RENAME)
        first = first or match
        if match["stem"] != first["stem"]:
            raise InputError(
                f"belongs to another network than '{first[0]}'",
                file=file,
                field=key,
                remedy="Choose one with prefix=...",
            )
        if match["part"] != "bias":
            kernels.setdefault(match["part"] == "kernel", key)
        part = "bias" if match["part"] == "bias" else "weight"
        parts = found.setdefault(int(match["number"]), {})
        if part in parts:
            raise InputError(f"is the same layer's {part} as '{parts[part]}'", file=file, field=key)
        parts[part] = key
    if len(kernels) == 2:
        raise InputError(
            f"`weight` and `kernel` are mixed, as in '{kernels[False]}', so the orientation is not certain",
            file=file,
            field=kernels[True],
        )
    for parts in found.values():
        if len(parts) == 1:
            (part, key), = parts.items()  # fmt: skip
            other = "bias" if part == "weight" else "weight"
            remedy = "Give a network without biases biases of zero" if other == "bias" else None
            raise InputError(f"its layer has no {other}", file=file, field=key, remedy=remedy)
    _evenly_numbered(found, file)
    return [(found[number]["weight"], found[number]["bias"]) for number in sorted(found)]


def _evenly_numbered(found: Mapping[int, Mapping[str, str]], file: Path) -> None:
    numbers = sorted(found)
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    if len(steps) > 1 or not (numbers[0] == 0 or (numbers[0] == 1 and steps <= {1})):
        odd = next((b for a, b in itertools.pairwise(numbers) if b - a != min(steps)), numbers[0])
        raise InputError(
            f"the layers are numbered {', '.join(map(str, numbers))}: one may be missing",
            file=file,
            field=found[odd]["weight"],
            remedy="Number the linear layers 0, 1, 2, ... if none is",
        )


def _matrix(tensor: Tensor, key: str, file: Path) -> FloatArray:
    if len(tensor.shape) != 2:
        kinds = {1: "a normalisation layer", 3: "a convolution", 4: "a convolution", 5: "a convolution"}
        kind = kinds.get(len(tensor.shape), "another kind of layer")
        raise InputError(
            f"has shape {tensor.shape}, as of {kind}; only fully connected layers are imported",
            file=file,
            field=key,
        )
    array = _numbers(tensor, key, file)
    return array if key.endswith("kernel") else np.ascontiguousarray(array.T)


def _row(tensor: Tensor, key: str, file: Path) -> FloatArray:
    if len(tensor.shape) != 1:
        raise InputError(f"has shape {tensor.shape} where a bias has one dimension", file=file, field=key)
    return _numbers(tensor, key, file)


def _numbers(tensor: Tensor, key: str, file: Path) -> FloatArray:
    if tensor.dtype not in _TYPES:
        half = _HALF.get(tensor.dtype)
        raise InputError(
            f"has type {half or tensor.dtype}; weights must be float32 or float64",
            file=file,
            field=key,
            remedy="Save it after model.float() or .double() if its rounding is acceptable" if half else None,
        )
    if 0 in tensor.shape:
        raise InputError(f"is empty, its shape is {tensor.shape}", file=file, field=key)
    array = tensor.read()
    if not np.isfinite(array).all():
        raise InputError("holds NaN or infinite numbers, so its training failed", file=file, field=key)
    return array
