"""Reference fields where no closed form exists: Burgers by Cole-Hopf quadrature, Allen-Cahn by a sine series.

Both start from `-sin(pi x)` on [-1, 1]. Stated errors, which the tests measure by refinement: Burgers 1e-12 for
nu >= 0.005, Allen-Cahn 1e-11 for eps near 0.8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tgsr.tasks._exact import Exact, arrays_of

REACH = 13.0  # of the quadrature, in units of its Gaussian: what is beyond weighs less than 1e-40


def burgers_field(nu: float, spacing: float = 0.1) -> Exact:
    """The solution of `u_t + u u_x = nu u_xx`, by Cole and Hopf

        u = - int sin(pi y) w dz / int w dz,   y = x - sqrt(4 nu t) z,   w = exp(-z^2 - cos(pi y) / (2 pi nu)).

    The trapezoidal rule converges faster than any power of `spacing`, as the integrands are analytic and vanish at both
    ends. The largest exponent is taken out first, so nothing overflows.
    """
    z = spacing * np.arange(-round(REACH / spacing), round(REACH / spacing) + 1)

    def exact(x: Any, t: Any) -> Any:
        xp = arrays_of(x, t)
        y = xp.asarray(x)[..., None] - xp.sqrt(4.0 * nu * xp.asarray(t))[..., None] * z
        exponent = -(z**2) - xp.cos(np.pi * y) / (2.0 * np.pi * nu)
        weight = xp.exp(exponent - exponent.max(axis=-1, keepdims=True))
        return -(weight * xp.sin(np.pi * y)).sum(axis=-1) / weight.sum(axis=-1)

    return exact


def allen_cahn_field(eps: float, modes: int = 12, nodes: int = 96, steps: int = 24) -> Exact:
    """The solution of `u_t = eps^2 u_xx + u - u^3`, `u = sum over odd k of a_k(t) sin(k pi x)`.

    The start is odd, of period 2 and symmetric about x = 1/2, and the equation keeps it so: the series has odd k only
    and holds the ends at zero by itself. Each a_k is a Chebyshev series in t.
    """
    series = _allen_cahn(eps, modes, nodes, steps)
    k = np.pi * np.arange(1, 2 * modes, 2)

    def exact(x: Any, t: Any) -> Any:
        xp = arrays_of(x, t)
        angle = xp.arccos(2.0 * xp.asarray(t) - 1.0)[..., None]
        a = xp.cos(angle * np.arange(nodes + 1)) @ series
        return (a * xp.sin(xp.asarray(x)[..., None] * k)).sum(axis=-1)

    return exact


@lru_cache(maxsize=32)
def _allen_cahn(eps: float, modes: int, nodes: int, steps: int) -> np.ndarray:
    """Chebyshev coefficients in t (rows) of every a_k (columns).

    Classical Runge-Kutta of order 4 with the linear part taken exactly, `steps` steps between each two of the Chebyshev
    points in t. The cube is projected on the sines by a quadrature that is exact for it.
    """
    k = np.arange(1, 2 * modes, 2)
    count = 2 * modes + 1  # midpoints of [0, 1/2]: exact for products of four sines
    sines = np.sin(np.pi * np.outer((np.arange(count) + 0.5) / (2 * count), k))
    rate = 1.0 - (eps * np.pi * k) ** 2

    def cube(a: np.ndarray) -> np.ndarray:
        return -((sines @ a) ** 3) @ sines * (2.0 / count)

    angles = np.pi * np.arange(nodes, -1, -1) / nodes
    times = (1.0 + np.cos(angles)) / 2.0
    a = np.where(k == 1, -1.0, 0.0)
    values = [a]
    for h in np.diff(times) / steps:
        half, whole = np.exp(rate * h / 2.0), np.exp(rate * h)
        for _ in range(steps):
            k1 = cube(a)
            k2 = cube(half * (a + h / 2.0 * k1))
            k3 = cube(half * a + h / 2.0 * k2)
            k4 = cube(whole * a + h * half * k3)
            a = whole * a + h / 6.0 * (whole * k1 + 2.0 * half * (k2 + k3) + k4)
        values.append(a)
    weight = np.where((np.arange(nodes + 1) % nodes) == 0, 0.5, 1.0)
    transform = (2.0 / nodes) * np.cos(np.outer(np.arange(nodes + 1), angles)) * weight * weight[:, None]
    return transform @ np.array(values)
