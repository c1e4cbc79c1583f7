"""How many steps, closures and seconds each optimiser takes to the parameter error of a long run.

    python benchmarks/optimisers.py --task boundary-layer --network 6x12 --seed 200 201 202 --optimiser lm ss-broyden
    python benchmarks/optimisers.py --show

Every (task, network, optimiser) is one process, so that its memory is its own; every run has a file of its own in the
folder `--out`, and one that is there is not run again. Steps and closures do not depend on how busy the machine is;
seconds do, and count only as ratios within one quiet run. From scratch, the paper's weights, the given share of the
paper's points.

The long-run value of a seed is the parameter error where its loss is lowest over all optimisers in the folder that
minimise it: all but `best`, whose loss is balanced by the noise of the readings. A run has arrived from the first step
on after which its error stays within 1.1 times that value; `loss` is the same question asked of the loss at 1.01 times
the lowest. Both are told by whoever knows the truth, never by a run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tgsr
from tgsr import tasks
from tgsr.storage import write_bytes
from tgsr.tasks import Profile

TUNING, HELD_OUT = (200, 201, 202), (300, 301, 302, 303, 304)
NEVER = tgsr.Stopping(0.0, 10**6)
LONG = 10**6  # outer epochs: the budget ends a run


@dataclass(frozen=True)
class Way:
    """Phases, and what they start from."""

    phases: tuple[Any, ...] = ()
    method: Any = "scratch"
    from_source: bool = False  # the task's source, trained in the same way
    preset: bool = False  # weights and stopping are the preset's as well


def lm(**options: Any) -> tuple[Any, ...]:
    """Levenberg-Marquardt until the budget ends it."""
    return (tgsr.LevenbergMarquardt(LONG, stopping=NEVER, **options),)


OPTIMISERS: dict[str, Callable[[], Way]] = {
    "lm": lambda: Way(lm()),
    "lm-accelerated": lambda: Way(lm(accelerate=True)),
    "lm-accelerated-full": lambda: Way(lm(accelerate=True), "full", from_source=True),
    "lm-accelerated-tgsr": lambda: Way(lm(accelerate=True), "tgsr", from_source=True),
    "lm-eliminate": lambda: Way(lm(eliminate=True)),
    "matrix-free-lm": lambda: Way((tgsr.MatrixFreeLM(LONG, stopping=NEVER),)),
    "l-bfgs": lambda: Way((tgsr.LBFGS(LONG, stopping=NEVER),)),
    "l-bfgs-200": lambda: Way((tgsr.LBFGS(LONG, history=200, stopping=NEVER),)),
    "ss-broyden": lambda: Way((tgsr.SSBroyden(LONG, stopping=NEVER),)),
    "ss-bfgs": lambda: Way((tgsr.SSBroyden(LONG, update="bfgs", stopping=NEVER),)),
    "soap": lambda: Way((tgsr.SOAP(BUDGET // 100, stopping=NEVER),)),
    "adam": lambda: Way((tgsr.Adam(LONG, stopping=NEVER),)),
    "grow": lambda: Way((tgsr.LBFGS(LONG, stopping=NEVER),), tgsr.Grow()),
    "paper": lambda: Way((tgsr.PaperLBFGS(),)),
    "best": lambda: Way(preset=True),
}
BUDGETS = {"lm": 800}  # closures, by the first part of the name; the rest
BUDGET = 6000


def widths(network: str) -> tuple[int, ...]:
    """'6x12' is six layers of 12."""
    depth, width = map(int, network.split("x"))
    return (width,) * depth


def solved(task: str, network: str, optimiser: str, seed: int, share: float, budget: int) -> dict[str, Any]:
    """One run, step by step. What came before its main training counts, but for the source."""
    way = OPTIMISERS[optimiser]()
    profile = Profile("benchmark", widths(network), way.phases, "paper", share, closures=budget)
    case, source = tasks.task(task).case(seed, profile), None
    if way.from_source:
        start = tasks.task(task).case(seed, profile, "source")
        source = tgsr.solve(start.problem, network=start.network, training=start.training, seed=seed)
    began = time.perf_counter()
    if way.preset:
        training = tgsr.Training(points=case.training.points)
        result = tgsr.solve(case.problem, network=case.network, training=training, seed=seed)
    else:
        result = tgsr.transfer(
            case.problem, source, method=way.method, budget="paper", network=case.network, training=case.training,
            seed=seed,
        )  # fmt: skip
    wall = time.perf_counter() - began
    before = [stage for name, stage in result.stages.items() if name in ("narrow", "adaptation")]
    history = {k: np.concatenate([*(b[k] for b in before), result.history[k]]) for k in ("loss", "values")}
    for name in ("closures", "seconds"):
        first = sum(float(b[name][-1]) for b in before)
        history[name] = np.concatenate([*(b[name] for b in before), first + result.history[name]])
    truth = np.array([case.truth.unknowns[name] for name in result.unknowns])
    return {
        "outcome": result.outcome.name.lower(),
        "error": short(100.0 * np.mean(np.abs(history["values"] - truth) / np.abs(truth), axis=1)),
        "loss": short(history["loss"]),
        "closures": history["closures"].astype(int).tolist(),
        "seconds": short(history["seconds"]),
        "field": tgsr.evaluate(result, case.truth).fields["u"] if result.outcome.ok else None,
        "wall": wall,
        "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def short(values: np.ndarray) -> list[float]:
    """Seven digits; what is not finite counts as very large."""
    return [float(f"{v:.7g}") for v in np.nan_to_num(values, nan=1e300, posinf=1e300)]


def key(task: str, network: str, share: float, optimiser: str, seed: int) -> str:
    """The name of a run: its file has ',' for '/'."""
    return f"{task}/{network}/{share:g}/{optimiser}/{seed}"


def file_of(folder: Path, name: str) -> Path:
    """Where a run is kept."""
    return folder / f"{name.replace('/', ',')}.json"


def kept(folder: Path) -> dict[str, Any]:
    """Every run in a folder."""
    return {p.stem.replace(",", "/"): json.loads(p.read_text()) for p in sorted(folder.glob("*,*.json"))}


def arrival(values: list[float], bound: float) -> int | None:
    """The first step from which on the values stay at or below the bound."""
    above = np.flatnonzero(~(np.asarray(values) <= bound))
    first = 0 if not len(above) else int(above[-1]) + 1
    return first if first < len(values) else None


def table(runs: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per task, network, share and optimiser: medians over seeds, a run that never arrives counting as last."""
    groups: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for name, run in runs.items():
        *setting, optimiser, seed = name.split("/")
        groups.setdefault((*setting, seed), {})[optimiser] = run
    rows: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for (*setting, seed), found in groups.items():
        same_loss = [run for optimiser, run in found.items() if optimiser != "best"] or list(found.values())
        best = min(same_loss, key=lambda run: np.min(run["loss"]))
        lowest = int(np.argmin(best["loss"]))
        goal, least = 1.1 * best["error"][lowest], 1.01 * best["loss"][lowest]
        for optimiser, run in found.items():
            at, low = arrival(run["error"], goal), arrival(run["loss"], least)
            seen: dict[str, Any] = {"seed": int(seed), "long-run": goal / 1.1, "end": run["error"][-1]}
            seen["lost"] = run["loss"][-1] / best["loss"][lowest]
            for label, step in (("", at), ("loss ", low)):
                seen[label + "steps"] = np.inf if step is None else step + 1
                seen[label + "closures"] = np.inf if step is None else run["closures"][step]
                seen[label + "seconds"] = np.inf if step is None else run["seconds"][step]
            seen["ms per closure"] = 1e3 * run["seconds"][-1] / max(run["closures"][-1], 1)
            seen |= {name: run[name] if run[name] is not None else np.inf for name in ("field", "wall", "mebibytes")}
            rows.setdefault((*setting, optimiser), []).append(seen)
    out = []
    for name, seeds in sorted(rows.items()):
        median = {k: float(np.median([s[k] for s in seeds])) for k in seeds[0] if k != "seed"}
        arrived = sum(bool(np.isfinite(s["steps"])) for s in seeds)
        out.append({"run": "/".join(name), "seeds": sorted(s["seed"] for s in seeds), "arrived": arrived, **median})
    return out


COLUMNS = (
    "arrived", "steps", "closures", "seconds", "loss steps", "loss closures", "loss seconds", "lost", "end",
    "long-run", "field", "wall", "ms per closure", "mebibytes",
)  # fmt: skip


def show(rows: list[dict[str, Any]]) -> None:
    """The table on the screen."""
    print(f"{'task/network/share/optimiser':58}" + "".join(f"{c:>15}" for c in COLUMNS))
    for row in rows:
        cells = [f"{row['arrived']}/{len(row['seeds'])}", *(f"{row[c]:.4g}" for c in COLUMNS[1:])]
        print(f"{row['run']:58}" + "".join(f"{c:>15}" for c in cells))


def machine() -> dict[str, Any]:
    """What the seconds belong to."""
    from tgsr._provenance import environment

    return environment()


def main() -> None:
    """Run what is missing, then show all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", nargs="+", default=["boundary-layer", "allen-cahn-burgers"], choices=tasks.names())
    parser.add_argument("--network", nargs="+", default=["6x12", "4x32"])
    parser.add_argument("--optimiser", nargs="+", default=[o for o in OPTIMISERS if o != "adam"], choices=OPTIMISERS)
    parser.add_argument("--seed", nargs="+", type=int, default=TUNING, help=f"tuning {TUNING}, held out {HELD_OUT}")
    parser.add_argument("--share", type=float, default=0.2, help="of the paper's points (0.2 is laptop)")
    parser.add_argument("--budget", type=int, help="closures of a run")
    parser.add_argument("--out", type=Path, default=Path("benchmark-optimisers"))
    parser.add_argument("--show", action="store_true", help="run nothing")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.child:  # one task, network and optimiser
        (task,), (network,), (optimiser,) = given.task, given.network, given.optimiser
        for seed in given.seed:
            name = key(task, network, given.share, optimiser, seed)
            budget = given.budget or BUDGETS.get(optimiser.split("-")[0], BUDGET)
            run = solved(task, network, optimiser, seed, given.share, budget)
            write_bytes(file_of(given.out, name), json.dumps(run).encode())
            print(f"{name}: {run['error'][-1]:.4g} %, {run['wall']:.0f} s", flush=True)
        return
    for task in given.task if not given.show else ():
        for network in given.network:
            for optimiser in given.optimiser:
                names = {s: key(task, network, given.share, optimiser, s) for s in given.seed}
                missing = [s for s, name in names.items() if not file_of(given.out, name).exists()]
                if not missing:
                    continue
                flags = ["--child", "--task", task, "--network", network, "--optimiser", optimiser]
                flags += ["--share", str(given.share), "--out", str(given.out), "--seed", *map(str, missing)]
                flags += ["--budget", str(given.budget)] if given.budget else []
                subprocess.run([sys.executable, os.path.abspath(__file__), *flags], check=False)
    rows = table(kept(given.out))
    show(rows)
    plain = [{k: None if isinstance(v, float) and np.isinf(v) else v for k, v in row.items()} for row in rows]
    specs = {name: str(make()) for name, make in OPTIMISERS.items()}
    text = json.dumps({"machine": machine(), "optimisers": specs, "rows": plain}, indent=1)
    write_bytes(given.out / "table.json", text.encode())


if __name__ == "__main__":
    main()
