"""Where a transfer starts: which arrays of the source become which arrays of the target's network.

Everything is matched before anything is copied. Whatever does not match is an error; nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tgsr._errors import InputError
from tgsr.network._names import checked_activation, checked_names
from tgsr.network._saved import FloatArray, SavedNetwork

Match = Literal["exact", "leading"]


class Layers(Protocol):
    """Any network whose layers can be read: `weights[l]` is (n_in, n_out), `biases[l]` is (n_out,)."""

    @property
    def weights(self) -> Sequence[ArrayLike]: ...
    @property
    def biases(self) -> Sequence[ArrayLike]: ...


@dataclass(frozen=True)
class Copied:
    """One line of the account of a transfer; `str()` gives the sentence.

    `what` is 'input', 'layer' or 'output'. `source` and `target` are the positions counted from 0: of the
    named coordinate, of the layer, of the field. A `source` of None says that the target's fresh values stay,
    a `target` of None that the source's are left behind.
    """

    what: Literal["input", "layer", "output"]
    name: str
    source: int | None
    target: int | None

    def __str__(self) -> str:
        label = f"{self.what} '{self.name}'" if self.what != "layer" else f"layer {self.name}"
        if self.source is None:
            return f"{label}: fresh values, the source has none"
        if self.target is None:
            return f"{label}: left behind, the target has none"
        if self.source == self.target:
            return f"{label}: copied"
        return f"{label}: copied from place {self.source + 1} of the source to place {self.target + 1}"


def transfer_check(
    source: SavedNetwork,
    *,
    coordinates: Sequence[str],
    fields: Sequence[str],
    widths: Sequence[int],
    activation: str,
    match: Match = "exact",
) -> list[Copied]:
    """What a target network of this description takes from `source`, or an `InputError` that says why not.

    Coordinates go by name: another order is reordered and reported. `match="exact"` needs the same set;
    `match="leading"` copies the weights of the shared ones, and a coordinate only the target has keeps its
    fresh weights. The same fields in another order are reordered too; otherwise field k of the source becomes
    field k of the target, which may have another name but not one that stands elsewhere in the source.
    Hidden layers and activation must be equal.
    """
    if match not in ("exact", "leading"):
        raise InputError(f"unknown match {match!r}", field="match", remedy="Choose 'exact' or 'leading'")
    inputs, outputs = checked_names(coordinates, "coordinates"), checked_names(fields, "fields")
    if checked_activation(activation) != source.activation:
        raise InputError(
            f"the source's activation is {source.activation}, the target's {activation}",
            field="activation",
            remedy=f"Give the target's network the activation '{source.activation}'",
        )
    wanted = tuple(widths)
    if (wanted[:1], wanted[-1:]) != ((len(inputs),), (len(outputs),)):
        raise InputError(
            f"widths {list(wanted)} do not fit {len(inputs)} coordinates and {len(outputs)} fields",
            field="widths",
        )
    if wanted[1:-1] != source.widths[1:-1]:
        raise InputError(
            f"the source's hidden layers are {list(source.widths[1:-1])}, the target's {list(wanted[1:-1])}",
            field="widths",
            remedy="Give the target's network the source's hidden layers",
        )
    pairs = _inputs(source.coordinates, inputs, match) + [
        Copied("layer", str(number + 1), number, number) for number in range(len(source.weights))
    ]
    return pairs + _outputs(source.fields, outputs)


def transferred_arrays(
    source: SavedNetwork,
    coordinates: Sequence[str],
    fresh: Layers,
    match: Match = "exact",
    *,
    fields: Sequence[str],
    activation: str,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """The weights and biases a target network starts from, in the float type of `fresh`; neither is changed.

    Only arrays are transferred: the target keeps its own scales around the network.
    """
    weights = [np.array(weight) for weight in fresh.weights]
    biases = [np.array(bias) for bias in fresh.biases]
    widths = [weights[0].shape[0], *(weight.shape[1] for weight in weights)]
    pairs = transfer_check(
        source, coordinates=coordinates, fields=fields, widths=widths, activation=activation, match=match
    )
    columns = [pair.source for pair in pairs if pair.what == "output" and pair.source is not None]
    last = len(weights) - 1
    with np.errstate(over="ignore"):  # float64 to float32 may overflow; that is looked for below
        for layer, (weight, bias) in enumerate(zip(source.weights, source.biases, strict=True)):
            given = weight[:, columns] if layer == last else weight
            biases[layer][:] = bias[columns] if layer == last else bias
            if layer:
                weights[layer][:] = given
                continue
            for pair in pairs:
                if pair.what == "input" and pair.source is not None and pair.target is not None:
                    weights[0][pair.target] = given[pair.source]
    for name, arrays in (("weights", weights), ("biases", biases)):
        if not all(np.isfinite(array).all() for array in arrays):
            raise InputError(f"the source's numbers do not fit {weights[0].dtype.name}", field=name)
    return weights, biases


def _inputs(have: tuple[str, ...], want: tuple[str, ...], match: Match) -> list[Copied]:
    new, lost = [name for name in want if name not in have], [name for name in have if name not in want]
    if match == "exact" and (new or lost):
        sides = {"target": new, "source": lost}
        only = [f"only the {side} has {', '.join(names)}" for side, names in sides.items() if names]
        raise InputError(
            f"source and target have different coordinates: {'; '.join(only)}",
            field="coordinates",
            remedy="match='leading' copies those they share by name and keeps fresh values for the rest",
        )
    if len(new) == len(want):
        raise InputError(
            f"source ({', '.join(have)}) and target ({', '.join(want)}) share no coordinate",
            field="coordinates",
        )
    return [
        Copied("input", name, have.index(name) if name in have else None, place) for place, name in enumerate(want)
    ] + [Copied("input", name, have.index(name), None) for name in lost]


def _outputs(have: tuple[str, ...], want: tuple[str, ...]) -> list[Copied]:
    if len(have) != len(want):
        raise InputError(
            f"source ({', '.join(have)}) and target ({', '.join(want)}) have unequal numbers of fields",
            field="fields",
            remedy="Transfer between problems with equally many fields",
        )
    if set(have) == set(want):
        return [Copied("output", name, have.index(name), place) for place, name in enumerate(want)]
    for place, name in enumerate(want):
        if name in have and have.index(name) != place:
            raise InputError(
                f"'{name}' is field {have.index(name) + 1} of the source and {place + 1} of the target",
                field="fields",
                remedy="Order or name the target's fields as the source's",
            )
    return [Copied("output", name, place, place) for place, name in enumerate(want)]
