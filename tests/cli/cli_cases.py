"""The problem that the command line is tested on, and how its commands are called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import Result

import tgsr

DECAY = """
import numpy as np
import tgsr

def decay(u, k):
    return u.t + k * u

t = np.linspace(0.0, 1.0, 11)
problem = tgsr.Problem(
    name="decay",
    coordinates={"t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[tgsr.Unknown("k", guess=1.0, positive=True, unit="1/s")],
    residuals=[decay],
    conditions=[tgsr.Initial("u", 2.0)],
    data=[tgsr.Data({"t": t}, {"u": 2.0 * np.exp(-1.5 * t)}, noise=0.01)],
)
truth = tgsr.Truth({"k": 1.5}, lambda t: 2.0 * np.exp(-1.5 * t))
"""
SMALL = ("--widths", "6", "--budget", "60")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tgsr.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "tgsr")

Invoke = Callable[..., Result]


class Finished(NamedTuple):
    """A finished run: the user's file, its directory, and what `solve --json` printed."""

    file: Path
    run: Path
    record: dict[str, Any]
