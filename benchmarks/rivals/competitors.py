"""Who takes part: each library in an environment of its own, as a process that evaluates when it is told to."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rivals.worker import THREADS

from tgsr.storage import read_bytes, write_bytes

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "rivals"
WORKS = BUILD / "works"


@dataclass(frozen=True)
class Competitor:
    """A worker script, the choice it is given, and the environment (None: this one) it runs in."""

    label: str
    script: str
    environment: str | None = None
    chosen: str = ""


COMPETITORS = {
    "pytorch": Competitor("PyTorch, nested autograd", "in_pytorch.py", "pytorch"),
    "pina": Competitor("PINA", "in_pina.py", "pina"),
    "deepxde-pytorch": Competitor("DeepXDE on PyTorch", "in_deepxde.py", "deepxde", "pytorch"),
    "deepxde-jax": Competitor("DeepXDE on JAX", "in_deepxde.py", "deepxde", "jax"),
    "jinns": Competitor("jinns", "in_jinns.py", "jinns"),
    "jax": Competitor("tgsr, `jax`", "in_tgsr.py", None, "jax"),
    "native": Competitor("tgsr, `native`", "in_tgsr.py", None, "native"),
}
OURS = ("jax", "native")


def prepared(names: Iterable[str]) -> None:
    """Make the virtual environments that are missing or whose requirements changed."""
    for name in sorted({COMPETITORS[one].environment or "" for one in names} - {""}):
        wanted, mark = read_bytes(HERE / f"{name}.txt"), BUILD / name / "requirements.txt"
        if mark.exists() and read_bytes(mark) == wanted:
            continue
        print(f"Making the environment of {name} in {BUILD / name}", flush=True)
        venv.create(BUILD / name, with_pip=True, clear=True)
        command = [python(name), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*command, "-r", str(HERE / f"{name}.txt")]).returncode:
            sys.exit(f"The requirements of {name} could not be installed: see above.")
        write_bytes(mark, wanted)


def python(environment: str | None) -> str:
    """The interpreter of an environment."""
    return sys.executable if environment is None else str(BUILD / environment / "bin" / "python")


def work_file(case: str, points: int) -> Path:
    """Where a case lies once it is written."""
    return WORKS / f"{case}-{points}.npz"


def write_works(wanted: Iterable[tuple[str, int]]) -> None:
    """Draw the points and weights of all cases: everybody reads them."""
    WORKS.mkdir(parents=True, exist_ok=True)
    specs = [f"{case}:{points}:{work_file(case, points)}" for case, points in wanted]
    subprocess.run([sys.executable, str(HERE / "in_tgsr.py"), "--write", *specs], check=True)


class Process:
    """A running competitor."""

    def __init__(self, name: str, command: list[str], alone: bool) -> None:
        BUILD.mkdir(parents=True, exist_ok=True)
        self.name, self.log = name, BUILD / f"{name}.log"
        setting = {k: v for k, v in os.environ.items() if not alone or k != "PYTHONPATH"}
        setting |= {"OMP_NUM_THREADS": str(THREADS), "MKL_NUM_THREADS": str(THREADS)}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=setting
            )
        self.mebibytes, self.about = 0.0, {}

    def answer(self) -> dict[str, Any]:
        """The next line it says."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            self.close()
            said = self.log.read_text(errors="replace").strip().splitlines()[-12:]
            raise RuntimeError("\n".join([f"{self.name} stopped with status {self.process.returncode}:", *said]))
        return json.loads(line)

    def ask(self, command: str = "time") -> dict[str, Any]:
        """One command and its answer."""
        assert self.process.stdin
        with suppress(BrokenPipeError):  # `answer` says why
            print(command, file=self.process.stdin, flush=True)
        found = self.answer()
        self.mebibytes = max(self.mebibytes, found.get("mebibytes", 0.0))
        return found

    def close(self) -> None:
        """No more commands: it ends."""
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


@contextmanager
def running(names: Iterable[str], case: str, points: int, precision: str) -> Iterator[dict[str, Process]]:
    """Competitors on one work, started one after the other, evaluated twice; `about` is what each said of itself."""
    there: dict[str, Process] = {}
    try:
        for name in names:
            who = COMPETITORS[name]
            command = [python(who.environment), str(HERE / who.script), str(work_file(case, points))]
            command += ["--precision", precision, *(["--with", who.chosen] if who.chosen else [])]
            there[name] = Process(name, command, who.environment is not None)
            there[name].about = there[name].answer()
            there[name].ask()
            there[name].ask()
        yield there
    finally:
        for process in there.values():
            process.close()


def in_turn(there: Mapping[str, Process], rounds: int, twice: bool = True) -> dict[str, list[float]]:
    """Milliseconds of each round; `twice` evaluates again, so that nobody pays for the cache another one left."""
    found: dict[str, list[float]] = {name: [] for name in there}
    for _ in range(rounds):
        for name, process in there.items():
            if twice:
                process.ask()
            found[name].append(round(1e3 * process.ask()["seconds"], 2))
    return found


@contextmanager
def peak(precision: str) -> Iterator[Process | None]:
    """The multiply-add rate of two threads, or None without a compiler."""
    program = BUILD / "peak"
    flags = ["-O3", "-march=native", "-pthread"]
    try:
        subprocess.run(["g++", *flags, str(HERE / "peak.cc"), "-o", str(program)], check=True)
    except (OSError, subprocess.CalledProcessError):
        print("g++ is missing or failed: no flop rates.", flush=True)
        yield None
        return
    process = Process("peak", [str(program)], alone=True)
    try:
        process.ask(precision)
        yield process
    finally:
        process.close()


def median(values: list[float]) -> float:
    """The median of what rounds gave."""
    return round(statistics.median(values), 2)
