"""Arrays in files: `.npz` for people, safetensors for weights. The same arrays give the same bytes.

Readers check every size that a file claims before they allocate, and never unpickle.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from tgsr._errors import StorageError
from tgsr.storage._atomic import READ_LIMIT, read_bytes, write_bytes
from tgsr.storage._json import parse_json

Arrays = Mapping[str, NDArray[Any]]
HEADER_LIMIT = 2**23
COUNT_LIMIT = 2**16
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest a zip can say: no clock in the bytes
_NPZ_KINDS = "biufcSUmM"  # neither objects nor raw records
_TENSOR_TYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64".split()
)
_PICKLE = "A pickle can run code and is never opened; use safetensors.numpy.save_file or numpy.savez"


def npz_bytes(arrays: Arrays) -> bytes:
    """The bytes of an uncompressed `.npz` of `arrays`: sorted names, C order, no timestamps."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(_named(arrays)):
            array = np.asarray(arrays[name], order="C")
            if array.dtype.kind not in _NPZ_KINDS or not array.dtype.itemsize:
                raise StorageError(f"an array of type {array.dtype} cannot be stored in .npz", field=name)
            member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            member.create_system, member.external_attr = 3, 0o644 << 16  # the same on every platform
            with archive.open(member, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def write_arrays(path: str | PathLike[str], arrays: Arrays) -> str:
    """Write `arrays` as `.npz`; return the SHA-256 of the file."""
    return write_bytes(path, npz_bytes(arrays))


def read_arrays(
    path: str | PathLike[str], *, limit: int = READ_LIMIT, digest: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` of at most `limit` bytes, compressed or not."""
    data = read_bytes(path, limit=limit, digest=digest)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            if len(members) > COUNT_LIMIT or sum(member.file_size for member in members) > limit:
                raise ValueError(f"it claims more than {COUNT_LIMIT:,} arrays or {limit:,} bytes")
            if len(names) != len(members) or not all(name.endswith(".npy") for name in names):
                raise ValueError("its members are not distinct .npy files")
            return {member.filename[:-4]: _npy(archive.read(member)) for member in members}
    except Exception as error:  # whatever zipfile and numpy raise on damaged bytes in memory, it means one thing
        raise _unreadable(path, data, "npz", error) from error


def tensor_bytes(arrays: Arrays) -> bytes:
    """The bytes of a safetensors file of `arrays`."""
    ready: dict[str, NDArray[Any]] = {}
    for name in _named(arrays):
        array = np.asarray(arrays[name], order="C")
        if array.dtype.name not in _TENSOR_TYPES:
            raise StorageError(f"an array of type {array.dtype} cannot be stored in safetensors", field=name)
        ready[name] = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data = safetensors_numpy.save(ready)
    if len(ready) > COUNT_LIMIT or int.from_bytes(data[:8], "little") > HEADER_LIMIT:
        raise StorageError(f"more than {COUNT_LIMIT:,} arrays, or names too long, for one file")
    return data


def write_tensors(path: str | PathLike[str], arrays: Arrays) -> str:
    """Write `arrays` as safetensors; return the SHA-256 of the file."""
    return write_bytes(path, tensor_bytes(arrays))


def read_tensors(
    path: str | PathLike[str], *, limit: int = READ_LIMIT, digest: str | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file of at most `limit` bytes."""
    data = read_bytes(path, limit=limit, digest=digest)
    try:
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > min(HEADER_LIMIT, len(data) - 8):
            raise ValueError(f"a header of {length:,} bytes in a file of {len(data):,}")
        if len(parse_json(data[8 : 8 + length])) > COUNT_LIMIT:
            raise ValueError(f"more than {COUNT_LIMIT:,} arrays")
        return dict(sorted(safetensors_numpy.load(data).items()))
    except Exception as error:  # as above
        raise _unreadable(path, data, "safetensors", error) from error


def _npy(data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = header[np.lib.format.read_magic(stream)](stream)
    size = len(data) - stream.tell()
    if dtype.kind not in _NPZ_KINDS or not dtype.itemsize or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{dtype} of shape {shape} in {size:,} bytes")
    if not size:
        return np.empty(shape, dtype)
    return np.frombuffer(bytearray(data), dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C")


def _named(arrays: Arrays) -> Arrays:
    for name in arrays:
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= 200:
            raise StorageError("an array's name must be 1 to 200 printable characters", field=repr(name))
        if name[0] == "$" or "\\" in name or name == "__metadata__":
            raise StorageError("a name that files keep for themselves (no '$' first, no backslash)", field=name)
    return arrays


def _unreadable(path: str | PathLike[str], data: bytes, kind: str, error: Exception) -> StorageError:
    foreign = data[:1] == b"\x80" or (kind == "safetensors" and data[:2] == b"PK") or b"\x80\x02" in data[:4]
    return StorageError(f"is not a readable {kind} file ({error})", file=path, remedy=_PICKLE if foreign else None)
