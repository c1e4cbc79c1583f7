"""`solve` and `transfer`: from a problem to a result, on disk or not, resumed where a run of the same name stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError, plain
from tgsr._estimates import estimates_of, likelihood_of, saved_network
from tgsr._jax import computing
from tgsr._provenance import differences, environment
from tgsr._random import stream
from tgsr._result import Result
from tgsr._runs import fill, load
from tgsr.loss import build_objective
from tgsr.methods import BUDGETS, Method, Prepared, Setting, as_method, main_objective, resolved_budget
from tgsr.network._manifest import read_network
from tgsr.network._propagate import MLP
from tgsr.network._saved import SavedNetwork
from tgsr.problem import Problem
from tgsr.problem._names import nearest
from tgsr.storage import RunDirectory, npz_bytes, read_arrays, write_arrays
from tgsr.training import Keeper, Progress, Training, as_training, train, uncertainty

WIDTHS = {1: (20, 20), 2: (20, 20, 20), 3: (24, 24, 24)}  # hidden widths by number of coordinates


def solve(
    problem: Problem,
    *,
    network: MLP | None = None,
    training: Training | str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Recover the unknowns of `problem` from its data, from a random start.

    With `out` the run is kept in a directory under it: the same call goes on where it stopped, or returns the finished
    result. Everything random derives from `seed`.
    """
    return _run(problem, None, as_method("scratch"), network, training, None, seed, out, progress)


def transfer(
    problem: Problem,
    source: Result | SavedNetwork | str | Path,
    *,
    method: str | Method = "tgsr",
    network: MLP | None = None,
    training: Training | str | None = None,
    budget: str = "matched",
    seed: int = 0,
    out: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Recover the unknowns of `problem`, starting from a network trained on a related one.

    Only weights and biases travel: unknowns start at the target's own first guess. The architecture is the source's.
    Budget "matched" gives every method the closures of adaptation and main training together; "paper" adds those of an
    adaptation on top of main training.
    """
    saved = as_source(source)
    chosen = as_method(method)
    if network is None:
        network = MLP(saved.widths[1:-1], saved.activation)
    if budget not in BUDGETS:
        raise InputError(f"budget is {plain(budget, 40)!r}", field="budget", remedy=nearest(str(budget), BUDGETS))
    return _run(problem, saved, chosen, network, training, budget, seed, out, progress)


def as_source(source: Result | SavedNetwork | str | Path) -> SavedNetwork:
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


def _run(problem: Problem, source, method: Method, network, training, budget, seed: int, out, progress) -> Result:
    _checked(problem, network, seed)
    plan = as_training(training)
    mlp = network or MLP(WIDTHS[min(len(problem.domain.names), 3)])
    spec = {
        "problem": problem.spec(),
        "network": {"widths": list(mlp.widths), "activation": mlp.activation},
        "training": plan.spec(),
        "method": {"name": method.name, **plain_options(method)},
        "budget": budget,
        "source": None if source is None else source.fingerprint(),
    }
    inputs = (spec, data_bytes(problem), problem.source())
    run = None if out is None else RunDirectory.create(out, problem.name, *inputs, seed)
    if run is not None and run.status().state == "finished":
        return load(run.path)
    with computing(), nullcontext() if run is None else run.lock():
        here = environment()
        if run is not None:
            _same_machine(run, here)
        result = _compute(problem, mlp, plan, source, method, budget, int(seed), inputs, run, here, progress)
        if run is not None:
            fill(run, result)
    return result


def _same_machine(run: RunDirectory, here: dict[str, Any]) -> None:
    """Refuse to go on with a half-done run where its bits could not be the same; record where a new one runs."""
    before = run.environment()
    if before is not None and run.load_checkpoint() is not None:
        changed = differences(before, here)
        if changed:
            raise InputError(
                f"this run began in another environment: {'; '.join(changed)}",
                file=run.path,
                remedy="Resume it there, or start it anew in another folder",
            )
    run.write_environment(here)


def data_bytes(problem: Problem) -> bytes:
    """The measurements of a problem as one file."""
    arrays: dict[str, np.ndarray] = {}
    for i, data in enumerate(problem.data):
        arrays |= {f"{i}.point.{name}": column for name, column in data.points.items()}
        arrays |= {f"{i}.value.{name}": column for name, column in data.values.items()}
    return npz_bytes(arrays)


def _compute(problem, mlp, plan, source, method, budget, seed, inputs, run, here, progress) -> Result:
    began = time.perf_counter()
    own = build_objective(problem, mlp, plan.points)
    objective = main_objective(method, own)
    fresh = objective.surrogate.initial(stream(seed, "init"))
    keeper = Keeper(run)
    whole = resolved_budget(own, plan, budget)  # the same phases and closures, whatever else a method minimises
    setting = Setting(objective, fresh, source, seed, whole.training, whole.main_epochs, keeper, progress)
    prepared = recalled(run, keeper) or remembered(run, keeper, method.prepare(setting))
    left = None if whole.closures is None else whole.closures - prepared.spent
    left = 0 if prepared.failed else left  # nothing to train from
    trained = train(objective, prepared.start, whole.training, seed, keeper=keeper, progress=progress, budget=left)
    outcome = prepared.failed or trained.outcome
    known = None
    if outcome.ok:
        known = uncertainty(objective, trained.theta, trained.batch, trained.controls, trained.sigma)
    seconds = time.perf_counter() - began
    networks = [saved_network(problem, net, layers) for net, layers in zip(
        objective.surrogate.nets, objective.surrogate.layers(trained.theta), strict=True)]  # fmt: skip
    estimates, correlation, warnings = estimates_of(objective, trained, known)
    if outcome.ok and estimates and known is None:
        warnings.append("The network is too large for dense standard errors; none are given.")
    return Result(
        name=problem.name,
        unknowns=estimates,
        outcome=outcome,
        sentence=prepared.sentence or outcome.sentence,
        history=trained.history,
        network=networks[0],
        unknown_fields={
            net.fields[0]: (saved, net.positive)
            for net, saved in zip(objective.surrogate.nets[1:], networks[1:], strict=True)
        },
        correlation=correlation,
        likelihood=likelihood_of(objective, trained),
        warnings=tuple([*(note for d in problem.data for note in d.notes), *warnings]),
        stages={name: dict(arrays) for name, arrays in prepared.stages.items()},
        method=method.name,
        closures=prepared.spent + trained.history.closures,
        seconds=seconds,
        seed=seed,
        provenance=here,
        inputs=inputs,
        path=None if run is None else run.path,
    )


def plain_options(method: Method) -> dict[str, Any]:
    """The options of a method as plain values, for a run's identity."""

    def plain_value(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return {k: plain_value(v) for k, v in vars(value).items()}
        return [plain_value(v) for v in value] if isinstance(value, (tuple, list)) else value

    return {k: plain_value(v) for k, v in vars(method).items()}


PREPARED = "prepared.npz"


def remembered(run: RunDirectory | None, keeper: Keeper, prepared: Prepared) -> Prepared:
    """Keep what preparation found, so that a resumed run does not repeat it."""
    if run is not None and prepared.failed is None:
        keeper.notes["prepared"] = write_arrays(run.file(PREPARED), prepared.arrays())
    return prepared


def recalled(run: RunDirectory | None, keeper: Keeper) -> Prepared | None:
    """What an interrupted run had prepared, if main training had begun."""
    saved = None if run is None else keeper.restore("main")
    if run is None or saved is None:
        return None
    keeper.notes["prepared"] = saved[1]["prepared"]
    return Prepared.from_arrays(read_arrays(run.path / PREPARED, digest=saved[1]["prepared"]))
