"""Records that lie in a study's folder, read without loading anything that computes."""

from __future__ import annotations

import os
from pathlib import Path

from tgsr._errors import StorageError
from tgsr.storage import file_digest, read_sealed, write_sealed
from tgsr.storage._atomic import present, storage_error
from tgsr.study._record import Record

FORMAT = 1


def record_file(run: Path) -> Path:
    """Where the record of a run directory lies."""
    return run.parent.parent / "records" / f"{run.name}.json"


def made_from(run: Path) -> str | None:
    """What ended a run, with its SHA-256; None where it has not ended."""
    for name in ("result.json", "failure.json"):
        if present(run / name):
            return f"{name} {file_digest(run / name)}"
    return None


def kept_record(run: Path) -> Record | None:
    """The record of a run directory, if there is one and it was made from what lies there now."""
    file = record_file(run)
    if not present(file):
        return None
    try:
        kept = read_sealed(file)
        current = kept.get("format") == FORMAT and kept.get("made_from") == made_from(run)
        return Record.from_json(kept["record"]) if current else None
    except (StorageError, KeyError, TypeError):  # derived: what cannot be read is made anew
        return None


def write_record(run: Path, record: Record) -> None:
    """Keep the record of a run directory."""
    file = record_file(run)
    try:
        os.makedirs(file.parent, exist_ok=True)
    except OSError as error:
        raise storage_error(error, file.parent) from error
    write_sealed(file, {"format": FORMAT, "made_from": made_from(run), "record": record.as_json()})
