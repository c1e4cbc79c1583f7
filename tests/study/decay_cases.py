"""A problem that trains in a blink, as a user's files, and the study of it that several tests read."""

from __future__ import annotations

from pathlib import Path

from tgsr.study import Study

PROBLEM = """
import numpy as np
import tgsr

def decay(u, k):
    return u.t + k * u

t = np.linspace(0.05, 1.0, 20)
problem = tgsr.Problem(
    "{name}", coordinates={{"t": (0.0, 1.0)}}, fields=["u"],
    unknowns=[tgsr.Unknown("k", guess={guess}, positive=True)], residuals=[decay],
    conditions=[tgsr.Initial("u", 1.0, time="t")],
    data=[tgsr.Data({{"t": t}}, {{"u": np.exp(-{k} * t)}}, noise=0.01)],
)
truth = tgsr.Truth({{"k": {k}}}, lambda t: np.exp(-{k} * t))
"""
TARGET = PROBLEM.format(name="decay", guess=0.7, k=1.0)
WARM = PROBLEM.format(name="warm", guess=0.9, k=1.5)
BLINK = {"optimiser": {"name": "l-bfgs", "epochs": 2, "inner": 5, "history": 5}, "points": {"interior": 20}}


def write_files(folder: Path, target: str = TARGET, warm: str = WARM) -> None:
    """The two files of the problem."""
    (folder / "decay.py").write_text(target)
    (folder / "warm.py").write_text(warm)


def decay_study(folder: Path, **changes: object) -> Study:
    """Scratch and full on two seeds, from the files in `folder`."""
    asked = {
        "name": "decay-study",
        "tasks": [{"name": "decay", "file": str(folder / "decay.py"), "source": str(folder / "warm.py")}],
        "methods": ["scratch", "full"],
        "seeds": 2,
        "network": [4],
        "training": BLINK,
        "source": {"training": BLINK},
    }
    return Study(**{**asked, **changes})  # type: ignore[arg-type]
