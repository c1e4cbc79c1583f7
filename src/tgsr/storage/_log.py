"""The diary of a run: one JSON object a line, appended and never rewritten."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tgsr._errors import StorageError, plain
from tgsr.storage._atomic import present, read_bytes, storage_error
from tgsr.storage._json import canonical_json, parse_json

_LIMIT = 256 * 2**20
_TEXT_LIMIT = 2000


def append(path: Path, event: str, fields: Mapping[str, object]) -> None:
    """Add one line with the time in UTC. After a torn line it starts on a new one."""
    stamp = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    text = canonical_json(_clean({"utc": stamp, "event": event, **fields}), indent=None).encode("ascii")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            rest = memoryview((b"\n" if torn else b"") + text)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, path) from error


def read(path: Path) -> list[dict[str, Any]]:
    """All lines in order. One that a crash tore becomes `{"event": "unreadable", "line": its number}`."""
    if not present(path):
        return []
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(read_bytes(path, limit=_LIMIT).splitlines(), 1):
        try:
            entry = parse_json(line)
        except StorageError:
            entry = None
        entries.append(entry if isinstance(entry, dict) else {"event": "unreadable", "line": number})
    return entries


def _clean(value: object) -> object:
    # The log is shown on terminals: nothing that a file or a message smuggled in may steer one.
    match value:
        case str():
            return plain(value, _TEXT_LIMIT)
        case Mapping():
            return {plain(key, _TEXT_LIMIT): _clean(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item) for item in value]
        case _:
            return value
