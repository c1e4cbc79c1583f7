"""What a study adds to training: two workers against one, and a thousand runs that hardly train at all.

    python benchmarks/throughput.py                      # about ten minutes on two quiet cores
    python benchmarks/throughput.py --json benchmarks/results/throughput.json

Bars: two workers, each on one core, give 1.8 times the throughput of one (median of 5); a run costs under 50 ms beside
its training in a warm child; memory stays flat over 1,000 runs.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

WORKERS_BAR, OVERHEAD_BAR, FLAT_BAR = 1.8, 0.050, 1.1
PROBLEM = """
import numpy as np
import tgsr

t = np.linspace(0.0, 1.0, 20)
problem = tgsr.Problem(
    name="decay",
    coordinates={"t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[tgsr.Unknown("k", guess=0.5, positive=True)],
    residuals=[lambda u, k: u.t + k * u],
    conditions=[tgsr.Initial("u", 1.0)],
    data=[tgsr.Data({"t": t}, {"u": np.exp(-2.0 * t)}, noise=0.01)],
)
"""


def child(cores: str) -> None:
    """A worker's child that keeps to the first core which no other such child has."""
    allowed = sorted(os.sched_getaffinity(0))
    for core in allowed:
        mark = os.open(Path(cores) / f"core-{core}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process ends
        except BlockingIOError:
            os.close(mark)
            continue
        os.sched_setaffinity(0, {core})
        break
    from tgsr.study.run_one import serve

    serve()


@dataclass
class Measured:
    """The ends of runs, in seconds from the start, and what was in memory then."""

    wall: float = 0.0
    ends: list[float] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    child: list[int] = field(default_factory=list)
    coordinator: list[int] = field(default_factory=list)


def carried_out(folder: Path, name: str, seeds: range, steps: int, there: Any) -> Measured:
    """A study of one untransferred run a seed, `steps` of Adam each."""
    from tgsr.study import Study, StudyFolder
    from tgsr.study._campaign import Campaign
    from tgsr.study._check import checked
    from tgsr.study._kept import kept_record
    from tgsr.study._schedule import run_jobs
    from tgsr.study._trial import Problems
    from tgsr.study.run_one import memory

    optimiser = [{"name": "adam", "epochs": 1, "inner": steps, "stopping": {"patience": 1000}}]
    study = Study(
        name=name,
        tasks=[{"name": "decay", "file": str(folder / "decay.py")}],
        methods=["scratch"],
        seeds=list(seeds),
        network={"widths": [8, 8]},
        training={"preset": "best", "points": {"interior": 256}, "optimiser": optimiser},
    )
    kept = StudyFolder(folder / name)
    kept.ask(checked(study))
    found = Measured()

    def note(event: Any) -> None:
        if event.state == "submitted":
            return
        if event.state != "finished":
            sys.exit(f"{event.key}: {event.state}: {event.sentence}")
        found.ends.append(time.perf_counter() - began)
        found.training.append(kept_record(event.path).seconds)
        children = [slot.child for slot in there.own]  # one may be about to be replaced
        held = [child.memory for child in children if child is not None and child.memory]
        found.child.append(max(held, default=max(found.child, default=0)))
        found.coordinator.append(memory()["memory"])

    campaign = Campaign(kept, Problems(kept.path))
    began = time.perf_counter()
    run_jobs(campaign.jobs(), there, on_event=note)
    found.wall = time.perf_counter() - began
    return found


@contextmanager
def local(jobs: int, folder: Path) -> Iterator[Any]:
    """Local workers whose children each keep to a core."""
    from tgsr.study._child import run_directory
    from tgsr.study._executors import LocalWorkers

    command = (sys.executable, os.path.abspath(__file__), "--child", tempfile.mkdtemp(dir=folder))
    with LocalWorkers(jobs, partial(run_directory, threads=1, command=command)) as there:
        yield there


def two_against_one(folder: Path, runs: int, repeats: int, steps: int) -> dict[str, Any]:
    """Throughput of one and of two workers, in turn; the children are warm."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    first = 0
    with local(1, folder) as one, local(2, folder) as two:
        for jobs, there in ((1, one), (2, two)):  # each child compiles
            carried_out(folder, f"warm-{jobs}", range(4 * jobs), steps, there)
        for repeat in range(repeats):
            for jobs, there in ((1, one), (2, two)):
                seeds, first = range(first, first + runs), first + runs
                took = carried_out(folder, f"throughput-{repeat}-{jobs}", seeds, steps, there)
                rates[jobs].append(runs / took.wall)
                print(f"  {jobs} worker{'s' * (jobs > 1)}: {rates[jobs][-1]:.3f} runs a second", flush=True)
    ratios = [b / a for a, b in zip(rates[1], rates[2], strict=True)]
    return {
        "runs": runs,
        "runs a second, one worker": rates[1],
        "runs a second, two workers": rates[2],
        "ratios": ratios,
        "median ratio": statistics.median(ratios),
    }


def thousand(folder: Path, runs: int) -> dict[str, Any]:
    """What a run costs beside its training, and what stays in memory."""
    from tgsr.study._slot import RUNS

    with local(1, folder) as there:
        found = carried_out(folder, "trivial", range(runs), 5, there)
    gaps = [b - a for a, b in zip([0.0, *found.ends], found.ends, strict=False)]
    beside = [gap - training for gap, training in zip(gaps, found.training, strict=True)]
    warm = [cost for number, cost in enumerate(beside) if number % RUNS]  # the others waited for a new child
    tenth = max(1, runs // 10)
    return {
        "runs": runs,
        "wall": found.wall,
        "training": sum(found.training),
        "overhead, warm child, mean": statistics.fmean(warm),
        "overhead, warm child, median": statistics.median(warm),
        "overhead with new children, mean": (found.wall - sum(found.training)) / runs,
        "child, first and last tenth, most": [max(found.child[:tenth]), max(found.child[-tenth:])],
        "study, first and last tenth, most": [max(found.coordinator[:tenth]), max(found.coordinator[-tenth:])],
    }


def shown(two: dict[str, Any] | None, many: dict[str, Any] | None) -> list[tuple[str, str, str, bool]]:
    """Rows: what, measured, bar, met."""
    rows = []
    if two is not None:
        ratio = two["median ratio"]
        rows.append(("two workers against one (median)", f"{ratio:.2f} x", f"{WORKERS_BAR} x", ratio >= WORKERS_BAR))
    if many is not None:
        mean = many["overhead, warm child, mean"]
        rows.append(
            (
                f"overhead of a run, {many['runs']:,} runs (mean)",
                f"{1e3 * mean:.1f} ms",
                f"{1e3 * OVERHEAD_BAR:.0f} ms",
                mean < OVERHEAD_BAR,
            )
        )
        for who in ("child", "study"):
            before, after = many[f"{who}, first and last tenth, most"]
            growth = after / before
            measured = f"{before / 2**20:.0f} MiB, then {after / 2**20:.0f} MiB"
            rows.append((f"memory of the {who}", measured, f"{FLAT_BAR} x", growth <= FLAT_BAR))
    return rows


def main() -> int:
    """Measure, print a table, write JSON if asked; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="Times that one and two workers are measured.")
    parser.add_argument("--runs", type=int, default=16, help="Runs of each such measurement.")
    parser.add_argument("--steps", type=int, default=30_000, help="Optimiser steps of these runs.")
    parser.add_argument("--trivial", type=int, default=1000, help="Runs that hardly train.")
    parser.add_argument("--only", choices=["workers", "overhead"], help="Measure one of the two.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the numbers to this file.")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        child(given.child)
    from tgsr._canary import cpu_name
    from tgsr._provenance import package_version

    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{cpu_name()}, {cores} cores, load {load:.1f}")
    if load > 0.3:
        print("This machine is busy with other work: timings mean little.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "decay.py").write_text(PROBLEM)
        two = None if given.only == "overhead" else two_against_one(folder, given.runs, given.repeats, given.steps)
        many = None if given.only == "workers" else thousand(folder, given.trivial)
    rows = shown(two, many)
    for what, measured, bar, met in rows:
        print(f"{what:<42} {measured:>24}   bar {bar:>6}   {'met' if met else 'MISSED'}")
    if given.json is not None:
        about = {"processor": cpu_name(), "cores": cores, "load before": load}
        about |= {package: package_version(package) for package in ("tgsr", "jax", "jaxlib", "numpy")}
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps({"about": about, "workers": two, "overhead": many}, indent=1) + "\n")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
