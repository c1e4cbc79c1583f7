"""Diffusion with a reaction: `u_t - alpha (u_xx + u_yy) + rho u^2 = Q(x, y, t)` on the unit square, u = 0 on its sides.

The target's field is manufactured, `u = exp(-t) sin(pi x) sin(pi y)`, and Q is what the operator makes of it, so Q
contains the truth: compare with `observations=0`. The source is diffusion alone, whose first mode
`u = exp(-2 pi^2 alpha t) sin(pi x) sin(pi y)` is exact.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import tgsr
from tgsr.tasks._bound import differences
from tgsr.tasks._exact import Exact, applied, arrays_of
from tgsr.tasks._square import reacting
from tgsr.tasks._task import Physics, Task

BOX = {"x": (0.0, 1.0), "y": (0.0, 1.0), "t": (0.0, 1.0)}
SIDES = ("x=0", "x=1", "y=0", "y=1")


def diffusion(u: Any, alpha: Any) -> Any:
    """The source's equation."""
    return u.t - alpha * u.laplacian("x", "y")


def reaction_diffusion(u: Any, alpha: Any, rho: Any) -> Any:
    """The left side of the target's."""
    return diffusion(u, alpha) + rho * u**2


def decaying(rate: float = 1.0) -> Exact:
    """`exp(-rate t) sin(pi x) sin(pi y)`."""

    def exact(x: Any, y: Any, t: Any) -> Any:
        xp = arrays_of(x, y, t)
        return xp.exp(-rate * t) * xp.sin(np.pi * x) * xp.sin(np.pi * y)

    return exact


def first_mode(alpha: float) -> Exact:
    """How the initial state diffuses."""
    return decaying(2.0 * np.pi**2 * alpha)


def at_start(x: Any, y: Any) -> Any:
    """The initial state of every task that uses these fields."""
    return decaying()(x, y, 0.0)


CONDITIONS = (tgsr.Initial("u", at_start), tgsr.Dirichlet("u", at=SIDES, value=0.0))


def diffusion_source() -> Physics:
    """Diffusion alone."""
    truth = {"alpha": 0.05}
    return Physics(
        BOX,
        diffusion,
        CONDITIONS,
        (tgsr.Unknown("alpha", guess=0.1, positive=True),),
        first_mode(**truth),
        truth,
        0.005,
        differences(first_mode, truth),
    )


def target() -> Physics:
    """Diffusion with a reaction, and more noise."""
    truth = {"alpha": 0.05, "rho": 1.0}
    q = applied(reaction_diffusion, decaying(), tuple(BOX), truth)

    def forced(u: Any, x: Any, y: Any, t: Any, alpha: Any, rho: Any) -> Any:
        return reaction_diffusion(u, alpha, rho) - q(x, y, t)

    return Physics(
        BOX,
        forced,
        CONDITIONS,
        (tgsr.Unknown("alpha", guess=0.1, positive=True), tgsr.Unknown("rho", guess=0.5, positive=True)),
        decaying(),
        truth,
        0.05,
        partial(reacting, **truth),
    )


TASK = Task("reaction-diffusion", target, diffusion_source)
