"""Marks: parts of a picture that say which arm and which run they show, so that a page can name and hide them.

A mark is written into the id that matplotlib keeps with an artist. `_svg` turns it into `data-arm="3"`, the arm's
number in the study, and into a `<title>`, which browsers show on hover without any script.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tgsr._errors import plain

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_SIGN = re.compile(r"mark:(\d+):(.*)", re.DOTALL)


def mark(artist: Artist, arm: int, words: str = "") -> None:
    """Say that `artist` shows the arm of that number, and in `words` what it is ("tgsr, seed 3: 0.126 %")."""
    artist.set_gid(f"mark:{arm}:{plain(words, 160)}")


def read_mark(identity: str) -> tuple[str, str] | None:
    """The arm's number and the words of a mark; None for any other id."""
    found = _SIGN.fullmatch(identity)
    return (found[1], found[2]) if found else None
