"""A Gaussian pulse, carried and spread: `u_t - alpha (u_xx + u_yy) + v_x u_x + v_y u_y = 0` on the unit square.

    u = (s0^2 / s^2) exp(-|x - c(t)|^2 / (2 s^2)),   s^2 = s0^2 + 2 alpha t,   c(t) = (0.25, 0.375) + v t

with no source term and an initial state that knows none of the unknowns: what is found comes from the readings. The
field is set to zero on the sides, where it is below 4e-5 of its first height.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tgsr
from tgsr.tasks._bound import differences
from tgsr.tasks._exact import Exact, arrays_of
from tgsr.tasks._smooth_advection_diffusion import SIDES, advection_diffusion
from tgsr.tasks._task import Physics, Task

WIDTH = 0.05
START = (0.25, 0.375)
END = 0.25


def pulse(alpha: float, v_x: float, v_y: float) -> Exact:
    """The exact field in the plane without sides."""

    def exact(x: Any, y: Any, t: Any) -> Any:
        square = WIDTH**2 + 2.0 * alpha * t
        distance = (x - START[0] - v_x * t) ** 2 + (y - START[1] - v_y * t) ** 2
        return WIDTH**2 / square * arrays_of(x, y, t).exp(-distance / (2.0 * square))

    return exact


def physics(truth: dict[str, float], guess: dict[str, float]) -> Physics:
    """The system with these constants and first guesses."""
    exact = pulse(**truth)

    def at_start(x: Any, y: Any) -> Any:
        return pulse(alpha=0.0, v_x=0.0, v_y=0.0)(x, y, 0.0)

    return Physics(
        coordinates={"x": (0.0, 1.0), "y": (0.0, 1.0), "t": (0.0, END)},
        residual=advection_diffusion,
        conditions=(tgsr.Initial("u", at_start), tgsr.Dirichlet("u", at=SIDES, value=0.0)),
        unknowns=tuple(tgsr.Unknown(name, guess=value, positive=name == "alpha") for name, value in guess.items()),
        exact=exact,
        constants=truth,
        noise=0.005,
        sensitivity=differences(pulse, truth),
    )


TASK = Task(
    "advected-pulse",
    partial(physics, {"alpha": 1e-3, "v_x": 2.0, "v_y": 1.0}, {"alpha": 3e-3, "v_x": 1.0, "v_y": 0.5}),
    partial(physics, {"alpha": 5e-3, "v_x": 1.0, "v_y": 0.5}, {"alpha": 1e-2, "v_x": 0.5, "v_y": 0.25}),
)
