"""A user's Python file: run it as a module, find its problem, tell its errors in one line with the place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

from tgsr._errors import InputError, plain, shown_path

if TYPE_CHECKING:
    from tgsr._truth import Truth
    from tgsr.problem import Problem

MODULE = "tgsr_problem_file"


@dataclass(frozen=True)
class UserFile:
    """A file that has run, and the problem in it."""

    path: Path
    problem: Problem
    module: ModuleType

    @property
    def truth(self) -> Truth | None:
        """The variable `truth`, if it is one."""
        from tgsr._truth import Truth

        found = getattr(self.module, "truth", None)
        return found if isinstance(found, Truth) else None


class _Source(SourceFileLoader):
    """Compiles the text each time: a stale or foreign bytecode file is never run, and none is left behind."""

    def get_code(self, fullname: str) -> CodeType:
        try:
            return self.source_to_code(self.get_data(self.path), self.path)
        except (ValueError, SyntaxError) as error:
            if isinstance(error, SyntaxError) and error.filename is not None:
                raise  # with its line
            raise InputError(
                f"is not Python ({error})", file=shown_path(Path(self.path)), remedy="Save it as plain text"
            ) from error


def read_problem(given: str) -> UserFile:
    """The problem that `FILE.py` or `FILE.py:name` means."""
    path, name = _located(given)
    module = _module(path)
    return UserFile(path, _chosen(module, path, name), module)


def _located(given: str) -> tuple[Path, str | None]:
    head, colon, tail = given.rpartition(":")
    file, name = (head, tail) if colon and head.endswith(".py") else (given, None)
    if name is not None and not name.isidentifier():
        raise InputError(f"{name!r} cannot be a variable", file=file, remedy="Write FILE.py:name")
    if not file.endswith(".py"):
        raise InputError("is not a Python file (.py)", file=given, remedy="Give the file that defines the problem")
    try:
        path = Path(file).resolve()
        if not path.is_file():
            kind = "is not a file" if path.exists() else "there is no such file"
            raise InputError(kind, file=file, remedy="Check the path")
    except (OSError, ValueError) as error:  # a NUL in the name, a name that is too long
        raise InputError(f"cannot be a path ({error})", file=file, remedy="Check the path") from None
    return path, name


def _module(path: Path) -> ModuleType:
    loader = _Source(MODULE, str(path))
    spec = spec_from_file_location(MODULE, path, loader=loader)
    assert spec is not None  # a loader was given
    module = module_from_spec(spec)
    before, sys.modules[MODULE] = sys.modules.get(MODULE), module  # dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    try:
        with errors_of(path):
            loader.exec_module(module)
    except BaseException:
        del sys.modules[MODULE]
        if before is not None:
            sys.modules[MODULE] = before
        raise
    finally:
        sys.path.remove(str(path.parent))
    return module


def _chosen(module: ModuleType, path: Path, name: str | None) -> Problem:
    from tgsr.problem import Problem

    found = {key: value for key, value in vars(module).items() if isinstance(value, Problem)}
    chosen = found.get(name or "problem")
    if chosen is None and name is None and len({id(problem) for problem in found.values()}) == 1:
        chosen = next(iter(found.values()))
    if chosen is not None:
        return chosen
    names = ", ".join(found)
    if not found:
        raise InputError(
            "defines no tgsr.Problem",
            file=shown_path(path),
            remedy="Write problem = tgsr.Problem(...) at its top level",
        )
    if name is None:
        remedy = f"Choose one: {path.name}:{next(iter(found))}"
        raise InputError(
            f"defines several problems and none is called problem: {names}",
            file=shown_path(path),
            remedy=remedy,
        )
    kind = "is not a tgsr.Problem" if hasattr(module, name) else "is not defined"
    raise InputError(f"{name} {kind}", file=shown_path(path), field=name, remedy=f"Problems here: {names}")


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn an error that began in the user's file into one line with its place; others pass."""
    try:
        yield
    except InputError as error:
        line = _line(error, path)
        if line is None:
            raise
        raise InputError(f"line {line}: {error}", file=shown_path(path)) from error
    except SystemExit as error:
        raise InputError(
            "calls sys.exit", file=shown_path(path), remedy="Define the problem and no more at its top level"
        ) from error
    except Exception as error:
        line = _line(error, path)
        unread = isinstance(error, SyntaxError | OSError) and error.filename == str(path)
        if line is None and not unread:
            raise
        place = "" if line is None else f"line {line}: "
        text = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(f"{place}{type(error).__name__}: {plain(text)}", file=shown_path(path)) from error


def _line(error: BaseException, path: Path) -> int | None:
    """The deepest line of `path` that an error, or what caused it, passed through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    found, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(path):
            found = step.tb_lineno
        step = step.tb_next
    deeper = _line(error.__cause__, path) if error.__cause__ is not None else None
    return found if deeper is None else deeper
