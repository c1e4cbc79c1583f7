"""Help is instant: it loads nothing numerical. Every command is a module, and `python -m tgsr` is `tgsr`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from cli_cases import COMMAND, ENVIRONMENT, Invoke

from tgsr import __version__
from tgsr.cli._group import COMMANDS

PROBE = """
import json, sys, time
from tgsr.cli import main
try:
    main(sys.argv[1:])
except SystemExit as leave:
    assert leave.code == 0
heavy = [name for name in "jax numpy scipy equinox optax rich matplotlib".split() if name in sys.modules]
print(json.dumps([heavy, time.process_time()]), file=sys.stderr)
"""


@pytest.mark.parametrize("args", [["--help"], ["solve", "--help"]], ids=" ".join)
def test_help_loads_nothing_heavy_and_starts_at_once(args: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *args], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    heavy, seconds = json.loads(done.stderr)
    assert "Usage:" in done.stdout
    assert heavy == []
    assert seconds < 0.5


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(invoke: Invoke, name: str) -> None:
    answer = invoke(name, "--help")
    assert answer.exit_code == 0
    assert f"tgsr {name}" in answer.stdout
    assert "--traceback" in answer.stdout
    assert name in invoke("--help").stdout


def test_without_a_command_there_is_help(invoke: Invoke) -> None:
    answer = invoke()
    assert answer.exit_code == 0
    assert "solve" in answer.stdout


def test_as_a_module() -> None:
    done = subprocess.run([*COMMAND, "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == f"tgsr {__version__}\n"
