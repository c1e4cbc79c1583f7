"""tgsr: recover the parameters of a differential equation from measurements, with a related network to start from.

Importing this package loads neither JAX nor SciPy: every name is looked up when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "tgsr._closure": ("Closure", "closure"),
    "tgsr._compare": ("MethodComparison", "compare"),
    "tgsr._errors": ("InputError", "InstallationError", "StorageError", "TgsrError"),
    "tgsr._outcomes": ("Outcome",),
    "tgsr._result": ("Comparison", "Estimate", "Result"),
    "tgsr._runs": ("load",),
    "tgsr._solve": ("solve", "transfer"),
    "tgsr._truth": ("Errors", "Truth", "evaluate"),
    "tgsr._verdict": ("Verdict",),
    "tgsr.network._propagate": ("MLP",),
    "tgsr.network._import": ("import_network",),
    "tgsr.network._pytorch": ("convert_pytorch",),
    "tgsr.network._saved": ("SavedNetwork",),
    "tgsr.problem": (
        "Condition", "Data", "Dirichlet", "Field", "Gaussian", "Initial", "Laplace", "Neumann", "Periodic", "Points",
        "Problem", "Robin", "StudentT", "Unknown", "UnknownField", "read_data",
    ),
    "tgsr.training": (
        "Adam", "LBFGS", "LevenbergMarquardt", "MatrixFreeLM", "PaperLBFGS", "Progress", "Refinement", "SOAP",
        "SSBroyden", "Start", "Stopping", "Training",
    ),
    "tgsr.report._explain": ("Explanation", "explain"),
    "tgsr.study._read": ("read_study",),
    "tgsr.study._results": ("StudyResults",),
    "tgsr.study._spec": ("Study",),
    "tgsr.methods": (
        "AdaptOnly", "BitFit", "Full", "Grow", "L2SP", "Lightweight", "LinearHead", "LoRA", "MagnitudeDecay", "Method",
        "Partial", "Prepared", "RandomDecay", "RandomReset", "ScoreShuffled", "Scratch", "Setting", "Sfp", "Tgsr",
        "TgsrOptions", "TlGpinn", "copied", "gate_check",
    ),
}  # fmt: skip
_HOME = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted([*_HOME, "__version__"])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tgsr' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
