"""Copy some layers, draw the others anew: general features from the source, the rest from the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tgsr._errors import InputError, plain
from tgsr.methods._method import Prepared, Setting, copied, numpy_layers
from tgsr.training import Start

HALF = "half"


@dataclass(frozen=True)
class Partial:
    """Copy the first half of the linear layers, rounded down (3 of 7); the rest starts fresh; all is trained."""

    name: ClassVar[str] = "partial"
    layers: str | Sequence[int] = HALF
    """Linear layers that are copied: `half`, or numbers from 1 to the output layer's, as in `1,2,5` or (1, 2, 5)."""

    def __post_init__(self) -> None:
        if self.layers != HALF:
            object.__setattr__(self, "layers", ",".join(map(str, _numbers(self.layers))))

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights in the chosen layers, the fresh ones elsewhere."""
        theta = copied(setting, self.name)
        fresh, source = numpy_layers(setting, setting.fresh), numpy_layers(setting, theta)
        chosen = range(1, len(fresh) // 2 + 1) if self.layers == HALF else _numbers(self.layers)
        if max(chosen) > len(fresh):
            raise InputError(
                f"layers = {self.layers!r} names linear layer {max(chosen)}, the network has {len(fresh)}",
                field="layers",
                remedy=f"Give numbers from 1 to {len(fresh)}",
            )
        mixed = [source[i] if i + 1 in chosen else layer for i, layer in enumerate(fresh)]
        return Prepared(Start(setting.objective.surrogate.with_fields_network(theta, mixed)))


def _numbers(layers: str | Sequence[int]) -> list[int]:
    """The layers a user named, in order, each once."""
    try:
        given = layers.split(",") if isinstance(layers, str) else list(layers)
        found = sorted({int(n) if isinstance(n, str) else n for n in given})
    except (TypeError, ValueError):
        found = []
    if not found or not all(type(n) is int and n >= 1 for n in found):
        raise InputError(
            f"layers = {plain(layers, 60)!r} names no linear layers",
            field="layers",
            remedy="Write half, or numbers from 1 on such as 1,2,5. The default is half",
        )
    return found
