"""The explicit converter for PyTorch's own files, the only door through which one comes in.

PyTorch's files are pickles. They are read by `torch.load(weights_only=True)` and nothing else: an unpickler
that knows tensors and plain containers and calls nothing a file names. Everything else in this package
refuses such files unopened.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from tgsr._errors import InputError
from tgsr.network._import import Scales, assemble
from tgsr.network._safetensors import MAX_FILE_BYTES, MAX_TENSORS, Tensor, read_given
from tgsr.network._saved import FloatArray, SavedNetwork

_SAFE_SINCE = (2, 6)  # before it, weights_only=True could be made to run code (CVE-2025-32434)
_DTYPES = {
    "float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16",
    "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3",
}  # fmt: skip
_SAVE = "Save it with torch.save(model.state_dict(), path)"


def convert_pytorch(
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
    """The multilayer perceptron in a `.pt` or `.pth` file; the arguments are those of `import_network`.

    The file holds a state dict, or a DeepXDE checkpoint: a state dict under `model_state_dict` next to the
    optimiser's. Whole pickled models and TorchScript are refused. Needs PyTorch 2.6 or later.
    """
    file = Path(path)
    scales = Scales(centre, half_width, offset, scale)
    return assemble(_state_dict(file), file, activation, coordinates, fields, scales, prefix)


def _state_dict(file: Path) -> dict[str, Tensor]:
    torch = _torch()
    _refuse_packed(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            held = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a crafted file provokes in the reader is the file's fault
        named = re.search(r"GLOBAL (\S+)", str(error))
        reason = f"it asks for {named[1]}" if named else type(error).__name__
        raise InputError(
            f"is not a file of weights only, and nothing else is opened ({reason})", file=file, remedy=_SAVE
        ) from None
    if isinstance(held, Mapping) and "model_state_dict" in held:
        held = held["model_state_dict"]
    if not isinstance(held, Mapping) or not held:
        raise InputError(f"holds a {type(held).__name__} instead of a state dict", file=file, remedy=_SAVE)
    if len(held) > MAX_TENSORS:
        raise InputError(f"names {len(held):,} tensors; at most {MAX_TENSORS:,} are read", file=file)
    tensors = {_name(key, value, torch, file): _tensor(value) for key, value in held.items()}
    # A tensor may repeat its storage, so a small file can describe arrays of any size.
    if sum(value.numel() * value.element_size() for value in held.values()) > MAX_FILE_BYTES:
        raise InputError(f"describes tensors of more than {MAX_FILE_BYTES:,} bytes", file=file)
    return tensors


def _torch() -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError(
            "reading a PyTorch file needs PyTorch, which is not installed",
            remedy="Install the extra `torch`, or save with safetensors.torch.save_file and import that",
        ) from None
    version = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if version is None or (int(version[1]), int(version[2])) < _SAFE_SINCE:
        raise InputError(
            f"PyTorch {torch.__version__} cannot read a file safely", remedy="Install PyTorch 2.6 or later"
        )
    return torch


def _refuse_packed(file: Path) -> None:
    """A file within the cap must not unpack to more: PyTorch itself stores its archives uncompressed."""
    if not read_given(file).startswith(b"PK"):
        return
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"is a damaged PyTorch file ({error})", file=file) from None
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise InputError("is a compressed archive, which PyTorch does not write", file=file, remedy=_SAVE)
    if sum(entry.file_size for entry in entries) > MAX_FILE_BYTES:
        raise InputError(f"unpacks to more than {MAX_FILE_BYTES:,} bytes, the most that are read", file=file)


def _name(key: Any, value: Any, torch: Any, file: Path) -> str:
    if not isinstance(key, str):
        raise InputError(f"the key {key!r} is not a name", file=file, remedy=_SAVE)
    if not isinstance(value, torch.Tensor):
        raise InputError(f"is a {type(value).__name__}, not a tensor", file=file, field=key, remedy=_SAVE)
    if value.layout != torch.strided or value.is_quantized or value.device.type != "cpu":
        raise InputError("is a sparse, quantised or empty-handed tensor", file=file, field=key)
    return key


def _tensor(value: Any) -> Tensor:
    name = str(value.dtype).removeprefix("torch.")

    def read() -> FloatArray:
        return value.detach().contiguous().numpy().copy()

    return Tensor(_DTYPES.get(name, name), tuple(value.shape), read)
