"""One training by several processes of this machine: start them, watch them, start them again when one is lost.

The processes hold one another up, so the loss of one ends them all; they go on from the run's last checkpoint.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tgsr._errors import TgsrError, plain
from tgsr._ranks import LOST

RELAUNCHES = 3
TICK = 0.05  # seconds between looks
FAREWELL = 20.0  # seconds that the others have to end once one has ended by itself
LOOPBACK = "127.0.0.1"


class RanksLostError(TgsrError):
    """Processes were lost again and again."""

    exit_code = 1


def supervise(arguments: Sequence[str], count: int, say: Callable[[str], None]) -> int:
    """Run `tgsr` with `arguments` as `count` ranks; the exit code of the first that ended by itself."""
    how = ""
    for attempt in range(RELAUNCHES + 1):
        code, how = _attempt(arguments, count)
        if code is not None:
            return code
        if attempt < RELAUNCHES:
            say(f"{how}; all {count} start again from the last checkpoint ({attempt + 1} of {RELAUNCHES} times)")
    raise RanksLostError(f"{how}, for the {RELAUNCHES + 1}th time", remedy="The same command goes on where it stopped")


def _attempt(arguments: Sequence[str], count: int) -> tuple[int | None, str]:
    """(exit code, ""), or (None, how a rank was lost)."""
    coordinator = f"{LOOPBACK}:{_free_port()}"
    with tempfile.TemporaryFile() as words, _forwarding() as started:
        for rank in range(count):
            started.append(_start(arguments, coordinator, rank, count, None if rank == 0 else words))
        try:
            return _watch(started, words)
        finally:
            for process in started:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _start(arguments: Sequence[str], coordinator: str, rank: int, count: int, words) -> subprocess.Popen[bytes]:
    own = {"TGSR_COORDINATOR": coordinator, "TGSR_RANK": str(rank), "TGSR_RANKS": str(count)}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tgsr", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=None if rank == 0 else subprocess.DEVNULL,
        stderr=words,
        process_group=0,  # Ctrl-C at a terminal reaches only the supervisor, which passes it on
        env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ, **own},
    )


def _watch(started: Sequence[subprocess.Popen[bytes]], words) -> tuple[int | None, str]:
    deadline = None
    while True:
        codes = [process.poll() for process in started]
        for rank, code in enumerate(codes):
            if code is not None and code < 0:
                return None, f"Process {rank} of the training was lost ({_signal_name(-code)})"
        ended = [(rank, code) for rank, code in enumerate(codes) if code not in (None, LOST)]
        if None not in codes and not ended:
            return None, "The processes of the training lost one another"
        if None not in codes or (deadline is not None and time.monotonic() > deadline):
            rank, code = next(((r, c) for r, c in ended if c), ended[0] if ended else (0, None))
            if code is None:
                return None, "The processes of the training lost one another"
            if rank and code:
                _repeat(words)
            return code, ""
        if deadline is None and any(code is not None for code in codes):
            deadline = time.monotonic() + FAREWELL
        time.sleep(TICK)


def _repeat(words) -> None:
    """What a process that nobody sees said last."""
    words.seek(max(0, words.tell() - 4096))
    lines = words.read().decode("utf-8", "replace").strip().splitlines()
    if lines:
        sys.stderr.write(plain(lines[-1], 1000) + "\n")


@contextmanager
def _forwarding() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Pass Ctrl-C on to the processes in the list: they save, and end. SIGTERM ends this one, and so them."""
    started: list[subprocess.Popen[bytes]] = []

    def interrupt(number: int, frame: object) -> None:
        for process in started:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)

    def terminate(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = [signal.signal(signal.SIGINT, interrupt), signal.signal(signal.SIGTERM, terminate)]
    try:
        yield started
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
