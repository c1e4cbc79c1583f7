"""What training costs beside its closures: the optimisers' own work, TGSR's scoring, and compiling.

    python benchmarks/overheads.py                       # about five minutes on two quiet cores
    python benchmarks/overheads.py --json benchmarks/results/overheads.json

Bars: an optimiser's bookkeeping takes under 10 % of its closures, scoring, mixture and decay together under 2 % of a
TGSR run, a phase compiles in under 5 seconds, and the methods of a study share what is compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import tgsr
from tgsr import tasks
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import build_objective
from tgsr.optimiser import row_count
from tgsr.storage import write_bytes
from tgsr.tasks import Profile
from tgsr.training._controls import Weighing

BOOKKEEPING_BAR, SCORING_BAR, COMPILE_BAR = 0.10, 0.02, 5.0
SEED, ROUNDS, STEPS = 200, 7, 10
LARGE = (100,) * 6
PHASES = {
    "l-bfgs": tgsr.LBFGS(inner=STEPS),
    "paper-l-bfgs": tgsr.PaperLBFGS(inner=STEPS),
    "adam": tgsr.Adam(inner=STEPS),
    "soap": tgsr.SOAP(inner=STEPS),
}


def setting(widths: tuple[int, ...], share: float) -> tuple[Any, ...]:
    """(objective, theta, batch, controls) of the boundary layer."""
    case = tasks.task("boundary-layer").case(SEED, Profile("benchmark", widths, (), "matched", share))
    objective = build_objective(case.problem, case.network, case.training.points)
    theta, batch = objective.surrogate.initial(stream(SEED, "init")), objective.draw(SEED)
    weighing = Weighing(objective, case.training.weight_table)
    return objective, theta, batch, weighing.controls(weighing.first_sigma(), theta, None, None, None)


def seconds_of(call: Any) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - began


def bookkeeping(share: float) -> dict[str, dict[str, float]]:
    """Of each optimiser, its own work as a share of its closures; epochs and closures take turns."""
    objective, theta, batch, controls = setting(LARGE, share)
    closure = jax.jit(objective.closure)
    out = {}
    for name, phase in PHASES.items():
        program = phase.program(objective, row_count(objective, batch))
        settings = jnp.asarray([phase.setting(0), 1e6])
        state = program.start(theta, batch, controls)
        for _ in range(12):  # until the history is full
            state, _ = program.epoch(state, batch, controls, settings)
        seconds_of(lambda: closure(theta, batch, controls))
        ratios, each = [], []
        for _ in range(ROUNDS):
            alone = [seconds_of(lambda: closure(theta, batch, controls)) for _ in range(STEPS)]
            began = time.perf_counter()
            state, trace = jax.block_until_ready(program.epoch(state, batch, controls, settings))
            taken, closures = time.perf_counter() - began, int(trace.closures.sum())
            each.append(statistics.median(alone))
            ratios.append(taken / (closures * each[-1]) - 1.0)
        out[name] = {"closure_ms": 1e3 * statistics.median(each), "bookkeeping": statistics.median(ratios)}
        print(f"  {name:14} share of points {share:g}: closure {out[name]['closure_ms']:.1f} ms, "
              f"bookkeeping {out[name]['bookkeeping']:+.1%}", flush=True)  # fmt: skip
    return out


def compiling() -> dict[str, dict[str, float]]:
    """Seconds to trace and compile a phase, from nothing."""
    small = {"levenberg-marquardt": tgsr.LevenbergMarquardt(accelerate=True), "ss-broyden": tgsr.SSBroyden()}
    large = {"l-bfgs": tgsr.LBFGS(), "paper-l-bfgs": tgsr.PaperLBFGS(), "matrix-free-lm": tgsr.MatrixFreeLM()}
    out: dict[str, dict[str, float]] = {}
    for label, widths, phases in (("6x12", (12,) * 6, small), ("6x100", LARGE, large)):
        objective, theta, batch, controls = setting(widths, 0.2)
        for name, phase in phases.items():
            program = phase.program(objective, row_count(objective, batch))
            began = time.perf_counter()
            state = program.start(theta, batch, controls)
            program.epoch.lower(state, batch, controls, jnp.asarray([0.0, 1e6])).compile()
            out.setdefault(label, {})[name] = time.perf_counter() - began
            print(f"  {label} {name:20} {out[label][name]:.1f} s to trace and compile", flush=True)
    return out


def transfers() -> dict[str, Any]:
    """TGSR's own stages in a run at profile `laptop`, and what each method of a study compiles in one process."""
    compiled: list[float] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event.endswith("backend_compile_duration") else None
    )
    task = tasks.task("boundary-layer")
    source = task.case(SEED, "laptop", "source")
    start = tgsr.solve(source.problem, network=source.network, training=source.training, seed=SEED)
    case, out = task.case(SEED, "laptop"), {}
    for label in ("scratch", "tgsr", "full", "random-decay", "tgsr again"):
        compiled.clear()
        result = tgsr.transfer(
            case.problem, start, method=label.split()[0], budget=case.budget, network=case.network,
            training=case.training, seed=SEED,
        )  # fmt: skip
        own = result.stages.get("overhead")
        stages = {} if own is None else dict(zip(own["stage"].tolist(), own["seconds"].tolist(), strict=True))
        scoring = sum(stages.get(name, 0.0) for name in ("scoring", "correction"))
        out[label] = {"seconds": result.seconds, "compiling": sum(compiled), "scoring": scoring}
        print(f"  {label:14} {result.seconds:.1f} s, of which compiling {sum(compiled):.1f} s, scoring and decay "
              f"{1e3 * scoring:.0f} ms ({scoring / result.seconds:.2%})", flush=True)  # fmt: skip
    return out


def main() -> None:
    """Measure all, and say which bars hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to keep the numbers")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    found: dict[str, Any] = {"transfers": transfers()}
    with computing():
        found |= {"bookkeeping": {str(s): bookkeeping(s) for s in (0.2, 1.0)}, "compiling": compiling()}
    worst = max(row["bookkeeping"] for rows in found["bookkeeping"].values() for row in rows.values())
    slowest = max(seconds for rows in found["compiling"].values() for seconds in rows.values())
    again = found["transfers"]["tgsr again"]
    share = again["scoring"] / again["seconds"]
    for what, value, bar in (
        ("bookkeeping of closures", worst, BOOKKEEPING_BAR),
        ("scoring and decay of a TGSR run", share, SCORING_BAR),
        ("seconds to compile a phase", slowest, COMPILE_BAR),
    ):
        print(f"{what}: at most {value:.3g} (bar {bar:g}): {'holds' if value < bar else 'MISSED'}")
    if given.json:
        from tgsr._provenance import environment

        found |= {"machine": environment(), "load": [load, os.getloadavg()[0]]}
        write_bytes(given.json, json.dumps(found, indent=1).encode())


if __name__ == "__main__":
    main()
