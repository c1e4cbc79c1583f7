"""What a run is called: names that cannot lead out of a folder, and an id that is the run's content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from tgsr._errors import InputError, StorageError
from tgsr.storage._atomic import digest_of
from tgsr.storage._json import canonical_json, read_sealed

_INPUTS = ("data", "source", "spec", "seed")
_NAME = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}")
RUN_ID = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,64}-[0-9a-f]{12}")


def checked_name(name: str) -> str:
    """`name`, if it can name a run or a file in one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a run or a file in it",
            remedy="Use 1 to 64 of the characters A-Z a-z 0-9 . _ - and no dot at the beginning",
        )
    return name


def fingerprint(inputs: Mapping[str, object]) -> str:
    """SHA-256 over spec, data, source and seed.

    Data and source enter by their own SHA-256, so no two splits between the four give the same text.
    """
    return digest_of(canonical_json({key: inputs[key] for key in _INPUTS}).encode("ascii"))


def run_id(name: str, inputs: Mapping[str, object]) -> str:
    """`<name>-<12 hex of the fingerprint>`."""
    return f"{checked_name(name)}-{fingerprint(inputs)[:12]}"


def read_inputs(path: Path) -> dict[str, Any]:
    """The content of a spec.json, once its id is the one that its content gives."""
    inputs = read_sealed(path)
    try:
        sound = inputs["format"] == 1 and inputs["id"] == run_id(inputs["name"], inputs)
    except (KeyError, InputError):
        sound = False
    if not sound:
        raise StorageError("does not belong to its run id", file=path)
    return inputs


def resolved(path: str | PathLike[str]) -> Path:
    """`path` without links and dots."""
    try:
        return Path(path).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a NUL, a name too long, a circle of links
        raise InputError(f"is not a usable path ({error})", file=path) from error
