"""A panel: one small picture that knows its title, what it says in words, and how to draw itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Panel:
    """`words` tell a reader who cannot see the picture what it shows; `draw` puts it on an empty Axes.

    `size` is width and height in inches where the usual ones do not do.
    """

    title: str
    words: str
    draw: Callable[[Axes], None]
    size: tuple[float, float] | None = None
