"""Where a problem lives: the box of its coordinates, the faces of that box, and points drawn from either."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import qmc

from tgsr._errors import InputError, plain
from tgsr.problem._names import arguments_of, call_by_name, check_name, nearest

Sampling = Literal["uniform", "sobol", "latin-hypercube", "grid"]
SAMPLINGS: tuple[str, ...] = ("uniform", "sobol", "latin-hypercube", "grid")
MAX_COORDINATES = 8


@dataclass(frozen=True)
class Face:
    """The set where one coordinate has a fixed value; `side` is -1 at the lower end, +1 at the upper, 0 inside."""

    axis: int
    value: float
    side: int
    name: str


class Domain:
    """The box of the coordinates, cut by an optional predicate `region(x, y, ...)` that is True inside."""

    def __init__(
        self, coordinates: Mapping[str, tuple[float, float]], region: Callable[..., Any] | None = None
    ) -> None:
        if not isinstance(coordinates, Mapping) or not coordinates:
            raise InputError(
                "a problem needs coordinates", field="coordinates", remedy='Write coordinates={"x": (0.0, 1.0)}'
            )
        if len(coordinates) > MAX_COORDINATES:
            raise InputError(
                f"{len(coordinates)} coordinates are more than {MAX_COORDINATES}",
                field="coordinates",
                remedy="Leave some out",
            )
        self.names = tuple(check_name(name, "coordinate") for name in coordinates)
        ranges = []
        for name, ends in coordinates.items():
            try:
                if isinstance(ends, (str, bytes, Mapping, set, frozenset)):
                    raise TypeError
                low, high = (float(end) for end in ends)
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"the range of coordinate {name!r} is {plain(ends, 60)!r}",
                    field=name,
                    remedy="Give two numbers: (low, high)",
                ) from None
            if not (low < high and math.isfinite(high - low) and math.isfinite(2.0 / (high - low))):
                raise InputError(
                    f"the range of coordinate {name!r} is ({low:g}, {high:g})",
                    field=name,
                    remedy="Give two finite numbers, the lower first",
                )
            ranges.append((low, high))
        self.low = np.array([low for low, _ in ranges])
        self.high = np.array([high for _, high in ranges])
        self.region = region
        self._region_arguments = () if region is None else arguments_of(region, self.names, "the region")

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The box as it was written."""
        return {n: (float(a), float(b)) for n, a, b in zip(self.names, self.low, self.high, strict=True)}

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Which rows of `points` (n, d) the region's predicate accepts (all, without one)."""
        if self.region is None:
            return np.ones(len(points), dtype=bool)
        columns = {name: points[:, i] for i, name in enumerate(self.names)}
        try:
            answer = np.asarray(call_by_name(self.region, self._region_arguments, columns))
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"the region's predicate fails on arrays ({type(error).__name__}: {plain(error, 120)})",
                field="region",
                remedy="Write it with & and | on arrays, as in lambda x, y: (x**2 + y**2) < 1",
            ) from error
        if answer.shape != (len(points),) or answer.dtype != bool:
            raise InputError(
                f"the region's predicate returns {answer.dtype} of shape {answer.shape}",
                field="region",
                remedy="Return one True or False per point",
            )
        return answer

    def face(self, text: object) -> Face:
        """The face that 'x=0' names."""
        if not isinstance(text, str) or text.count("=") != 1:
            raise InputError(f"{plain(text, 60)!r} names no face", field="at", remedy='Write at="x=0"')
        name, _, number = (part.strip() for part in text.partition("="))
        if name not in self.names:
            raise InputError(f"there is no coordinate {name!r}", field=text, remedy=nearest(name, self.names))
        axis = self.names.index(name)
        low, high = float(self.low[axis]), float(self.high[axis])
        if number in ("low", "high"):
            value = low if number == "low" else high
        else:
            try:
                value = float(number)
            except ValueError:
                raise InputError(
                    f"{number!r} is not a number", field=text, remedy=f'Write "{name}={low:g}" or "{name}=low"'
                ) from None
        slack = 1e-9 * (high - low)
        if not low - slack <= value <= high + slack:
            raise InputError(
                f"{name}={value:g} is outside the range ({low:g}, {high:g})",
                field=text,
                remedy=f'Write "{name}=low" or "{name}=high" for its ends',
            )
        side = -1 if abs(value - low) <= slack else 1 if abs(value - high) <= slack else 0
        return Face(axis, (low, value, high)[side + 1], side, f"{name}={value:g}")

    def faces(self, at: object) -> list[Face]:
        """The faces that 'x=0' or a list of such texts names."""
        texts = [at] if isinstance(at, str) else at
        if not isinstance(texts, (list, tuple)) or not texts:
            raise InputError(
                f"at={plain(at, 60)!r} names no face", field="at", remedy='Write at="x=0" or a list of faces'
            )
        return [self.face(text) for text in texts]

    def listed(self, at: Mapping[str, Any]) -> np.ndarray:
        """Points (n, d) that are listed one by one, as one array per coordinate."""
        missing = [name for name in self.names if name not in at]
        extra = [name for name in at if name not in self.names]
        if missing or extra:
            wrong = plain((missing or extra)[0], 40)
            raise InputError(
                f"the points of a condition {'lack' if missing else 'have an unknown'} coordinate {wrong!r}",
                field="at",
                remedy=f"Give one array for each of {', '.join(self.names)}",
            )
        try:
            columns = [np.atleast_1d(np.asarray(at[name])) for name in self.names]
            if any(column.dtype.kind not in "iuf" for column in columns):
                raise TypeError("they are not numbers")
            points = np.stack(np.broadcast_arrays(*columns), axis=1).astype(float)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the points of a condition cannot be read ({plain(error, 80)})",
                field="at",
                remedy="Give one-dimensional arrays of equal length",
            ) from None
        slack = 1e-9 * (self.high - self.low)
        flat = points.ndim == 2 and len(points) > 0
        if not flat or not ((points >= self.low - slack) & (points <= self.high + slack)).all():
            raise InputError(
                f"the points of a condition are not {'inside the ranges of the coordinates' if flat else 'a list'}",
                field="at",
                remedy="Give one-dimensional arrays of finite numbers inside the ranges of the coordinates",
            )
        return points

    def draw(self, count: int, rng: np.random.Generator, how: str = "sobol", face: Face | None = None) -> np.ndarray:
        """`count` points (n, d) of the interior or of a face. A grid, or a face of a line, may have fewer."""
        free = [i for i in range(len(self.names)) if face is None or i != face.axis]
        if not free:  # the end of a line is one point
            return np.array([[face.value]]) if face is not None else np.empty((0, 0))
        kept: list[np.ndarray] = []
        missing, tries = count, 0
        while missing > 0:
            # Over-draw by the share that the region accepted so far, so that a second round is rare.
            accepted = 1.0 if not kept else max(sum(map(len, kept)) / max(tries, 1), 1e-3)
            spare = 1.0 if self.region is None or how == "grid" else 1.2
            ask = min(math.ceil(missing / accepted * spare), 4_000_000)
            unit = unit_points(ask, len(free), rng, how)
            points = np.empty((len(unit), len(self.names)))
            points[:, free] = self.low[free] + unit * (self.high - self.low)[free]
            if face is not None:
                points[:, face.axis] = face.value
            inside = points[self.inside(points)]
            tries += len(points)
            kept.append(inside[:missing])
            if how == "grid":
                break
            missing -= len(kept[-1])
            if tries >= 100 * count + 10_000 and missing > 0:
                raise InputError(
                    f"only {count - missing} of {tries} random points lie in the region",
                    field="region",
                    remedy="Shrink the coordinate box around the region",
                )
        found = np.concatenate(kept)
        if not len(found):
            raise InputError("no point of the grid lies in the region", field="region", remedy="Use more points")
        return found


def unit_points(count: int, dimension: int, rng: np.random.Generator, how: str) -> np.ndarray:
    """Points of the unit cube (n, dimension) by one of the samplings."""
    if how == "uniform":
        return rng.random((count, dimension))
    if how == "sobol":
        sampler = qmc.Sobol(dimension, scramble=True, rng=rng)
        return sampler.random_base2(max(count - 1, 1).bit_length())[:count]
    if how == "latin-hypercube":
        return qmc.LatinHypercube(dimension, rng=rng).random(count)
    if how == "grid":
        side = max(1, math.floor(count ** (1.0 / dimension) + 1e-9))  # never more than asked: a cut would leave a gap
        axis = (np.arange(side) + 0.5) / side  # midpoints: the faces have their own points
        return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    raise InputError(f"unknown sampling {how!r}", field="sampling", remedy=nearest(how, SAMPLINGS))
