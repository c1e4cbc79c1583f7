"""What every competitor shares: the work as arrays, and a process that evaluates once for every line it is sent."""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TextIO

import numpy as np

THREADS = 2
WEIGHTS = {"pde": 10.0, "boundary": 10.0, "initial": 10.0, "data": 50.0}  # of the mean squares, in case "work"


@dataclass(frozen=True)
class Work:
    """One problem: points by term, readings, (weight, bias) of each layer with weights (inputs, outputs), unknowns."""

    case: str
    precision: str
    arrays: dict[str, np.ndarray]

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The given start of the network."""
        depth = sum(name.startswith("weight") for name in self.arrays)
        return [(self[f"weight {number}"], self[f"bias {number}"]) for number in range(depth)]

    @property
    def sizes(self) -> list[int]:
        """Neurons of every layer, from coordinates to fields."""
        return [len(self.layers[0][0]), *(len(bias) for _, bias in self.layers)]


def arguments(*choices: str) -> tuple[Work, str]:
    """The work on the command line and which of the `choices` (engines, backends) computes it.

    To be called before libraries are imported that talk on the standard output: from here on they talk on the standard
    error, and the answers alone go to the pipe.
    """
    Desk.pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    parser = argparse.ArgumentParser()
    parser.add_argument("work", help="arrays that `in_tgsr.py --write` made")
    parser.add_argument("--precision", choices=("float32", "float64"), default="float64")
    parser.add_argument("--with", dest="chosen", choices=choices, default=choices[0] if choices else "")
    given = parser.parse_args()
    return read(given.work, given.precision), given.chosen


def read(path: str, precision: str) -> Work:
    """The work in a file, in one precision."""
    with np.load(path) as stored:
        arrays = {name: np.ascontiguousarray(stored[name], precision) for name in stored.files if name != "case"}
        return Work(str(stored["case"]), precision, arrays)


def flat(layers: Sequence[tuple[Any, Any]], unknowns: Any) -> np.ndarray:
    """Slopes in the common order: each layer's weights (inputs, outputs) and biases, then the unknowns."""
    parts = [np.ravel(np.asarray(part, np.float64)) for pair in layers for part in pair]
    return np.concatenate([*parts, np.ravel(np.asarray(unknowns, np.float64))])


class Desk:
    """Commands in, answers out: "time" evaluates once, "gradient FILE" also keeps (loss, gradient) there."""

    pipe: TextIO = sys.stdout

    def __init__(self, packages: Sequence[str], result: Callable[[Any], tuple[float, np.ndarray]], **about: str):
        self.result = result
        self._say({package: version(package) for package in packages} | about)

    def _say(self, what: dict[str, Any]) -> None:
        print(json.dumps(what), file=self.pipe, flush=True)

    def asked(self) -> bool:
        """Wait for a command and start the clock; False when there are no more."""
        self._command = sys.stdin.readline().strip()
        self._began = time.perf_counter()
        return bool(self._command)

    def answer(self, evaluated: Any) -> None:
        """Stop the clock."""
        seconds = time.perf_counter() - self._began
        if self._command.startswith("gradient "):
            loss, gradient = self.result(evaluated)
            np.save(self._command.removeprefix("gradient "), np.concatenate([[loss], gradient]))
        mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        self._say({"seconds": seconds, "mebibytes": mebibytes})


def serve(
    evaluate: Callable[[], Any], result: Callable[[Any], tuple[float, np.ndarray]], *packages: str, **about: str
) -> None:
    """Evaluate on command; `evaluate` returns when all is done, `result` makes (loss, gradient) of what it returned."""
    desk = Desk(packages, result, **about)
    while desk.asked():
        desk.answer(evaluate())
