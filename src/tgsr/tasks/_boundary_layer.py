"""Steady transport through a thin layer: `-eps (u_xx + u_yy) + u_x = 0` on the unit square.

The exact field is `u = y (1 - exp(-Pe (1-x))) / (1 - exp(-Pe))` with `Pe = 1/eps`: flat, but for a layer of width eps
at x = 1. It is prescribed on all four sides, so the sides y = 0 and y = 1 already contain the layer's profile, and eps
can be had without any reading: compare with `observations=0`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np

import tgsr
from tgsr._random import stream

GUESSES = {100.0: 0.03, 5.0: 0.1}
SIDES = ("x=0", "x=1", "y=0", "y=1")


def transport(u: Any, eps: Any) -> Any:
    """The equation."""
    return u.x - eps * u.laplacian("x", "y")


def boundary_layer(
    seed: int,
    peclet: float = 100.0,
    *,
    observations: int = 1000,
    noise: float = 0.005,
    guess: float | None = None,
) -> tuple[tgsr.Problem, tgsr.Truth]:
    """The task at a Péclet number: Pe = 100 is the target, Pe = 5 the source of the same family.

    The readings lie anywhere in the square; their noise is the share `noise` of the mean of |u| over them.
    """
    rng = stream(seed, "observations", round(peclet))
    points = dict(zip("xy", rng.random((2, observations)), strict=True))
    exact = _exact(np, **points, peclet=peclet)
    sigma = noise * float(np.mean(np.abs(exact))) if observations else 0.0
    readings = exact + sigma * rng.standard_normal(observations)
    problem = tgsr.Problem(
        name=f"boundary-layer-pe{peclet:g}",
        coordinates={"x": (0.0, 1.0), "y": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tgsr.Unknown("eps", guess=guess or GUESSES.get(peclet, 3.0 / peclet), positive=True)],
        residuals=[transport],
        conditions=[tgsr.Dirichlet("u", at=SIDES, value=lambda x, y: _exact(jnp, x, y, peclet))],
        data=[tgsr.Data(points, {"u": readings}, noise=sigma or None, name="readings")] if observations else [],
        scale="none",
    )
    return problem, tgsr.Truth({"eps": 1.0 / peclet}, lambda x, y: _exact(np, x, y, peclet))


def _exact(xp: ModuleType, x: Any, y: Any, peclet: float) -> Any:
    return y * xp.expm1(-peclet * (1.0 - x)) / np.expm1(-peclet)
