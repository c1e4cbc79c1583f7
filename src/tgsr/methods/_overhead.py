"""What the stages before main training cost. Clocks and memory are only looked at: nothing is decided by them."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

PEAK_UNIT = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB elsewhere


class Overhead:
    """Seconds, closures and the process's peak memory (MiB) after each stage, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.closures: dict[str, int] = {}
        self.peak: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str, closures: int = 0) -> Iterator[None]:
        """Measure what happens inside."""
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began
        self.closures[name] = closures
        self.peak[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PEAK_UNIT

    def arrays(self) -> dict[str, np.ndarray]:
        """One entry per stage in each array."""
        return {
            "stage": np.array(list(self.seconds)),
            "seconds": np.array(list(self.seconds.values())),
            "closures": np.array([self.closures[name] for name in self.seconds]),
            "peak_mib": np.array(list(self.peak.values())),
        }
