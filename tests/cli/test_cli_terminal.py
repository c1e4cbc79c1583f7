"""On a terminal: progress is shown; Ctrl-C saves, and the same command ends with the same bits."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

from cli_cases import DECAY, ENVIRONMENT

LONG = ["solve", "decay.py", "--widths", "6", "--budget", "400"]
# Its second epoch waits until Ctrl-C was pressed: the run would converge in the third, and then rightly finish.
WAITING = """
import sys, time
from pathlib import Path
from tgsr.cli import main
from tgsr.training import _loop
quick, begun = _loop._Loop._epoch, []
def waiting(*args):
    begun.append(args)
    time.sleep(0.4)
    while len(begun) > 1 and not Path("pressed").exists():
        time.sleep(0.1)
    return quick(*args)
_loop._Loop._epoch = waiting
main(sys.argv[1:], prog_name="tgsr")
"""
TWO = """
import sys
from tgsr.cli import main
for args in (sys.argv[1:], [*sys.argv[1:], "--out", "undisturbed"]):
    try:
        main([*args, "--json"])
    except SystemExit as leave:
        assert leave.code == 0, leave.code
    print("----")
"""


def _read_until(descriptor: int, word: str | None, limit: float = 120) -> str:
    """What the terminal shows, until `word` appears or the other side closes."""
    text, end = "", time.monotonic() + limit
    while time.monotonic() < end and (word is None or word not in text):
        try:
            text += os.read(descriptor, 65536).decode(errors="replace")
        except OSError:  # EIO: closed
            break
    return text


def test_progress_interrupt_and_resume() -> None:
    Path("decay.py").write_text(DECAY)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", WAITING, *LONG],
        env={**ENVIRONMENT, "COLUMNS": "120", "TERM": "xterm"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = _read_until(ours, "loss ") + _read_until(ours, "k = ")
    child.send_signal(signal.SIGINT)
    Path("pressed").touch()
    seen += _read_until(ours, None)
    os.close(ours)
    assert child.wait(60) == 130, seen
    assert "of 400 closures" in seen
    assert "levenberg-marquardt  epoch " in seen
    assert "k = 1" in seen
    assert "Interrupted" in seen
    assert f"To go on: tgsr {' '.join(LONG)}" in seen
    (run,) = Path("runs").iterdir()
    assert not (run / "result.json").exists()

    done = subprocess.run(
        [sys.executable, "-c", TWO, *LONG], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no terminal: quiet
    resumed, undisturbed = (json.loads(part) for part in done.stdout.split("----")[:2])
    assert Path(resumed["run"]).name == run.name
    assert resumed["weights_sha256"] == undisturbed["weights_sha256"]
    assert resumed["closures"] == undisturbed["closures"]
