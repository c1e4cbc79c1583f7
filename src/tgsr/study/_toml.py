"""A study as TOML text: what `study.toml` in its folder holds, and what `read_study` reads back to the same study."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tgsr.study._parts import Arm, NetworkSpec, SourceSpec, StudyTask, TrainingSpec
from tgsr.study._spec import Study

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ALWAYS = ("name", "seeds", "profile")  # settled even where they are the defaults


def as_toml(study: Study, folder: Path) -> str:
    """The text of a study; paths in it are relative to `folder`."""
    lines = []
    for one in fields(Study):
        value = getattr(study, one.name)
        if one.name in ("tasks", "arms") or (value == one.default and one.name not in _ALWAYS):
            continue
        lines.append(f"{one.name} = {_text(_plain(value, folder))}")
    short = [task.name for task in study.tasks if task == StudyTask(task.name, task.file) and task.builtin]
    if len(short) == len(study.tasks):  # else the long form, which keeps their order
        lines.append(f"tasks = {_text(short)}")
    else:
        lines += _tables("task", study.tasks, folder)
    lines += _tables("arm", study.arms, folder)
    return "\n".join(lines) + "\n"


def _tables(name: str, specs: tuple[Any, ...], folder: Path) -> list[str]:
    lines = []
    for spec in specs:
        lines += ["", f"[[{name}]]"]
        lines += [f"{key} = {_text(value)}" for key, value in _plain(spec, folder).items()]
    return lines


def _plain(value: Any, folder: Path) -> Any:
    """A spec as plain values, without what it leaves at the default."""
    if isinstance(value, NetworkSpec | TrainingSpec | SourceSpec | StudyTask | Arm):
        found = {one.name: getattr(value, one.name) for one in fields(value)}
        defaults = {one.name: one.default for one in fields(value)}
        kept = {k: _plain(v, folder) for k, v in found.items() if v is not None and v != {} and v != defaults[k]}
        for key in ("file", "run"):
            if key in kept and isinstance(value, SourceSpec | StudyTask):
                kept[key] = Path(os.path.relpath(os.path.abspath(kept[key]), folder)).as_posix()
        return kept
    if isinstance(value, Mapping):
        return {key: _plain(item, folder) for key, item in value.items()}
    return [_plain(item, folder) for item in value] if isinstance(value, (list, tuple)) else value


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)  # the escapes of JSON are those of TOML
        case int() | float():
            return repr(value)
        case Mapping():
            pairs = (f"{_key(key)} = {_text(item)}" for key, item in value.items())
            return "{ " + ", ".join(pairs) + " }" if value else "{}"
        case _:
            return "[" + ", ".join(_text(item) for item in value) + "]"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
