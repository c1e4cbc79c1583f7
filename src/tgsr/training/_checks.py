"""What every phase shares: checks of its numbers, and when it stops."""

from __future__ import annotations

from dataclasses import dataclass

from tgsr._errors import InputError, plain

UNSEEN = {"unseen at its default": True}  # an option that came later must not rename the runs made before it


def whole(spec: object, *names: str) -> None:
    """Refuse what is no whole number from 1."""
    for name in names:
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
            raise InputError(
                f"{type(spec).__name__}.{name} is {plain(value, 40)!r}", field=name, remedy="Give a whole number from 1"
            )


def positive(spec: object, *names: str) -> None:
    """Refuse what is no number from 0."""
    for name in names:
        value = getattr(spec, name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise InputError(
                f"{type(spec).__name__}.{name} is {plain(value, 40)!r}", field=name, remedy="Give a number from 0"
            )


@dataclass(frozen=True)
class Stopping:
    """Stop when the loss improved by less than the share `tolerance` in each of `patience` outer epochs in a row.

    `change` also stops on one absolute change below it. Nothing but the training loss is read.
    """

    tolerance: float = 1e-3
    patience: int = 2
    change: float = 0.0

    def __post_init__(self) -> None:
        positive(self, "tolerance", "change")
        whole(self, "patience")


def checked_hold(hold: object) -> None:
    """For how long the unknowns stay at their first guess: 0 is not at all."""
    if isinstance(hold, bool) or not isinstance(hold, int) or not 0 <= hold <= 10**9:
        raise InputError(f"hold is {plain(hold, 40)!r}", field="hold", remedy="Give a whole number from 0")
