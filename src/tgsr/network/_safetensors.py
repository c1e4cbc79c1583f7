"""A careful reader of the safetensors layout: everything is checked before anything is allocated.

    8 bytes: length n of the header, little endian | n bytes of JSON | the data

The header gives each tensor's type, shape and byte range. Nothing in such a file can run code. The format
has no checksum: `network.json` has it for our own files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError, StorageError
from tgsr.network._saved import FloatArray
from tgsr.storage import read_bytes

MAX_FILE_BYTES = 256 * 2**20
MAX_HEADER_BYTES = 2**20
MAX_TENSORS = 1024
_ITEM_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
_FLOATS = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_CONVERT = (
    "Bring it in with `tgsr convert` or convert_pytorch (extra `torch`), "
    "or save the state dict with safetensors.torch.save_file"
)
_SAVE = "Save the weights with safetensors.numpy.save_file"
_OTHER_FORMATS = (
    (b"PK\x03\x04", "a zip archive, as PyTorch writes; it may hold a pickle and is not opened", _CONVERT),
    (b"PK\x05\x06", "an empty zip archive, not safetensors", _CONVERT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, not safetensors", _SAVE),
    (b"\x93NUMPY", "a NumPy array file, not safetensors", _SAVE),
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "Fetch it with `git lfs pull`"),
)  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """One array of a file, not yet loaded: the dtype's name, the shape and the way to its numbers."""

    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], FloatArray]


def read_given(path: Path) -> bytes:
    """The whole of a file that a user names; that it cannot be read is a matter of what was given."""
    try:
        return read_bytes(path, limit=MAX_FILE_BYTES)
    except StorageError as error:
        raise InputError(error.what, file=path, remedy="Check the path and the file") from None


def refuse_other_formats(data: bytes, file: Path) -> None:
    """Refuse pickles and other containers by their first bytes, whatever the file is called."""
    # A pickle of protocol 2 to 5 starts with 0x80, the protocol, and an opcode that is never zero; a
    # safetensors header of 640 bytes starts with 0x80 0x02 too, but then six zeros follow.
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and data[2:3] != b"\x00":
        raise InputError("is a Python pickle, which can run code and is not opened", file=file, remedy=_CONVERT)
    for magic, what, remedy in _OTHER_FORMATS:
        if data.startswith(magic):
            raise InputError(f"is {what}", file=file, remedy=remedy)


def parse(data: bytes, file: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, by name, each a view on `data` until it is read."""
    refuse_other_formats(data, file)
    if len(data) < 8:
        raise InputError(f"has only {len(data)} bytes, too few for a safetensors file", file=file)
    length = int.from_bytes(data[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise InputError(
            f"is not a safetensors file (a header of {length:,} bytes is over the limit)",
            file=file,
        )
    if 8 + length > len(data):
        raise InputError(f"is cut short: a header of {length:,} bytes in {len(data):,}", file=file)
    header = _header(data[8 : 8 + length], file)
    header.pop("__metadata__", None)
    if not header:
        raise InputError("holds no tensor", file=file)
    if len(header) > MAX_TENSORS:
        raise InputError(f"names {len(header):,} tensors; at most {MAX_TENSORS:,} are read", file=file)
    body = memoryview(data)[8 + length :]
    ranges: list[tuple[int, int, str]] = []
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        begin, end, tensors[name] = _tensor(name, entry, body, file)
        ranges.append((begin, end, name))
    at = 0
    for begin, end, name in sorted(ranges):
        if begin != at:
            raise InputError(f"its data start at byte {begin} where {at} is expected", file=file, field=name)
        at = end
    if at != len(body):
        raise InputError(f"has {len(body):,} bytes of data where its header describes {at:,}", file=file)
    return tensors


def _header(text: bytes, file: Path) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not a safetensors file: its header is not JSON ({error})", file=file) from None
    if not isinstance(header, dict):
        raise InputError("is not a safetensors file: its header is not a JSON object", file=file)
    return header


def _tensor(name: str, entry: Any, body: memoryview, file: Path) -> tuple[int, int, Tensor]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise InputError("its header entry must have dtype, shape and data_offsets", file=file, field=name)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _ITEM_BITS:
        raise InputError(f"unknown type {dtype!r}", file=file, field=name)
    if not _counts(shape) or len(shape) > 8:
        raise InputError(f"bad shape {shape!r}", file=file, field=name)
    if not _counts(offsets) or len(offsets) != 2 or not offsets[0] <= offsets[1] <= len(body):
        raise InputError(f"bad byte range {offsets!r} in {len(body):,} bytes of data", file=file, field=name)
    begin, end = offsets
    if math.prod(shape) * _ITEM_BITS[dtype] != 8 * (end - begin):
        raise InputError(f"shape {shape} of {dtype} does not fill {end - begin:,} bytes", file=file, field=name)

    def read() -> FloatArray:
        array = np.frombuffer(body[begin:end], _FLOATS[dtype]).reshape(shape)
        return array.astype(array.dtype.newbyteorder("="))

    return begin, end, Tensor(dtype, tuple(shape), read)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) is int and 0 <= number < 2**63 for number in value)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object hook: a name given twice is an error, not the last one wins."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for place, (name, _) in enumerate(pairs) if name in dict(pairs[:place]))
        raise ValueError(f"'{twice}' is given twice")
    return found
