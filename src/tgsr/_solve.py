"""`solve` and `transfer`: from a problem to a result, on disk or not, resumed where a run of the same name stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tgsr._errors import InputError
from tgsr._estimates import estimates_of, likelihood_of, saved_network
from tgsr._jax import computing
from tgsr._provenance import differences, environment
from tgsr._random import stream
from tgsr._ranks import check_alike, first_rank_first, leads, meet, ranks, spread_over
from tgsr._request import Request, solve_request, transfer_request
from tgsr._result import Result
from tgsr._runs import fill, load
from tgsr.loss import Objective, build_objective, engine_label
from tgsr.methods import Method, Prepared, Setting, main_objective, resolved_budget
from tgsr.network._propagate import MLP
from tgsr.network._saved import SavedNetwork
from tgsr.problem import Problem
from tgsr.storage import RunDirectory, read_arrays, write_arrays
from tgsr.training import Keeper, Progress, Training, train, uncertainty


def solve(
    problem: Problem,
    *,
    network: MLP | None = None,
    training: Training | str | None = None,
    seed: int = 0,
    engine: str = "auto",
    devices: int = 1,
    out: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Recover the unknowns of `problem` from its data, from a random start.

    With `out` the run is kept in a directory under it: the same call goes on where it stopped, or returns the finished
    result. Everything random derives from `seed`. `engine` ("auto", "jax" or "native") is how losses and gradients are
    computed; a run goes on with the engine that it began with. The points are spread over so many `devices` of this
    process.
    """
    return _kept(solve_request(problem, network, training, seed, engine, devices), out, progress)


def transfer(
    problem: Problem,
    source: Result | SavedNetwork | str | Path | None,
    *,
    method: str | Method = "tgsr",
    network: MLP | None = None,
    training: Training | str | None = None,
    budget: str = "matched",
    seed: int = 0,
    engine: str = "auto",
    devices: int = 1,
    out: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Recover the unknowns of `problem`, starting from a network trained on a related one.

    Only weights and biases travel: unknowns start at the target's own first guess. The architecture is the source's.
    Budget "matched" gives every method the closures of adaptation and main training together; "paper" adds those of an
    adaptation on top of main training. Method "scratch", which is there to compare with, needs no source (None).
    """
    request = transfer_request(problem, source, method, network, training, budget, seed, engine, devices)
    return _kept(request, out, progress)


def _kept(request: Request, out: str | Path | None, progress: Callable[[Progress], None] | None) -> Result:
    """The result of a request, from its directory under `out` where it is finished there."""
    with first_rank_first():
        run = None if out is None else request.directory(out)
    if run is not None and run.status().state == "finished":
        return load(run.path)
    return carried_out(request, run, progress)


def carried_out(
    request: Request, run: RunDirectory | None = None, progress: Callable[[Progress], None] | None = None
) -> Result:
    """Compute a request, in its own directory if there is one, from where that stopped."""
    with computing(), nullcontext() if run is None or not leads() else run.lock():
        began, spread = time.perf_counter(), spread_over(request.devices)
        engine = request.engine if run is None else _engine_of(run, request.engine)
        own = build_objective(request.problem, request.network, request.training.points, engine=engine, spread=spread)
        here = environment("float64", engine_label(own.engine), request.devices * ranks(), ranks())
        check_alike(spread, here)
        if run is not None:
            _same_machine(run, here)
        result = _compute(request, own, run, here, progress, began)
        meet("every rank is done")
        if run is not None and leads():
            fill(run, result)
    return result


def _engine_of(run: RunDirectory, engine: str) -> str:
    """A half-done run that began without the native engine goes on without it, even where it could be had by now."""
    before = run.environment()
    begun_in_jax = before is not None and before.get("engine") == "jax" and run.load_checkpoint() is not None
    return "jax" if engine == "auto" and begun_in_jax else engine


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
    if leads():
        run.write_environment(here)


def _compute(
    request: Request, own: Objective, run: RunDirectory | None, here: dict[str, Any], progress, began: float
) -> Result:
    problem, method, seed = request.problem, request.method, request.seed
    objective = main_objective(method, own)
    fresh = objective.surrogate.initial(stream(seed, "init"))
    keeper = Keeper(run, writes=leads())
    # from the problem's own loss: the same phases and closures, whatever else a method minimises
    whole = resolved_budget(own, request.training, request.budget)
    setting = Setting(objective, fresh, request.source, seed, whole.training, whole.main_epochs, keeper, progress)
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
        warnings=tuple([*(note for d in problem.data for note in d.notes), *trained.notes, *warnings]),
        stages={name: dict(arrays) for name, arrays in prepared.stages.items()},
        method=method.name,
        closures=prepared.spent + trained.history.closures,
        seconds=seconds,
        seed=seed,
        provenance=here,
        inputs=request.inputs,
        path=None if run is None else run.path,
    )


PREPARED = "prepared.npz"


def remembered(run: RunDirectory | None, keeper: Keeper, prepared: Prepared) -> Prepared:
    """Keep what preparation found, so that a resumed run does not repeat it."""
    if run is not None and keeper.writes and prepared.failed is None:
        keeper.notes["prepared"] = write_arrays(run.file(PREPARED), prepared.arrays())
    return prepared


def recalled(run: RunDirectory | None, keeper: Keeper) -> Prepared | None:
    """What an interrupted run had prepared, if main training had begun."""
    saved = None if run is None else keeper.restore("main")
    if run is None or saved is None:
        return None
    keeper.notes["prepared"] = saved[1]["prepared"]
    return Prepared.from_arrays(read_arrays(run.path / PREPARED, digest=saved[1]["prepared"]))
