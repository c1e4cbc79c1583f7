"""A smooth field, carried and spread: `u_t - alpha (u_xx + u_yy) + v_x u_x + v_y u_y = Q`, u = 0 on the sides.

The field is manufactured, `u = exp(-t) sin(pi x) sin(pi y)`, and Q is what the operator makes of it. Q contains the
truth so fully that alpha, which readings alone would give to 3 %, is recovered to 0.02 % with no reading at all:
compare with `observations=0`. The source is the diffusion task.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import tgsr
from tgsr.tasks._exact import applied
from tgsr.tasks._reaction_diffusion import BOX, CONDITIONS, SIDES, decaying, diffusion, diffusion_source
from tgsr.tasks._square import carried
from tgsr.tasks._task import Physics, Task

__all__ = ["SIDES", "TASK", "advection_diffusion"]


def advection_diffusion(u: Any, alpha: Any, v_x: Any, v_y: Any) -> Any:
    """The left side of the equation."""
    return diffusion(u, alpha) + v_x * u.x + v_y * u.y


def target() -> Physics:
    """A small diffusivity under a strong wind."""
    truth = {"alpha": 0.001, "v_x": 2.0, "v_y": 1.0}
    q = applied(advection_diffusion, decaying(), tuple(BOX), truth)

    def forced(u: Any, x: Any, y: Any, t: Any, alpha: Any, v_x: Any, v_y: Any) -> Any:
        return advection_diffusion(u, alpha, v_x, v_y) - q(x, y, t)

    return Physics(
        BOX,
        forced,
        CONDITIONS,
        (
            tgsr.Unknown("alpha", guess=0.005, positive=True),
            tgsr.Unknown("v_x", guess=1.0),
            tgsr.Unknown("v_y", guess=0.5),
        ),
        decaying(),
        truth,
        0.005,
        partial(carried, **truth),
    )


TASK = Task("smooth-advection-diffusion", target, diffusion_source)
