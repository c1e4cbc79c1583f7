"""A study from its TOML file. What is wrong with it is said in one line that names file and key."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from tgsr._errors import InputError, StorageError, plain, shown_path
from tgsr.storage import read_bytes
from tgsr.study._spec import Study
from tgsr.study._words import nearest

SIZE_MOST = 2**20
_TABLES = {"task": "tasks", "arm": "arms"}  # key in the file -> field
KEYS = (*(one.name for one in fields(Study) if one.name != "arms"), *_TABLES)


def read_study(path: str | os.PathLike[str]) -> Study:
    """The study in a TOML file, with its methods, options and trainings checked."""
    from tgsr.study._check import checked

    with of_file(path):
        return checked(parsed_study(path))


def parsed_study(path: str | os.PathLike[str]) -> Study:
    """The study in a TOML file as far as it can be checked without loading what computes."""
    with of_file(path):
        try:
            table = tomllib.loads(read_bytes(path, limit=SIZE_MOST).decode("utf-8"))
        except StorageError as error:
            raise InputError(error.what, file=shown_path(path), remedy=error.remedy) from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise InputError(f"is not valid TOML ({plain(error, 200)})", file=shown_path(path)) from error
        return study_of(table, Path(os.path.abspath(path)).parent)


def study_of(table: Mapping[str, Any], base: Path) -> Study:
    """The study of a table, as a file holds it; paths in it are relative to `base`."""
    for key in table:
        if key not in KEYS:
            raise InputError("is not a key of a study", field=key, remedy=nearest(key, KEYS))
    if "name" not in table:
        raise InputError("is missing", field="name", remedy='Write name = "layer"')
    given = {key: value for key, value in table.items() if key not in _TABLES}
    for key, name in _TABLES.items():
        if key in table:
            if not isinstance(table[key], list):
                raise InputError("is not a list of tables", field=key, remedy=f"Write [[{key}]]")
            own = [_placed(one, f"{key}[{number}]", base) for number, one in enumerate(table[key], 1)]
            given[name] = [*given.get(name, []), *own] if isinstance(given.get(name, []), list) else given[name]
    if "source" in given:
        given["source"] = _source_placed(given["source"], base)
    return Study(**given)


@contextmanager
def of_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors inside name the file."""
    try:
        yield
    except InputError as error:
        if error.file is not None:
            raise
        raise InputError(error.what, file=shown_path(path), field=error.field, remedy=error.remedy) from error


def _placed(table: Any, where: str, base: Path) -> dict[str, Any]:
    """A [[task]] or [[arm]] with its paths made absolute."""
    if not isinstance(table, Mapping):
        raise InputError(f"is {plain(repr(table), 60)}, not a table", field=where)
    found = dict(table)
    if isinstance(found.get("file"), str):
        found["file"] = _absolute(found["file"], base)
    if "source" in found:
        found["source"] = _source_placed(found["source"], base)
    return found


def _source_placed(source: Any, base: Path) -> Any:
    if isinstance(source, str):
        return _absolute(source, base)
    if not isinstance(source, Mapping):
        return source
    places = {k: _absolute(v, base) for k, v in source.items() if k in ("file", "run") and isinstance(v, str)}
    return {**source, **places}


def _absolute(path: str, base: Path) -> str:
    return os.path.normpath(os.path.join(base, path)) if path.strip() else path
