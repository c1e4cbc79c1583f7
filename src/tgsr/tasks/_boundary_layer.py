"""Steady transport through a thin layer: `-eps (u_xx + u_yy) + u_x = 0` on the unit square.

The exact field is `u = y (1 - exp(-Pe (1-x))) / (1 - exp(-Pe))` with `Pe = 1/eps`: flat, but for a layer of width eps
at x = 1. It is prescribed on all four sides, so the sides y = 0 and y = 1 already contain the layer's profile, and eps
can be had without any reading: compare with `observations=0`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import tgsr
from tgsr.tasks._bound import differences
from tgsr.tasks._exact import Exact, arrays_of
from tgsr.tasks._local import gradient_error, strip_error
from tgsr.tasks._task import Physics, Task, pool, problem_of

GUESSES = {100.0: 0.03, 5.0: 0.1}
SIDES = ("x=0", "x=1", "y=0", "y=1")


def transport(u: Any, eps: Any) -> Any:
    """The equation."""
    return u.x - eps * u.laplacian("x", "y")


def profile(eps: float) -> Exact:
    """The exact field; with eps = 1/Pe it solves the equation for every eps, with its own values on the sides."""

    def exact(x: Any, y: Any) -> Any:
        return y * arrays_of(x, y).expm1((x - 1.0) / eps) / np.expm1(-1.0 / eps)

    return exact


def physics(peclet: float, noise: float = 0.005, guess: float | None = None) -> Physics:
    """The system at a Péclet number."""
    truth = {"eps": 1.0 / peclet}
    exact = profile(**truth)
    return Physics(
        coordinates={"x": (0.0, 1.0), "y": (0.0, 1.0)},
        residual=transport,
        conditions=(tgsr.Dirichlet("u", at=SIDES, value=exact),),
        unknowns=(tgsr.Unknown("eps", guess=guess or GUESSES.get(peclet, 3.0 / peclet), positive=True),),
        exact=exact,
        constants=truth,
        noise=noise,
        sensitivity=differences(profile, truth),
    )


def local_errors(result: tgsr.Result, truth: tgsr.Truth) -> dict[str, float]:
    """'layer': percent, for x >= 0.95; 'gradient': a fraction, on a grid refined towards x = 1."""
    x, y = np.linspace(0.95, 1.0, 200), np.linspace(0.0, 1.0, 200)
    towards_the_layer = 1.0 - np.linspace(1.0, 0.0, 200) ** 3
    return {
        "layer": 100.0 * strip_error(result, truth, x=x, y=y),
        "gradient": gradient_error(result, truth, x=towards_the_layer, y=y[::4]),
    }


TASK = Task("boundary-layer", partial(physics, 100.0), partial(physics, 5.0), local_errors)


def boundary_layer(
    seed: int, peclet: float = 100.0, *, observations: int = 1000, noise: float = 0.005, guess: float | None = None
) -> tuple[tgsr.Problem, tgsr.Truth]:
    """The problem at any Péclet number, with its truth."""
    system = physics(peclet, noise, guess)
    seen = pool(system, seed, "source" if peclet == 5.0 else "target", observations)
    return problem_of(f"boundary-layer-pe{peclet:g}", system, seen), tgsr.Truth(dict(system.constants), system.exact)
