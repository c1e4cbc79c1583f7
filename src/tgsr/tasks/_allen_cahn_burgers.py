"""From one equation to another: the source is Allen-Cahn, the target Burgers.

    u_t = eps^2 u_xx + u - u^3,   u_t + u u_x = nu u_xx,   both with u(x, 0) = -sin(pi x), u = 0 at x = -1 and x = 1

Burgers has the Cole-Hopf solution; Allen-Cahn is solved by a sine series (`_reference`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp

import tgsr
from tgsr.tasks._bound import differences
from tgsr.tasks._reference import allen_cahn_field, burgers_field
from tgsr.tasks._task import Physics, Task

BOX = {"x": (-1.0, 1.0), "t": (0.0, 1.0)}
CONDITIONS = (
    tgsr.Initial("u", lambda x: -jnp.sin(jnp.pi * x)),
    tgsr.Dirichlet("u", at=("x=-1", "x=1"), value=0.0),
)


def burgers(u: Any, nu: Any) -> Any:
    """The target's equation."""
    return u.t + u * u.x - nu * u.xx


def allen_cahn(u: Any, eps: Any) -> Any:
    """The source's equation."""
    return u.t - eps**2 * u.xx - u + u**3


def _physics(residual: Any, family: Any, name: str, truth: float, guess: float, noise: float) -> Physics:
    constants = {name: truth}
    return Physics(
        BOX,
        residual,
        CONDITIONS,
        (tgsr.Unknown(name, guess=guess, positive=True),),
        family(**constants),
        constants,
        noise,
        differences(family, constants),
    )


TASK = Task(
    "allen-cahn-burgers",
    partial(_physics, burgers, burgers_field, "nu", 0.01, 0.05, 0.03),
    partial(_physics, allen_cahn, allen_cahn_field, "eps", 0.8, 0.85, 0.01),
)
