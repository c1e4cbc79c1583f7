"""Run directories that do what their spec says, and the child that does it: `run_one` with another `carry_out`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tgsr.storage import RunDirectory, write_arrays
from tgsr.study.run_one import serve

COMMAND = (sys.executable, __file__)


def new_study(folder: Path) -> Path:
    """The folder of a study, with nothing in it."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text('name = "tiny"\n')
    return folder


def new_run(study: Path, do: str = "finish", seed: int = 0, **more: Any) -> Path:
    """A run directory that will `do` something."""
    return RunDirectory.create(study / "runs", "tiny", {"do": do, **more}, b"data", b"source", seed).path


def starts_of(run: Path) -> list[dict[str, Any]]:
    """The starts that the run itself has noted."""
    return [line for line in RunDirectory(run).read_log() if line["event"] == "start"]


def carry_out(path: str) -> str:
    run = RunDirectory.open(path)
    with run.lock():
        run.log("start", pid=os.getpid(), threads=os.environ.get("NPROC"), leader=os.getpgrp() == os.getpid())
        return getattr(Does, run.spec["do"])(run, **{k: v for k, v in run.spec.items() if k != "do"})


STEPS = 4


def trained(seed: int, steps: int = STEPS, weights: np.ndarray | None = None) -> np.ndarray:
    """What `Does.train` arrives at."""
    weights = np.random.default_rng(seed).normal(size=50) if weights is None else weights
    for _ in range(steps):
        weights = np.tanh(1.5 * weights + 0.1)
    return weights


class Does:
    """What a run may do."""

    @staticmethod
    def finish(run: RunDirectory, seconds: float = 0.0) -> str:
        time.sleep(seconds)
        run.commit({"answer": run.seed})
        return "finished"

    @staticmethod
    def fail(run: RunDirectory) -> str:
        run.record_failure("diverged", "The loss grew.", {})
        return "failed"

    @staticmethod
    def die(run: RunDirectory, times: int = 10**9, how: str = "kill") -> str:
        if len(starts_of(run.path)) <= times:
            sys.stderr.write("the last words\n")
            os.kill(os.getpid(), signal.SIGKILL) if how == "kill" else os._exit(7)
        return Does.finish(run)

    @staticmethod
    def die_after(run: RunDirectory) -> str:
        Does.finish(run)
        os._exit(7)

    @staticmethod
    def raising(run: RunDirectory, what: str = "ValueError") -> str:
        raise {"ValueError": ValueError, "SystemExit": SystemExit, "MemoryError": MemoryError}[what]("not like this")

    @staticmethod
    def talk(run: RunDirectory) -> str:
        os.write(1, b'{"state": "failed", "seconds": 0, "memory": 0}\n' * 5000)
        sys.stdout.write("x" * 10**6)
        assert sys.stdin.read() == ""
        return Does.finish(run)

    @staticmethod
    def hang(run: RunDirectory, helper: bool = False) -> str:
        if helper:
            pid = os.posix_spawn("/bin/sleep", ["sleep", "100"], dict(os.environ))
            run.log("helper", pid=pid)
        time.sleep(100)
        return "finished"

    @staticmethod
    def train(run: RunDirectory, pause: float = 0.05) -> str:
        """As training does: from the last checkpoint on, to weights that depend on the seed alone."""
        saved = run.load_checkpoint()
        done = 0 if saved is None else saved.meta["done"]
        weights = trained(run.seed, 0) if saved is None else saved.arrays["weights"]
        for step in range(done, STEPS):
            weights = trained(run.seed, 1, weights)
            time.sleep(pause)
            run.save_checkpoint({"weights": weights}, {"done": step + 1})
        run.commit({"weights": write_arrays(run.file("weights.npz"), {"weights": weights})})
        return "finished"

    @staticmethod
    def count(run: RunDirectory, deaf: bool = False) -> str:
        """Until there is a file `go` in the study's folder."""
        saved = run.load_checkpoint()
        number = 0 if saved is None else saved.meta["number"]
        try:
            while not (run.path.parent.parent / "go").exists():
                number += 1
                time.sleep(0.02)
        except KeyboardInterrupt:
            if deaf:
                time.sleep(100)
            run.save_checkpoint({}, {"number": number})
            raise
        run.commit({"number": number})
        return "finished"


if __name__ == "__main__":
    serve(carry_out)
