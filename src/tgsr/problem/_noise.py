"""How measurements scatter about the truth: the likelihood of a residual r = measured - computed.

With z = r / scale every model gives rho(z), its negative log-likelihood up to a constant and a factor, which
is normalised so that rho(z) = z^2 / 2 near z = 0: a loss can then change model without changing its weight.
`weight * rho` is the negative log-likelihood itself, which standard errors need.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tgsr._errors import InputError, plain

_POSITIVE = "Give a positive number in the unit of the field, or None to estimate it from the residuals"


def _positive(value: object, what: str, remedy: str = _POSITIVE) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            number = math.inf
        if math.isfinite(number) and number > 0:
            return number
    raise InputError(f"{what} must be a finite number above zero, not {plain(repr(value), 60)}", remedy=remedy)


class Noise(ABC):
    """A model of measurement errors. `scale` is None while it is still to be estimated from the residuals."""

    name: str
    scale: float | None
    weight: float

    @property
    def estimated(self) -> bool:
        """Whether the size of the errors comes from the residuals instead of from the user."""
        return self.scale is None

    @abstractmethod
    def rho(self, z: Any, xp: Any = np) -> Any:
        """Negative log-likelihood of standardised residuals, up to a constant and the factor `weight`."""

    @abstractmethod
    def psi(self, z: Any, xp: Any = np) -> Any:
        """rho'(z)."""

    @abstractmethod
    def dpsi(self, z: Any, xp: Any = np) -> Any:
        """rho''(z)."""

    @abstractmethod
    def with_scale(self, scale: float) -> Noise:
        """The same model with errors of this size."""

    @abstractmethod
    def sentence(self) -> str:
        """The likelihood in words, as a report states it."""

    def fitted(self, residuals: ArrayLike) -> Noise:
        """The maximum-likelihood scale of these residuals, the missing ones (NaN) left out.

        Each model is a Gaussian whose variance itself scatters, so expectation maximisation climbs steadily:
        s^2 <- weight * mean(r^2 psi(r/s) / (r/s)).
        """
        r = np.asarray(residuals, dtype=np.float64)
        r = r[~np.isnan(r)]
        size = float(np.max(np.abs(r), initial=0.0))
        if not 0 < size < math.inf:
            raise InputError(
                "the scale of the noise cannot be estimated: every residual is zero, missing or infinite",
                remedy="State the noise of the measurements, for example noise=0.5",
            )
        unit = r[r != 0] / size
        scale = math.sqrt(float(np.sum(unit**2)) / r.size)
        for _ in range(1000):
            z = unit / scale
            new = scale * math.sqrt(self.weight * float(np.sum(z * self.psi(z))) / r.size)
            done, scale = abs(new - scale) <= 1e-12 * scale, max(new, 1e-12)
            if done:
                break
        return self.with_scale(scale * size)

    def _size(self, what: str) -> str:
        return f"{what} is estimated from the residuals" if self.scale is None else f"{what} is {self.scale:.6g}"


@dataclass(frozen=True)
class Gaussian(Noise):
    """Normal errors, rho = z^2 / 2."""

    sigma: float | None = None
    name = "gaussian"
    weight = 1.0

    def __post_init__(self) -> None:
        if self.sigma is not None:
            object.__setattr__(self, "sigma", _positive(self.sigma, "the standard deviation of the noise"))

    @property
    def scale(self) -> float | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.sigma

    def rho(self, z: Any, xp: Any = np) -> Any:
        return 0.5 * z * z

    def psi(self, z: Any, xp: Any = np) -> Any:
        return z

    def dpsi(self, z: Any, xp: Any = np) -> Any:
        return xp.ones_like(z)

    def with_scale(self, scale: float) -> Gaussian:
        return Gaussian(scale)

    def sentence(self) -> str:
        return f"independent normal errors whose {self._size('standard deviation')}"


@dataclass(frozen=True)
class Laplace(Noise):
    """Two-sided exponential errors, smoothed at zero: rho = sqrt(1 + z^2) - 1, which is |z| - 1 far out."""

    scale: float | None = None
    name = "laplace"
    weight = 1.0

    def __post_init__(self) -> None:
        if self.scale is not None:
            object.__setattr__(self, "scale", _positive(self.scale, "the scale of the noise"))

    def rho(self, z: Any, xp: Any = np) -> Any:
        return z * (z / (1.0 + xp.hypot(xp.ones_like(z), z)))  # the same number, without cancellation near 0

    def psi(self, z: Any, xp: Any = np) -> Any:
        return z / xp.hypot(xp.ones_like(z), z)

    def dpsi(self, z: Any, xp: Any = np) -> Any:
        return xp.hypot(xp.ones_like(z), z) ** -3

    def with_scale(self, scale: float) -> Laplace:
        return replace(self, scale=scale)

    def sentence(self) -> str:
        return f"independent Laplace errors, smoothed near zero, whose {self._size('scale')}"


@dataclass(frozen=True)
class StudentT(Noise):
    """Heavy-tailed errors, for data with outliers: rho = df/2 log(1 + z^2/df), df/(df+1) of -log density."""

    scale: float | None = None
    df: float = 4.0
    name = "student-t"

    def __post_init__(self) -> None:
        if self.scale is not None:
            object.__setattr__(self, "scale", _positive(self.scale, "the scale of the noise"))
        remedy = "Give df as a number; 4 suits data with a few outliers, and large values approach Gaussian noise"
        object.__setattr__(self, "df", _positive(self.df, "df (degrees of freedom)", remedy))

    @property
    def weight(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.df + 1.0) / self.df

    def rho(self, z: Any, xp: Any = np) -> Any:
        return 0.5 * self.df * xp.log1p(z * z / self.df)

    def psi(self, z: Any, xp: Any = np) -> Any:
        return z / (1.0 + z * z / self.df)

    def dpsi(self, z: Any, xp: Any = np) -> Any:
        u = z * z / self.df
        return (1.0 - u) / (1.0 + u) ** 2

    def with_scale(self, scale: float) -> StudentT:
        return replace(self, scale=scale)

    def sentence(self) -> str:
        return f"independent Student-t errors with {self.df:g} degrees of freedom whose {self._size('scale')}"


def as_noise(value: object) -> Noise:
    """A number is the standard deviation of Gaussian errors; None asks for an estimate of it."""
    if isinstance(value, Noise):
        return value
    if value is None or (isinstance(value, Real) and not isinstance(value, bool)):
        return Gaussian(value)  # pyright: ignore[reportArgumentType]
    models = ", ".join(
        f"tgsr.{m.__name__}({', '.join(f.name for f in fields(m))})" for m in (Gaussian, Laplace, StudentT)
    )
    raise InputError(
        f"noise must be a number, None or a noise model, not {plain(repr(value), 60)}",
        remedy=f"Use noise=0.5 for a standard deviation of 0.5, or one of {models}",
    )
