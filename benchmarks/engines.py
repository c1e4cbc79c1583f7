"""Loss and gradient by both engines against PyTorch, DeepXDE, jinns and PINA: the same work, the same gradient.

    python benchmarks/engines.py                   # everything, about twelve minutes on two quiet cores
    python benchmarks/engines.py --part rivals     # one part: the others stay as they are in the results
    python benchmarks/engines.py --quick           # does it all run? Two minutes, nothing is kept
    python benchmarks/engines.py --render          # tables, page and figure from the results, measuring nothing

The first call makes a virtual environment for each rival in `build/rivals`. Times are wall time of two threads, medians
over rounds in which everybody evaluates in turn, always the second of two evaluations. It writes the results, the
figure, and the section "Measured" of `docs/engine.md`; it returns 1 if a bar is missed. While other processes compute,
times mean nothing (OpenMP's threads wait for each other): the documentation is then left alone, unless `--busy` is
given.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import engines_report as report
import numpy as np
from engines_figure import publish
from rivals.competitors import COMPETITORS, OURS, in_turn, median, peak, prepared, running, write_works
from rivals.worker import THREADS

from tgsr._canary import cpu_name
from tgsr.storage import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "engines.json"
PRECISIONS = ("float64", "float32")  # the first gives the gradient that all are compared with
BUSY = 0.3  # cores that others may use


def gradients(there: dict[str, Any], folder: Path) -> dict[str, np.ndarray]:
    """What everybody computes: loss and gradient in the common order."""
    out = {}
    for name, process in there.items():
        process.ask(f"gradient {folder / name}.npy")
        out[name] = np.load(folder / f"{name}.npy")
    return out


def deviation(found: np.ndarray, reference: np.ndarray) -> float:
    """The largest difference of two gradients relative to the largest entry (the first number is the loss)."""
    return float(f"{np.abs(found[1:] - reference[1:]).max() / np.abs(reference[1:]).max():.1e}")


def measured(
    names: Iterable[str], case: str, points: int, rounds: int, *, rate: bool = False, twice: bool = True
) -> dict[str, Any]:
    """One case in both precisions: rounds, medians, deviations of the gradient, memory."""
    out: dict[str, Any] = {}
    reference = None
    with tempfile.TemporaryDirectory() as folder:
        for precision in PRECISIONS:
            with running(names, case, points, precision) as there:
                found = gradients(there, Path(folder))
                reference = found["jax"] if reference is None else reference
                if rate:
                    with peak(precision) as spinning:
                        times, fastest = with_peak(there, spinning, precision, rounds)
                else:
                    times, fastest = in_turn(there, rounds, twice), []
                out[precision] = {
                    "rounds": times,
                    "ms": {name: median(series) for name, series in times.items()},
                    "gradient": {name: deviation(one, reference) for name, one in found.items()},
                    "mebibytes": {name: round(process.mebibytes) for name, process in there.items()},
                }
                if fastest:
                    out[precision] |= {"peak rounds": fastest, "peak": median(fastest)}
                out["about"] = {name: process.about for name, process in there.items()}
            show(f"{case}, {points:,} points, {precision}", out[precision]["ms"])
    return out


def with_peak(there: dict[str, Any], spinning: Any, precision: str, rounds: int) -> tuple[dict[str, list[float]], list]:
    """Rounds in which the multiply-add rate is measured too."""
    times: dict[str, list[float]] = {name: [] for name in there}
    rates = []
    for _ in range(rounds):
        for name, series in in_turn(there, 1).items():
            times[name] += series
        if spinning is not None:
            rates.append(spinning.ask(precision)["gflops"])
    return times, rates


def show(what: str, ms: dict[str, float]) -> None:
    """Progress."""
    print(f"  {what}: " + ", ".join(f"{name} {value:.1f}" for name, value in ms.items()) + " ms", flush=True)


def rivals(quick: bool, rounds: int) -> dict[str, Any]:
    """Everybody on the work."""
    points = 1000 if quick else 10_000
    write_works([("work", points)])
    return {"points": points} | measured(COMPETITORS, "work", points, rounds, rate=True)


def cases(quick: bool, rounds: int) -> dict[str, Any]:
    """A narrower network, two fields, a third derivative."""
    points, names = 1000 if quick else 10_000, ("w64", "two", "kdv")
    write_works((name, points) for name in names)
    found = {name: measured(("pytorch", *OURS), name, points, rounds) for name in names}
    return {"points": points, "cases": found}


def scaling(quick: bool, rounds: int) -> dict[str, Any]:
    """From a thousand points to a million; PyTorch as far as its memory allows."""
    sizes = (1000, 4000) if quick else (1000, 10_000, 100_000, 1_000_000)
    write_works(("work", points) for points in sizes)
    out = {}
    for points in sizes:
        names = OURS if points > 100_000 else ("pytorch", *OURS)
        few = rounds if points <= 10_000 else min(rounds, 300_000 // points + 2)
        out[str(points)] = measured(names, "work", points, few, twice=points <= 10_000)
    return out


def memory(quick: bool, rounds: int) -> dict[str, Any]:
    """The peak of a process that evaluates the work twice, everybody alone."""
    sizes = (1000,) if quick else (10_000, 100_000, 1_000_000)
    write_works(("work", points) for points in sizes)
    out: dict[str, Any] = {}
    for precision in reversed(PRECISIONS):
        for points in sizes:
            for name in COMPETITORS:
                # In float64 the rivals would need more at 100,000 points than a common machine has.
                if name not in OURS and points > (100_000 if precision == "float32" else 10_000):
                    continue
                with running([name], "work", points, precision) as there:
                    peak_of_it = round(there[name].mebibytes)
                out.setdefault(precision, {}).setdefault(name, {})[str(points)] = peak_of_it
                print(f"  {name}, {points:,} points, {precision}: {peak_of_it} MiB", flush=True)
    return out


PARTS = {"rivals": rivals, "cases": cases, "scaling": scaling, "memory": memory}


def others(seconds: float = 2.0) -> float:
    """Cores that other processes use while this one waits."""

    def worked() -> float:
        ticks = [int(number) for number in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")

    before = worked()
    time.sleep(seconds)
    return round((worked() - before) / seconds, 2)


def machine() -> dict[str, Any]:
    """What the numbers belong to."""
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=False)
    return {
        "processor": cpu_name(),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "gibibytes": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "g++": compiler.stdout.strip(),
    }


def main() -> int:
    """Measure the parts asked for, keep them, and render what there is; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=list(PARTS), help="Measure only these.")
    parser.add_argument("--rounds", type=int, default=9, help="Rounds of each comparison.")
    parser.add_argument("--quick", action="store_true", help="Small sizes and one round; keeps nothing.")
    parser.add_argument("--busy", action="store_true", help="Write the documentation from a busy machine too.")
    parser.add_argument("--render", action="store_true", help="Measure nothing.")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help="Where the results are.")
    given = parser.parse_args()
    kept: dict[str, Any] = read_json(given.json) if given.json.exists() and not given.quick else {}
    if not given.render:
        here = machine()
        if kept and kept["machine"] != here:
            print("The results are of another machine or system: they are replaced.")
            kept = {}
        kept["machine"] = here
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
        prepared(COMPETITORS)
        for part in given.part:
            load, busy = [os.getloadavg()[0]], [others()]
            print(f"{part}: load {load[0]:.2f}, others use {busy[0]:.2f} cores", flush=True)
            found = PARTS[part](given.quick, 1 if given.quick else given.rounds)
            load.append(os.getloadavg()[0])
            busy.append(others())
            kept[part] = {"load": load, "others": busy, "found": found}
            if not given.quick:
                given.json.parent.mkdir(parents=True, exist_ok=True)
                write_json(given.json, kept)
    if given.quick:
        return 0
    if not kept:
        sys.exit("Nothing was measured yet.")
    print(report.section(kept))
    rows = report.bars(kept)
    for what, value, bar, met in rows:
        print(f"{what:<60} {value:>12}   bar {bar:>10}   {'met' if met else 'MISSED'}")
    disturbed = max(max(kept[part]["others"]) for part in PARTS if part in kept) > BUSY
    if disturbed and not given.busy:
        print("Other processes were busy: the documentation stays as it is (--busy writes it all the same).")
    elif given.json == RESULTS:
        publish(kept, ROOT / "docs")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
