"""What a run is asked for, before anything is computed: problem, start, training, seed; and its identity."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError, plain
from tgsr._result import Result
from tgsr.loss import checked_engine
from tgsr.methods import BUDGETS, Method, as_method, needs_source
from tgsr.network._manifest import read_network
from tgsr.network._propagate import MLP
from tgsr.network._saved import SavedNetwork
from tgsr.problem import Problem
from tgsr.problem._names import nearest
from tgsr.storage import RunDirectory, npz_bytes
from tgsr.training import SMALL, Training, as_training

WIDTHS = {1: (20, 20), 2: (20, 20, 20), 3: (24, 24, 24)}  # hidden widths by number of coordinates


@dataclass(frozen=True, eq=False)
class Request:
    """What one run is asked for: everything that its result depends on."""

    problem: Problem
    source: SavedNetwork | None
    method: Method
    network: MLP
    training: Training
    budget: str | None
    seed: int
    engine: str = "auto"  # not part of the identity: the same numbers to rounding
    devices: int = 1  # nor this

    @cached_property
    def inputs(self) -> tuple[dict[str, Any], bytes, bytes]:
        """Spec, data and problem source: with the seed, what identifies the run."""
        spec = {
            "problem": self.problem.spec(),
            "network": {"widths": list(self.network.widths), "activation": self.network.activation},
            "training": self.training.spec(),
            "method": {"name": self.method.name, **plain_options(self.method)},
            "budget": self.budget,
            "source": None if self.source is None else self.source.fingerprint(),
        }
        return spec, data_bytes(self.problem), self.problem.source()

    def directory(self, root: str | Path) -> RunDirectory:
        """The run's directory under `root`, made if it is not there."""
        return RunDirectory.create(root, self.problem.name, *self.inputs, self.seed)


def solve_request(
    problem: Problem,
    network: MLP | None = None,
    training: Training | str | None = None,
    seed: int = 0,
    engine: str = "auto",
    devices: int = 1,
) -> Request:
    """What `solve` would run."""
    _checked(problem, network, seed)
    mlp, asked = network or default_network(problem), as_training(training)
    grows = not asked.phases and mlp.size(len(problem.domain.names), len(problem.fields)) > SMALL
    method = as_method("grow" if grows else "scratch")
    return Request(problem, None, method, mlp, asked, None, int(seed), checked_engine(engine), checked_devices(devices))


def default_network(problem: Problem) -> MLP:
    """The architecture of a problem whose user names none."""
    return MLP(WIDTHS[min(len(problem.domain.names), 3)])


def transfer_request(
    problem: Problem,
    source: Result | SavedNetwork | str | Path | None,
    method: str | Method = "tgsr",
    network: MLP | None = None,
    training: Training | str | None = None,
    budget: str = "matched",
    seed: int = 0,
    engine: str = "auto",
    devices: int = 1,
) -> Request:
    """What `transfer` would run."""
    chosen = as_method(method)
    saved = None if source is None and not needs_source(chosen) else as_source(source)
    _checked(problem, network, seed)
    mlp = network or (default_network(problem) if saved is None else MLP(saved.widths[1:-1], saved.activation))
    if budget not in BUDGETS:
        raise InputError(f"budget is {plain(budget, 40)!r}", field="budget", remedy=nearest(str(budget), BUDGETS))
    settled = as_training(training), budget, int(seed), checked_engine(engine), checked_devices(devices)
    return Request(problem, saved, chosen, mlp, *settled)


def as_source(source: Result | SavedNetwork | str | Path | None) -> SavedNetwork:
    """The network of a result, a run directory or a network folder."""
    if isinstance(source, Result):
        return source.network
    if isinstance(source, SavedNetwork):
        return source
    if isinstance(source, (str, Path)):
        return read_network(source)
    raise InputError(f"{plain(source, 40)!r} is no source", field="source", remedy="Give a result or the path of a run")


def _checked(problem: object, network: object, seed: object) -> None:
    if not isinstance(problem, Problem):
        raise InputError(f"{plain(problem, 60)!r} is no problem", field="problem", remedy="Give a tgsr.Problem")
    if network is not None and not isinstance(network, MLP):
        raise InputError(f"{plain(network, 60)!r} is no network", field="network", remedy="Write tgsr.MLP((32, 32))")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
        raise InputError(f"the seed is {plain(seed, 40)!r}", field="seed", remedy="Give a whole number from 0")


def checked_devices(devices: object) -> int:
    """A number of devices, or a refusal."""
    if isinstance(devices, bool) or not isinstance(devices, (int, np.integer)) or devices < 1:
        raise InputError(f"devices is {plain(devices, 40)!r}", field="devices", remedy="Give a whole number from 1")
    return int(devices)


def data_bytes(problem: Problem) -> bytes:
    """The measurements of a problem as one file."""
    arrays: dict[str, np.ndarray] = {}
    for i, data in enumerate(problem.data):
        arrays |= {f"{i}.point.{name}": column for name, column in data.points.items()}
        arrays |= {f"{i}.value.{name}": column for name, column in data.values.items()}
    return npz_bytes(arrays)


def plain_options(method: Method) -> dict[str, Any]:
    """The options of a method as plain values, for a run's identity."""

    def plain_value(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return {k: plain_value(v) for k, v in vars(value).items()}
        return [plain_value(v) for v in value] if isinstance(value, (tuple, list)) else value

    return {k: plain_value(v) for k, v in vars(method).items()}
