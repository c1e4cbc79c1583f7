"""One problem with several blocks, solved over some devices or as one of some processes; also run as a program."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

import tgsr
from tgsr.loss import _objective
from tgsr.training import _keeper

NEVER = tgsr.Stopping(0.0, 10**6)
POINTS = tgsr.Points(interior=203, boundary=7, initial=11)
PHASES: dict[str, Any] = {
    "l-bfgs": tgsr.LBFGS(epochs=3, inner=4, history=5, stopping=NEVER),
    "adam": tgsr.Adam(epochs=2, inner=5),
    "paper": tgsr.PaperLBFGS(epochs=2, inner=4, history=5),
    "ssbroyden": tgsr.SSBroyden(epochs=2, inner=4, stopping=NEVER),
    "soap": tgsr.SOAP(epochs=2, inner=5),
}


def heat(u: Any, k: Any) -> Any:
    return u.t - k * u.xx


def problem() -> tgsr.Problem:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0.0, 1.0, (2, 23))
    return tgsr.Problem(
        "heat",
        coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tgsr.Unknown("k", 0.05, positive=True)],
        residuals=[heat],
        conditions=[tgsr.Initial("u", lambda x: jnp.sin(jnp.pi * x)), tgsr.Dirichlet("u", at=["x=0", "x=1"])],
        data=[tgsr.Data({"x": x, "t": t}, {"u": np.exp(-t) * np.sin(np.pi * x)}, noise=None)],
    )


def arguments(kind: str = "l-bfgs") -> dict[str, Any]:
    training = tgsr.Training(phases=(PHASES[kind],), points=POINTS, refinement=tgsr.Refinement(every=1, candidates=2))
    return {"network": tgsr.MLP((8, 8)), "training": training, "seed": 1}


def in_blocks(blocks: int) -> None:
    """So many blocks (or few more) for the problem above, which is far too small for more than one."""
    _objective.BLOCK_NUMBERS = 203 * 8 * 3 // blocks
