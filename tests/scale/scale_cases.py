"""One problem with several blocks, its sums and trainings on some devices; run as a program by the tests."""

from __future__ import annotations

import hashlib
import re
import resource
import sys
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tgsr
from tgsr import training
from tgsr._jax import computing, use_devices
from tgsr._random import stream
from tgsr._ranks import joined, spread_over
from tgsr.loss import _objective, build_objective
from tgsr.loss._spread import whole_slots

NEVER = tgsr.Stopping(0.0, 10**6)
POINTS = tgsr.Points(interior=203, boundary=7, initial=11)
PHASES: dict[str, Any] = {
    "l-bfgs": tgsr.LBFGS(epochs=3, inner=4, history=5, stopping=NEVER),
    "adam": tgsr.Adam(epochs=2, inner=5),
    "levenberg-marquardt": tgsr.LevenbergMarquardt(epochs=1, inner=1),
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


def arguments(kind: str) -> dict[str, Any]:
    """What a short training is told; its points move, so that they are dealt out more than once."""
    moving = tgsr.Refinement(every=1, candidates=2)
    plan = tgsr.Training(phases=(PHASES[kind],), points=POINTS, refinement=moving)
    return {"network": tgsr.MLP((8, 8)), "training": plan, "seed": 1}


def in_blocks(blocks: int) -> None:
    """At least so many blocks of the problem above, which is far too small for more than one."""
    _objective.BLOCK_NUMBERS = 203 * 8 * 3 // blocks


def closures() -> None:
    """One line for every precision, engine, number of blocks and of devices: how far loss and gradient are from those
    of one device, a digest of their bits, and the collectives of the compiled program."""
    for precision, engine, blocks in (("float64", "jax", 1), ("float32", "jax", 5), ("float64", sys.argv[3], 40)):
        with computing(), jax.enable_x64(precision == "float64"):
            closure = tgsr.closure(problem(), **arguments("adam"), precision=precision, engine=engine)
            alone = np.zeros(0)
            for devices in (1, 2, 3):
                objective = replace(closure.objective, blocks=whole_slots(blocks), spread=spread_over(devices))
                batch = jax.tree.map(lambda array, to=precision: array.astype(to), objective.draw(0))
                own = replace(closure, objective=objective, batch=batch)
                loss, gradient = own()
                found = np.append(gradient, loss)
                alone = found if devices == 1 else alone
                distance = np.max(np.abs(found - alone)) / np.max(np.abs(alone))
                program = own._program.lower(own._given(jnp.asarray(own.start)), *own._placed).compile().as_text()
                collectives = re.findall(r" (all-\w+|collective-\w+|reduce-scatter)\(", program)
                digest = hashlib.sha256(found.tobytes()).hexdigest()[:12]
                print(precision, blocks, devices, distance, digest, *collectives, flush=True)


def train(kind: str, devices: int) -> None:
    """A digest of the weights and losses of a short training, and nothing of what `solve` does beside it."""
    in_blocks(5)
    asked = arguments(kind)
    with computing():
        objective = build_objective(problem(), asked["network"], POINTS, engine="jax", spread=spread_over(devices))
        theta = objective.surrogate.initial(stream(1, "init"))
        trained = training.train(objective, training.Start(theta), asked["training"], 1)
        numbers = np.append(np.asarray(trained.theta), trained.history["loss"])
    print(hashlib.sha256(numbers.tobytes()).hexdigest(), flush=True)


def a_million() -> None:
    """The most memory that one closure of a million points takes, in MiB."""
    points = tgsr.Points(interior=1_000_000, boundary=2500, initial=2500)
    closure = tgsr.closure(
        problem(), network=tgsr.MLP((100,) * 6), training=tgsr.Training(points=points), precision="float32"
    )
    closure()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, flush=True)


# a_million DEVICES - | closures DEVICES ENGINE | train DEVICES KIND [COORDINATOR RANK RANKS]
if __name__ == "__main__":
    what, count, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    use_devices(count)
    if what == "closures":
        closures()
    elif what == "a_million":
        a_million()
    elif len(sys.argv) == 4:
        train(kind, count)
    else:
        with joined(sys.argv[4], int(sys.argv[5]), int(sys.argv[6])):
            train(kind, count)
