"""A study that trains for real, as small as one can be, and what came of it."""

from __future__ import annotations

from pathlib import Path

from tgsr.storage import RunDirectory

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
TRAINING = (
    '{ preset = "best", points = { interior = 32 }, optimiser = '
    "[{ name = 'adam', epochs = EPOCHS, inner = 200, stopping = { patience = 1000 } }] }"
)
STUDY = f"""
name = "layer"
methods = ["full"]
seeds = SEEDS
attempts = 1000
network = [6]
training = {TRAINING}
[[task]]
name = "decay"
file = "decay.py"
source = {{ file = "decay.py", training = {TRAINING} }}
"""


def write_real_study(file: Path, seeds: int = 2, epochs: int = 2) -> Path:
    """A study of twice as many runs as seeds."""
    file.with_name("decay.py").write_text(PROBLEM)
    file.write_text(STUDY.replace("SEEDS", str(seeds)).replace("EPOCHS", str(epochs)))
    return file


def runs_of(folder: Path) -> list[RunDirectory]:
    """All run directories of a study."""
    return [RunDirectory(path.parent) for path in sorted(folder.glob("[rs]*s/*/spec.json"))]


def finished_runs(folder: Path) -> int:
    """How many runs of a study are finished and verify."""
    return sum(run.status().state == "finished" for run in runs_of(folder))


def weights_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of the final weights, by run."""
    results = {run.id: run.result() for run in runs_of(folder)}
    return {name: result.get("weights_sha256") or result["weights"] for name, result in results.items()}
