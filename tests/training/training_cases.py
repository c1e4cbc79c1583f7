"""A decay that takes milliseconds an outer epoch, trained in every way; also for the processes that tests start."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tgsr
from tgsr.training import _keeper

A, X0, SIGMA = 1.2, 3.0, 0.02
T = np.linspace(0.0, 2.0, 25)
Y = X0 * np.exp(-A * T) + SIGMA * np.random.default_rng(0).normal(size=T.size)
POINTS = tgsr.Points(interior=30)
MLP = tgsr.MLP((8, 8))


def decay(x: Any, a: Any) -> Any:
    return x.t + a * x


def problem(noise: Any = SIGMA, values: np.ndarray = Y) -> tgsr.Problem:
    return tgsr.Problem(
        "decay",
        coordinates={"t": (0.0, 2.0)},
        fields=["x"],
        unknowns=[tgsr.Unknown("a", guess=1.0, positive=True, unit="1/s")],
        residuals=[decay],
        data=[tgsr.Data({"t": T}, {"x": values}, noise=noise)],
    )


NEVER = tgsr.Stopping(0.0, 10**6)
LM = tgsr.LevenbergMarquardt(epochs=6, inner=3, stopping=NEVER)
LBFGS = tgsr.LBFGS(epochs=6, inner=4, history=5, stopping=NEVER)
ADAM = tgsr.Adam(epochs=5, inner=10, learning_rate=1e-2)
PAPER = tgsr.PaperLBFGS(epochs=5, inner=4, history=5)
MOVING = tgsr.Refinement(every=2, candidates=3)
KINDS: dict[str, tgsr.Training] = {  # on one problem whose noise is estimated: the weighted one compiles no more
    "levenberg-marquardt": tgsr.Training(phases=(LM,), points=POINTS),
    "l-bfgs": tgsr.Training(phases=(LBFGS,), points=POINTS),
    "adam": tgsr.Training(phases=(ADAM,), points=POINTS),
    "paper": tgsr.Training(phases=(PAPER,), points=POINTS, weights={"pde": 10.0, "data": 50.0}),
    "two phases, refined": tgsr.Training(phases=(ADAM, LM), points=POINTS, refinement=MOVING),
}


def solved(kind: str, **options: Any) -> tgsr.Result:
    return tgsr.solve(problem(None), network=MLP, training=KINDS[kind], seed=3, **options)


class Saved:
    """Says after every outer epoch that it is done (and saved: `SAVE_EVERY` is 0)."""

    def __call__(self, seen: tgsr.Progress) -> None:
        print(seen.closures, flush=True)


if __name__ == "__main__":  # kind, folder or "-", seconds of rest per outer epoch, cores, bytes of a file
    import os
    import resource
    import time

    kind, out, rest, cores, room = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    if cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if room:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    _keeper.SAVE_EVERY = 0.0
    say = Saved()

    def show(seen: tgsr.Progress) -> None:
        say(seen)
        time.sleep(rest)

    print(solved(kind, out=None if out == "-" else out, progress=show).fingerprint, flush=True)
