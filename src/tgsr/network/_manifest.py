"""A network on disk: `network.safetensors` holds the arrays, `network.json` says what they mean.

safetensors does not notice a flipped bit, so the manifest holds the SHA-256 of the file, of every tensor and
of itself. What does not verify is refused by name; nothing falls back to fresh weights.
"""

from __future__ import annotations

import hashlib
from os import PathLike
from os.path import exists, isdir
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError, StorageError
from tgsr.network._safetensors import MAX_FILE_BYTES, parse, read_given, refuse_other_formats
from tgsr.network._saved import SavedNetwork, little_endian
from tgsr.storage import read_bytes, read_sealed, write_sealed, write_tensors

TENSORS, MANIFEST = "network.safetensors", "network.json"
_FORMAT, _VERSION = "tgsr network", 1
_KEYS = {
    "format", "version", "widths", "activation", "dtype", "coordinates", "fields", "tensors", "file_sha256",
    "fingerprint",
}  # fmt: skip
_AGAIN = "Copy both files again from where they were written"


def write_network(folder: str | PathLike[str], saved: SavedNetwork) -> None:
    """Write both files into an existing `folder`, the manifest last: without it the arrays are not read."""
    digest = write_tensors(Path(folder) / TENSORS, saved.tensors())
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "widths": list(saved.widths),
        "activation": saved.activation,
        "dtype": saved.dtype,
        "coordinates": [
            {"name": name, "centre": centre, "half_width": half_width}
            for name, centre, half_width in zip(
                saved.coordinates, saved.centre.tolist(), saved.half_width.tolist(), strict=True
            )
        ],
        "fields": [
            {"name": name, "offset": offset, "scale": scale}
            for name, offset, scale in zip(saved.fields, saved.offset.tolist(), saved.scale.tolist(), strict=True)
        ],
        "file_sha256": digest,
        "tensors": {name: _sha256(little_endian(array)) for name, array in saved.tensors().items()},
        "fingerprint": saved.fingerprint(),
    }
    write_sealed(Path(folder) / MANIFEST, manifest)


def read_network(path: str | PathLike[str]) -> SavedNetwork:
    """The network in a run directory, a folder, or beside either of the two files."""
    folder = _folder(Path(path))
    manifest = _manifest(folder / MANIFEST)
    if not exists(folder / TENSORS):
        raise StorageError("is missing, though its manifest is there", file=folder / TENSORS, remedy=_AGAIN)
    data = read_bytes(folder / TENSORS, limit=MAX_FILE_BYTES)
    _verify(data, manifest, folder / TENSORS)
    try:
        tensors = parse(data, folder / TENSORS)
        layers = range(len(tensors) // 2)
        saved = SavedNetwork(
            weights=tuple(tensors[f"layers.{layer}.kernel"].read() for layer in layers),
            biases=tuple(tensors[f"layers.{layer}.bias"].read() for layer in layers),
            activation=manifest["activation"],
            coordinates=tuple(entry["name"] for entry in manifest["coordinates"]),
            fields=tuple(entry["name"] for entry in manifest["fields"]),
            centre=np.array([entry["centre"] for entry in manifest["coordinates"]]),
            half_width=np.array([entry["half_width"] for entry in manifest["coordinates"]]),
            offset=np.array([entry["offset"] for entry in manifest["fields"]]),
            scale=np.array([entry["scale"] for entry in manifest["fields"]]),
        )
        described = (
            manifest["widths"],
            manifest["dtype"],
            sorted(manifest["tensors"]),
            manifest["fingerprint"],
        )
        if described != (list(saved.widths), saved.dtype, sorted(tensors), saved.fingerprint()):
            raise InputError("describes another network than the arrays beside it")
    except InputError as error:
        raise InputError(error.what, file=folder / MANIFEST, field=error.field, remedy=error.remedy) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"does not describe a network ({error!r})", file=folder / MANIFEST) from None
    return saved


def _folder(path: Path) -> Path:
    """Where the two files lie; anything that is not ours is refused with what to do instead."""
    if isdir(path):  # os.path, since pathlib's own questions raise on a name that is too long
        if not exists(path / MANIFEST):
            raise InputError(
                f"holds no {MANIFEST}",
                file=path,
                remedy=f"Give a run directory or a folder with {MANIFEST} and {TENSORS}",
            )
        return path
    if not exists(path):
        raise InputError("does not exist", file=path, remedy="Check the path")
    if path.name not in (TENSORS, MANIFEST):
        refuse_other_formats(read_given(path), path)
        raise InputError(
            f"is not called {MANIFEST} or {TENSORS}",
            file=path,
            remedy="Bring weights from another program in with import_network, which asks for what they mean",
        )
    if not exists(path.parent / MANIFEST):
        refuse_other_formats(read_given(path), path)
        raise InputError(
            f"has no {MANIFEST} beside it, so its scales and names are unknown",
            file=path,
            remedy=f"Copy {MANIFEST} too, or use import_network and give them",
        )
    return path.parent


def _manifest(file: Path) -> dict[str, Any]:
    manifest = read_sealed(file)
    if manifest.get("format") != _FORMAT:
        raise InputError("is not the manifest of a network", file=file, field="format")
    if type(manifest.get("version")) is not int or manifest["version"] != _VERSION:
        raise InputError(
            f"has format version {manifest.get('version')!r}; this release reads {_VERSION}",
            file=file,
            field="version",
            remedy="Read it with the release that wrote it, or a later one",
        )
    if odd := sorted(_KEYS ^ set(manifest)):
        raise InputError("is unknown or missing", file=file, field=odd[0])
    return manifest


def _verify(data: bytes, manifest: dict[str, Any], file: Path) -> None:
    if _sha256(data) == manifest["file_sha256"]:
        return
    try:
        tensors = parse(data, file)
        damaged = [
            name
            for name, digest in manifest["tensors"].items()
            if _sha256(little_endian(tensors[name].read())) != digest
        ]
    except (InputError, KeyError, AttributeError):
        damaged = []
    raise StorageError(
        "is damaged: it does not hold the bytes that were written",
        file=file,
        field=damaged[0] if damaged else None,
        remedy=_AGAIN,
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
