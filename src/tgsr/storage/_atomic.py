"""Files that are either the old one or the new one, never something between.

    temporary file in the same folder -> write -> fsync -> read back, compare SHA-256
    -> os.replace -> fsync the folder

The file is read back before it takes the place of the old one: a bad copy never costs a good file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path

from tgsr._errors import StorageError

READ_LIMIT = 4 * 2**30
_CHUNK = 2**22
_RESUME = "then resume: what was saved before is intact"
_CAUSES = {
    errno.ENOSPC: ("no space is left on the disk", f"Free space, {_RESUME}"),
    errno.EDQUOT: ("the disk quota is used up", f"Free space, {_RESUME}"),
    errno.EFBIG: (
        "the file is larger than this process may write",
        f"Raise the file size limit (`ulimit -f`) or free space, {_RESUME}",
    ),
    errno.EACCES: ("permission denied", f"Check the owner and the permissions of the folder, {_RESUME}"),
    errno.EPERM: ("the operation is not permitted here", f"Check the owner and the file system, {_RESUME}"),
    errno.EROFS: ("the file system is read-only", f"Choose or remount a writable one, {_RESUME}"),
    errno.ENOENT: ("does not exist", "Check the path"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Check the path"),
    errno.EIO: ("the disk reported an error", f"Check or change the disk, {_RESUME}"),
}


def storage_error(error: OSError, path: str | PathLike[str]) -> StorageError:
    """`error` as a sentence about `path`, with what to do."""
    what, remedy = _CAUSES.get(
        error.errno or 0, (error.strerror or str(error), f"Check the disk and the folder, {_RESUME}")
    )
    return StorageError(what, file=path, remedy=remedy)


def digest_of(data: bytes) -> str:
    """The SHA-256 of `data`, in hex."""
    return hashlib.sha256(data).hexdigest()


def write_bytes(path: str | PathLike[str], data: bytes) -> str:
    """Put `data` at `path` at one instant, and return its SHA-256 in hex. On an error the old file stays."""
    target = Path(path)
    digest = digest_of(data)
    try:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
        try:
            _fill(temporary, data)
            if file_digest(temporary) != digest:
                raise StorageError("what was written did not read back", file=target, remedy="Check or change the disk")
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(target.parent)
    except OSError as error:
        raise storage_error(error, target) from error
    except ValueError as error:  # a NUL in the path, or no name at its end
        raise StorageError(str(error), file=target, remedy="Check the path") from error
    return digest


def read_bytes(path: str | PathLike[str], *, limit: int = READ_LIMIT, digest: str | None = None) -> bytes:
    """The whole of a regular file, if it has at most `limit` bytes and, where given, this SHA-256."""
    data = b"".join(_chunks(Path(path), limit))
    if digest is not None and digest_of(data) != digest:
        raise StorageError("does not hold what was written (its SHA-256 differs)", file=path)
    return data


def file_digest(path: str | PathLike[str], limit: int | None = None) -> str:
    """The SHA-256 of a file of any size, read in pieces."""
    running = hashlib.sha256()
    for chunk in _chunks(Path(path), limit):
        running.update(chunk)
    return running.hexdigest()


def present(path: Path) -> bool:
    """Whether there is something at `path`. Not being allowed to look is an error, not a no."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(error, path) from error
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: a rename is safe from a power cut only after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no such call and need none
            raise
    finally:
        os.close(descriptor)


def is_temporary(name: str) -> bool:
    """Whether `name` is one that an interrupted write may leave behind."""
    return name.startswith(".") and name.endswith(".tmp")


def files_below(folder: Path, prefix: str = "") -> Iterator[str]:
    """The relative names of the files in `folder` and below, but for what interrupted writes left."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    raise StorageError("a symbolic link holds no data here", file=entry.path, remedy="Remove it")
                if entry.is_dir():
                    yield from files_below(folder / entry.name, f"{prefix}{entry.name}/")
                elif not is_temporary(entry.name):
                    yield prefix + entry.name
    except OSError as error:
        raise storage_error(error, folder) from error


def sweep(folder: Path) -> None:
    """Remove what interrupted writes left in `folder` and below. Only for the process that holds the run."""
    try:
        for parent, _, names in os.walk(folder):
            for name in filter(is_temporary, names):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(parent, name))
    except OSError as error:
        raise storage_error(error, folder) from error


def _fill(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest[: 2**30]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _chunks(path: Path, limit: int | None) -> Iterator[bytes]:
    # O_NONBLOCK: opening a named pipe must be an error, not a wait without end.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            state, seen = os.fstat(descriptor), 0
            if not stat.S_ISREG(state.st_mode):
                raise StorageError("is not a regular file", file=path)
            if limit is not None and state.st_size > limit:
                raise StorageError(f"has {state.st_size:,} bytes; at most {limit:,} are read", file=path)
            while chunk := os.read(descriptor, _CHUNK):
                seen += len(chunk)
                if limit is not None and seen > limit:
                    raise StorageError(f"grew over {limit:,} bytes while it was read", file=path)
                yield chunk
        finally:
            os.close(descriptor)
    except ValueError as error:  # a NUL in the path
        raise StorageError(str(error), file=path, remedy="Check the path") from error
    except OSError as error:
        raise storage_error(error, path) from error
