"""The file a user means: where it lies, whether it may be read, and what its first bytes say it holds."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import cast

from tgsr._errors import InputError
from tgsr.problem._read_table import MAX_BYTES, nearest, shown, shown_path

TEXT = (".csv", ".tsv", ".txt", ".dat")
_FORMATS = ".csv .tsv .txt .dat, .npz .npy (NumPy), .parquet, .nc (NetCDF), .h5 .hdf5 (HDF5) and .mat (MATLAB)"
_PICKLE = "Such files can run code when opened and are never read; save the numbers as .npz or .csv"
_UNPACK = "Decompress it first"
_SAVE_AS = "Save the sheet or the numbers as CSV"
_REFUSED = {
    **dict.fromkeys((".pkl", ".pickle", ".pt", ".pth", ".joblib", ".ckpt"), _PICKLE),
    **dict.fromkeys((".gz", ".bz2", ".xz", ".zst", ".zip", ".7z", ".tar"), _UNPACK),
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".json", ".xml"), _SAVE_AS),
}
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x93NUMPY", "npy", "Rename it to .npy"),
    (
        b"PK\x03\x04",
        "zip",
        "If it comes from NumPy rename it to .npz; save a spreadsheet as CSV; unpack an archive",
    ),
    (b"PAR1", "parquet", "Rename it to .parquet"),
    (b"\x89HDF\r\n\x1a\n", "hdf5", "Rename it to .h5, .nc or .mat, whichever it is"),
    (b"CDF\x01", "netcdf3", "Rename it to .nc"),
    (b"CDF\x02", "netcdf3", "Rename it to .nc"),
    (b"MATLAB 5.0 MAT", "matlab", "Rename it to .mat"),
    (b"\x1f\x8b", "gzip", _UNPACK),
    (b"BZh", "bzip2", _UNPACK),
    (b"\xfd7zXZ", "xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "zstd", _UNPACK),
    (b"%PDF", "PDF", _SAVE_AS),
    (b"\xd0\xcf\x11\xe0", "Excel 97", _SAVE_AS),
    (b"\xff\xfe", "UTF-16 text", "Save it with the encoding UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "Save it with the encoding UTF-8"),
    *((b"\x80" + bytes([protocol]), "pickle", _PICKLE) for protocol in range(2, 6)),
)
_EXPECTED = {
    ".npz": ("zip",),
    ".npy": ("npy",),
    ".parquet": ("parquet",),
    ".pq": ("parquet",),
    ".h5": ("hdf5",),
    ".hdf5": ("hdf5",),
    ".nc": ("hdf5", "netcdf3"),
    ".mat": ("matlab", "hdf5"),
}


def locate(path: object, base: object, calling: str | None) -> Path:
    """The file that is meant, which must be an ordinary one of a readable size."""
    for given in (path, base):
        if not isinstance(given, (str, os.PathLike)) and (given is path or given is not None):
            raise InputError(
                f"a path must be text, not {shown(repr(given))}", remedy="Write read_data('data.csv', ...)"
            )
    folder = Path(cast(str, base)) if base is not None else Path(calling).parent if calling else Path()
    file = folder.absolute() / cast(str, path)
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            "there is no such file",
            file=shown_path(path),
            remedy=f"Looked in {shown_path(file.parent)}{_siblings(file)}",
        ) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(
            f"cannot be opened: {why}", file=shown_path(path), remedy="Check the path and its permissions"
        ) from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError("is a folder", file=shown_path(path), remedy="Name the file inside it")
    if not stat.S_ISREG(status.st_mode):
        raise InputError("is a device or a pipe", file=shown_path(path), remedy="Save the data as an ordinary file")
    if status.st_size == 0:
        raise InputError("is empty", file=shown_path(path), remedy="Check that it was written completely")
    if status.st_size > MAX_BYTES:
        raise InputError(
            f"has {status.st_size / 1024**3:.1f} GiB, more than the {MAX_BYTES // 1024**3} GiB that are read",
            file=shown_path(path),
            remedy="Keep a representative subset of the rows",
        )
    return file


def _siblings(file: Path) -> str:
    try:
        names = [entry.name for entry in os.scandir(file.parent)][:1000]
    except OSError:
        return ", which is not a folder that can be read"
    advice = nearest(file.name, names, "files there") if names else ""
    return f". {advice}" if advice.startswith("Perhaps") else ""


def kind_of(file: Path, suffix: str, shown_file: str) -> str:
    """What the file holds by its first bytes, which must agree with what its name says."""
    if suffix in _REFUSED:
        raise InputError(f"files ending in {suffix} are not read", file=shown_file, remedy=_REFUSED[suffix])
    if suffix not in (*TEXT, *_EXPECTED):
        what = f"files ending in {shown(suffix, 20)} are not known" if suffix else "has no ending that tells its format"
        raise InputError(what, file=shown_file, remedy=f"Known are {_FORMATS}")
    try:
        with open(file, "rb") as stream:
            head = stream.read(4096)
    except OSError as error:
        raise InputError(
            f"cannot be opened: {error.strerror}", file=shown_file, remedy="Check its permissions"
        ) from None
    signatures = [(kind, advice) for magic, kind, advice in _MAGIC if head.startswith(magic)]
    if any(head[offset:].startswith(b"\x89HDF\r\n\x1a\n") for offset in (512, 1024, 2048)):
        signatures = [("hdf5", "Rename it to .mat or .h5")]
    if not signatures and head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"{")):
        signatures = [("HTML, XML or JSON", "Download or export the data itself, as CSV")]
    if not signatures and b"\0" in head:
        signatures = [("binary data", _SAVE_AS)]
    kind, advice = signatures[0] if signatures else ("text", "Rename it to .csv if it is a table")
    if kind not in _EXPECTED.get(suffix, ("text",)):
        raise InputError(f"ends in {suffix} but holds {kind}", file=shown_file, remedy=advice)
    return kind
