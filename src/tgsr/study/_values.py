"""Values in a study's file: each check returns the value in its one form, or says in a line what is wrong with it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from tgsr._errors import InputError, plain
from tgsr.storage._identity import checked_name
from tgsr.study._words import nearest

SEEDS_MOST = 10_000
READINGS_MOST = 10**7
NETWORK_MOST = 100  # layers


def settle(spec: Any, **found: Any) -> None:
    """Give a frozen spec its values in their one form."""
    for name, value in found.items():
        object.__setattr__(spec, name, value)


@contextmanager
def within(where: str) -> Iterator[None]:
    """Errors inside name the place they are in."""
    try:
        yield
    except InputError as error:
        field = where if error.field is None or error.field == where else f"{where}.{error.field}"
        raise InputError(error.what, file=error.file, row=error.row, field=field, remedy=error.remedy) from error


def optional(check: Callable[..., Any], field: str, value: Any, **limits: Any) -> Any:
    """None, or what the check makes of the value."""
    return None if value is None else check(field, value, **limits)


def _wrong(field: str, value: Any, remedy: str) -> NoReturn:
    raise InputError(f"is {plain(repr(value), 60)}", field=field, remedy=remedy)


def text(field: str, value: Any, empty: bool = False) -> str:
    """Printable text."""
    if not isinstance(value, str) or len(value) > 2000 or not value.isprintable() or not (value.strip() or empty):
        _wrong(field, value, "Give a text in quotes, on one line")
    return value


def path(field: str, value: Any) -> str:
    """A path, as text or as Python has it."""
    return text(field, os.fspath(value) if isinstance(value, os.PathLike) else value)


def texts(field: str, value: Any) -> tuple[str, ...]:
    """A list of texts."""
    return tuple(text(field, item) for item in listed(field, value))


def label(field: str, value: Any) -> str:
    """What an arm is called in tables and figures."""
    if len(text(field, value)) > 80:
        _wrong(field, value, "Give at most 80 characters")
    return value


def name(field: str, value: Any) -> str:
    """What can name a folder and a run."""
    try:
        return checked_name(value)
    except InputError as error:
        raise InputError(f"is {plain(repr(value), 60)}", field=field, remedy=error.remedy) from None


def one_of(field: str, value: Any, known: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in known:
        _wrong(field, value, nearest(str(value), known))
    return value


def whole(field: str, value: Any, *, least: int = 0, most: int = 10**9) -> int:
    """A whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        _wrong(field, value, f"Give a whole number from {least} to {most:,}")
    return value


def number(field: str, value: Any) -> float:
    """A finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        _wrong(field, value, "Give a number")
    return value


def positive(field: str, value: Any) -> float:
    """A number above 0."""
    if number(field, value) <= 0:
        _wrong(field, value, "Give a number above 0")
    return value


def share(field: str, value: Any) -> float:
    """The noise: a share of the mean of |u|."""
    if number(field, value) < 0:
        _wrong(field, value, "Give a share of the mean of |u|, such as 0.005")
    return value


def listed(field: str, value: Any) -> tuple[Any, ...]:
    """A list."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        _wrong(field, value, "Give a list: [a, b]")
    return tuple(value)


def table(field: str, value: Any) -> dict[str, Any]:
    """A table with plain values: numbers, texts, switches, and lists and tables of them."""
    if not isinstance(value, Mapping):
        _wrong(field, value, "Give a table: { key = value }")
    return {text(field, key): plain_value(f"{field}.{key}", item) for key, item in value.items()}


def plain_value(field: str, value: Any, depth: int = 0) -> Any:
    """A value that a file can hold."""
    if isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple)) and depth < 8:
        return [plain_value(field, item, depth + 1) for item in value]
    if isinstance(value, Mapping) and depth < 8:
        return {text(field, key): plain_value(f"{field}.{key}", item, depth + 1) for key, item in value.items()}
    _wrong(field, value, "Give a number, a text, true or false")


def unique(field: str, given: Sequence[str]) -> None:
    """No name twice."""
    for item in given:
        if given.count(item) > 1:
            raise InputError(f"{plain(item, 80)!r} is there twice", field=field, remedy="Give each its own name, once")


def seeds(field: str, value: Any) -> tuple[int, ...]:
    """How many, counted from 0; or a list of different ones."""
    if isinstance(value, int) and not isinstance(value, bool):
        return tuple(range(whole(field, value, least=1, most=SEEDS_MOST)))
    remedy = "Give their number, or a list of different whole numbers from 0"
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence) or not value:
        _wrong(field, value, remedy)
    for seed in value:
        whole(field, seed, most=2**63 - 1)
    if len(set(value)) < len(value) or len(value) > SEEDS_MOST:
        _wrong(field, value, remedy)
    return tuple(value)


def readings(field: str, value: Any) -> int | str:
    """A number of readings, or all."""
    if value == "all":
        return value
    if isinstance(value, str):
        _wrong(field, value, 'Give a number, 0 for none, or "all"')
    return whole(field, value, most=READINGS_MOST)


def readings_list(field: str, value: Any) -> tuple[int | str, ...]:
    """One number of readings, or several different ones."""
    given = value if isinstance(value, (list, tuple)) else [value]
    if not given:
        _wrong(field, value, 'Give a number, 0 for none, or "all"; or a list of them')
    found = tuple(readings(field, item) for item in given)
    if len(set(found)) < len(found):
        _wrong(field, value, "Give each number once")
    return found


def widths(value: Any) -> tuple[int, ...]:
    """Neurons of every hidden layer."""
    given = listed("widths", value)
    if not given or len(given) > NETWORK_MOST:
        _wrong("widths", value, "Give one number per hidden layer, such as [32, 32]")
    return tuple(whole("widths", width, least=1, most=65536) for width in given)


def optimisers(field: str, value: Any) -> tuple[dict[str, Any], ...]:
    """One optimiser or several in turn: by name, or a table with a name."""
    given = value if isinstance(value, (list, tuple)) else [value]
    if not given:
        _wrong(field, value, "Name at least one")
    out = []
    for one in given:
        settings = {"name": one} if isinstance(one, str) else table(field, one)
        text(f"{field}.name", settings.get("name"))
        out.append(settings)
    return tuple(out)


def training_table(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a `Training` object from its plain values."""
    from tgsr.training._phases import PHASES

    names = {kind.__name__: name for name, kind in PHASES.items()}

    def bare(part: Mapping[str, Any]) -> dict[str, Any]:
        inner = {k: v for k, v in part.items() if k != "type" and v is not None}
        return {k: bare(v) if isinstance(v, Mapping) else v for k, v in inner.items()}

    phases = [{"name": names[phase["type"]], **bare(phase)} for phase in spec["phases"]]
    found = {
        "preset": "best",
        "closures": spec["budget"],
        "optimiser": phases or None,
        "points": bare(spec["points"]),
        "weights": None if spec["weights"] is None else dict(spec["weights"]),
        "refinement": None if spec["refinement"] is None else bare(spec["refinement"]),
    }
    return {key: value for key, value in found.items() if value is not None}
