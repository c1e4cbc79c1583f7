"""What to suggest instead of a word that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """'Did you mean x?' where one is close, and what there is."""
    known = list(known)
    close = difflib.get_close_matches(str(word), known, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    return f"{guess}Known: {', '.join(known) or 'none'}"
