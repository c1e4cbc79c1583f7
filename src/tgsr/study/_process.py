"""A kept child process that carries out one run directory after the other, and the pipes to it.

Its environment is set before it loads JAX; it is started anew (never forked), in a process group of its own, so that
Ctrl-C at a terminal reaches only the parent, which then stops its children one by one.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tgsr._errors import InstallationError, plain

COMMAND = (sys.executable, "-P", "-m", "tgsr.study.run_one", "--serve")
LAST_WORDS = 8192  # bytes of standard error that are kept
_TICK = 1.0  # seconds between looks at whether it lives: a pipe alone does not tell while a grandchild holds it


class ChildEndedError(Exception):
    """The child is gone in the midst of a run; the text says how it ended."""


class Child:
    """One child process, started on construction. Only one thread may use it, but any may `interrupt` or `kill` it."""

    def __init__(self, threads: int, command: tuple[str, ...] = COMMAND) -> None:
        one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, process_group=0,
                env={**os.environ, **one, "NPROC": str(threads), "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        except OSError as error:
            raise InstallationError(f"the worker process could not be started ({error})") from error
        self._asks: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        self._errors: Any = self._process.stderr
        self._selector = selectors.DefaultSelector()
        for stream in (self._answers, self._errors):
            self._selector.register(stream, selectors.EVENT_READ)
        self._buffer, self._words = b"", b""
        self.runs, self.memory, self.ready = 0, 0, False

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until it has loaded everything. One that cannot is a broken installation, unless it was killed."""
        if self.ready:
            return
        answer = self._answer(None)
        if answer is None:
            code = self._process.wait()
            if code < 0:
                raise ChildEndedError(self._ending())
            raise InstallationError(
                f"the worker process could not start: {self.last_words() or f'exit code {code}'}",
                remedy="Run `tgsr doctor`",
            )
        self.ready, self.memory = True, answer["memory"]

    def ask(self, run: str, time_limit: float | None = None) -> Mapping[str, Any]:
        """Let it carry out a run; its answer. Raises TimeoutError, ChildEndedError; either way the child is gone."""
        self.wait_ready()
        self._words = b""
        with suppress(BrokenPipeError):  # it is gone: reading tells
            self._asks.write(json.dumps({"run": run}).encode() + b"\n")
        try:
            answer = self._answer(time_limit)
        except TimeoutError:
            self.kill()
            self._process.wait()  # gone before anybody asks who holds the run
            raise
        if answer is None:
            self._process.wait()
            raise ChildEndedError(self._ending())
        self.runs, self.memory = self.runs + 1, answer["memory"]
        return answer

    def interrupt(self) -> None:
        """Ask it to save a checkpoint and end its run, as Ctrl-C does."""
        if self.alive:
            self._process.send_signal(signal.SIGINT)

    def settle(self, seconds: float) -> None:
        """End it in the midst of a run, which has so long to save a checkpoint."""
        try:
            self.interrupt()
            with suppress(TimeoutError):
                self._answer(seconds)
        finally:
            self.kill()
            self._process.wait()

    def kill(self) -> None:
        """End it at once, with what its run has started."""
        with suppress(ProcessLookupError):
            if self.alive:
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it in order: it goes when its input closes."""
        with suppress(OSError):
            self._asks.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        self._selector.close()
        self._answers.close()
        self._errors.close()

    def last_words(self) -> str:
        """The last line that it wrote on standard error."""
        lines = self._words.decode("utf-8", "replace").strip().splitlines()
        return plain(lines[-1]) if lines else ""

    def _ending(self) -> str:
        code = self._process.returncode
        try:
            how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        except ValueError:
            how = f"was killed (signal {-code})"
        words = self.last_words()
        return f"its process {how}" + (f"; its last words: {words}" if words else "")

    def _answer(self, limit: float | None) -> dict[str, Any] | None:
        """The next line from it; None when it has ended."""
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            line, end, rest = self._buffer.partition(b"\n")
            if end:
                self._buffer = rest
                return json.loads(line)
            left = _TICK if deadline is None else min(_TICK, max(0.0, deadline - time.monotonic()))
            ended = not self.alive  # looked at before reading: what it wrote is then all there
            if not self._read(0.0 if ended else left) and ended:
                return None
            if deadline is not None and time.monotonic() >= deadline and b"\n" not in self._buffer:
                raise TimeoutError

    def _read(self, patience: float) -> bool:
        """Take in what it says; whether there was anything."""
        found = False
        for key, _ in self._selector.select(patience):
            chunk = os.read(key.fd, 2**16)
            found |= bool(chunk)
            if not chunk:
                self._selector.unregister(key.fileobj)
                if key.fileobj is self._answers:  # only its end closes this one: do not wait for the next tick
                    with suppress(subprocess.TimeoutExpired):
                        self._process.wait(_TICK)
            elif key.fileobj is self._answers:
                self._buffer += chunk
            else:
                self._words = (self._words + chunk)[-LAST_WORDS:]
        return found
