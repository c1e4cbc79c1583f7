"""Carry out run directories: `python -m tgsr.study.run_one DIR [DIR ...]`, from a shell or a Slurm array.

With `--serve` it is the kept child of a worker: one JSON line in, `{"run": directory}`, one JSON line out, how it
ended. The child ends when its standard input closes, also in the midst of a run, so that it never outlives its parent.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tgsr._errors import TgsrError, plain
from tgsr.storage import _lock

CarryOut = Callable[[str], str]
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Exit codes: 0 all finished, 1 a run failed, 2 bad input, 3 broken installation, 130 interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m tgsr.study.run_one", description="Carry out run directories, one after the other."
    )
    parser.add_argument("directories", nargs="*", metavar="DIR", help="A run directory of a study.")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="Processor threads of a run (default 1).")
    parser.add_argument("--time-limit", type=float, metavar="SECONDS", help="Stop a run after so long.")
    parser.add_argument("--attempts", type=int, default=5, metavar="N", help="Starts of a run whose process dies.")
    parser.add_argument("--again", action="store_true", help="Forget earlier crashes and time limits first.")
    parser.add_argument("--ready", metavar="STUDY", help="Run nothing: name the directories that can be run now.")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.serve:
        serve()
    if given.ready is not None and not given.directories:
        return _ready(given.ready)
    if given.ready is not None or not given.directories or given.threads < 1 or given.attempts < 1:
        parser.error("give run directories and numbers from 1, or --ready and a study")
    # What a batch system sends before it kills is taken as Ctrl-C: the run saves a checkpoint and ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return _each(given)


def _ready(study: str) -> int:
    from tgsr.study._ready import ready_directories

    try:
        for path in ready_directories(study):
            sys.stdout.write(f"{path}\n")
        return 0
    except TgsrError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


def _each(given: argparse.Namespace) -> int:
    from tgsr.study._attempts import failure_of, forgive
    from tgsr.study._child import run_directory

    worst = 0
    for directory in given.directories:
        try:
            if given.again:
                forgive(directory)
            state = run_directory(
                directory, threads=given.threads, time_limit=given.time_limit, attempts=given.attempts
            )
            _say(directory, state, failure_of(directory) if state != "finished" else "")
            worst = max(worst, 0 if state == "finished" else 1)
        except KeyboardInterrupt:
            _say(directory, "interrupted", "What was saved stays; the same command goes on.")
            return INTERRUPTED
        except TgsrError as error:
            _say(directory, "not run", str(error))
            worst = max(worst, error.exit_code)
    return worst


def _say(directory: str, state: str, sentence: str) -> None:
    sys.stdout.write(f"{plain(directory)}: {state}{': ' if sentence else ''}{plain(sentence, 2000)}\n")
    sys.stdout.flush()


def serve(carry_out: CarryOut | None = None) -> NoReturn:
    """The child's side: say when ready, then carry out what is asked for until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # means something only in the midst of a run
    asked, answers = _private_pipes()
    child = _Serving(answers)
    threading.Thread(target=child.listen, args=(asked,), name="asked", daemon=True).start()
    child.work(carry_out or _trial())


def _trial() -> CarryOut:
    import tgsr._solve  # noqa: F401  # pyright: ignore[reportUnusedImport]  loads JAX: not as a part of the first run
    from tgsr.study._trial import carry_out

    return carry_out


def _private_pipes() -> tuple[int, int]:
    """Standard input and output of this process, out of the reach of user code: what it prints goes to stderr."""
    asked, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return asked, answers


class _Serving:
    """One run at a time in the main thread, while another thread watches standard input."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.run: str | None = None

    def listen(self, asked: int) -> None:
        """Read what is asked for. At the end of the input the parent is gone, and so is this process."""
        try:
            with os.fdopen(asked, "rb") as lines:
                for line in lines:
                    self.waiting.put(json.loads(line)["run"])
        finally:
            self._leave()

    def _leave(self) -> NoReturn:
        # No goodbyes: every write is whole or not there. A lock left behind would stop other hosts.
        try:
            if self.run is not None:
                _lock.drop(Path(self.run))
        finally:
            if os.getpgrp() == os.getpid():  # with all that user code has started
                os.killpg(0, signal.SIGKILL)
            os._exit(0)

    def work(self, carry_out: CarryOut) -> NoReturn:
        """Answer for ever."""
        self._answer(state="ready", **memory())
        while True:
            self.run = self.waiting.get()
            began = time.perf_counter()
            answer = _outcome(carry_out, self.run)
            self.run = None
            self._answer(**answer, seconds=time.perf_counter() - began, **memory())

    def _answer(self, **fields: Any) -> None:
        rest = memoryview(json.dumps(fields).encode() + b"\n")
        while rest:
            rest = rest[os.write(self.answers, rest) :]


def _outcome(carry_out: CarryOut, run: str) -> dict[str, Any]:
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return {"state": carry_out(run)}
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt as error:
        return {"state": "interrupted", "sentence": str(error)}
    except TgsrError as error:
        return {"state": "error", "kind": type(error).__name__, "sentence": str(error)}
    except MemoryError as error:
        return {"state": "error", "kind": "MemoryError", "sentence": plain(error)}
    except BaseException as error:  # user code may raise anything, and leave with sys.exit
        traceback.print_exc()
        return {"state": "error", "kind": "", "sentence": f"{type(error).__name__}: {plain(error)}"}


def memory() -> dict[str, int]:
    """Bytes that this process has in memory now, and at most had; zeros where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            found = dict(line.split(":", 1) for line in lines)
        return {name: int(found[key].split()[0]) * 1024 for name, key in (("memory", "VmRSS"), ("peak", "VmHWM"))}
    except (OSError, KeyError, ValueError):
        return {"memory": 0, "peak": 0}


if __name__ == "__main__":
    sys.exit(main())
