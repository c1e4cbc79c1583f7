"""The readings of a result, and how far the fit is from each of them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tgsr.report._words import stated_noise

if TYPE_CHECKING:
    from tgsr._result import Result


@dataclass(frozen=True)
class Readings:
    """One measured field of one data set: where, what was read, and what the fit says there."""

    name: str
    field: str
    points: dict[str, np.ndarray]
    values: np.ndarray
    fitted: np.ndarray
    sigma: float | None  # as the likelihood states it

    @property
    def residuals(self) -> np.ndarray:
        """Reading minus fit."""
        return self.values - self.fitted

    @property
    def spread(self) -> float:
        """Root mean square of the residuals."""
        return float(np.sqrt(np.mean(self.residuals**2)))

    @property
    def unit(self) -> float:
        """What residuals are measured in: the stated noise, else their own spread."""
        return self.sigma or self.spread or 1.0


def readings_of(result: Result) -> list[Readings]:
    """Every measured field of a result, missing readings left out; none where the result came without its data."""
    if result.inputs is None:
        return []
    with np.load(io.BytesIO(result.inputs[1]), allow_pickle=False) as stored:
        arrays = {name: np.asarray(stored[name], dtype=float) for name in stored.files}
    sets = result.inputs[0].get("problem", {}).get("data", [])
    found = []
    for name in arrays:
        number, kind, field = name.split(".", 2)
        if kind != "value" or field not in result.fields:
            continue
        start = f"{number}.point."
        points = {c: arrays[start + c] for c in result.network.coordinates}
        present = np.isfinite(arrays[name])
        points, values = {key: column[present] for key, column in points.items()}, arrays[name][present]
        title = str(sets[int(number)]["name"]) if int(number) < len(sets) else f"data {number}"
        found.append(
            Readings(
                title, field, points, values, result.predict(**points)[field], stated_noise(result, int(number), field)
            )
        )
    return found
