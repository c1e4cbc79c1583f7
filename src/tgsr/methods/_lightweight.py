"""Freeze the early layers: the copied features stay, the last linear layers learn the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tgsr._errors import InputError
from tgsr.methods._method import Prepared, Setting, copied, trained_only
from tgsr.methods._ranges import Count, check_options
from tgsr.training import Start


@dataclass(frozen=True)
class Lightweight:
    """Copy the source network, freeze its earlier linear layers, train the last `trained` ones and the unknowns."""

    name: ClassVar[str] = "lightweight"
    trained: Count = 2
    """Linear layers that are trained, counted from the output, at least 1."""

    def __post_init__(self) -> None:
        check_options(self)

    def prepare(self, setting: Setting) -> Prepared:
        """The source's weights, most of them fixed."""
        return frozen_below(setting, self.name, self.trained)


def frozen_below(setting: Setting, name: str, trained: int) -> Prepared:
    """Everything copied; of the fields' network only the last `trained` linear layers move."""
    linear = len(setting.objective.surrogate.nets[0].shapes)
    if trained > linear:
        raise InputError(
            f"{name} is to train {trained} linear layers, the network has {linear}",
            field="trained",
            remedy=f"Give at most {linear}",
        )
    return Prepared(Start(copied(setting, name), trained_only(setting, lambda layer, kind: layer >= linear - trained)))
