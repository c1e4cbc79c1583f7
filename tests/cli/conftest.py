"""One finished run for the whole session, and a way to call commands in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))  # for `cli_cases`

from cli_cases import DECAY, SMALL, Finished, Invoke

from tgsr.cli import main


@pytest.fixture(scope="session")
def invoke() -> Invoke:
    """Call `tgsr` with these arguments in this process."""

    def call(*args: object) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args])

    return call


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Finished:
    folder = tmp_path_factory.mktemp("decay")
    file = folder / "decay.py"
    file.write_text(DECAY)
    answer = invoke("solve", file, *SMALL, "--out", folder / "runs", "--json")
    assert answer.exit_code == 0, answer.output
    record = json.loads(answer.stdout)
    return Finished(file, Path(record["run"]), record)
