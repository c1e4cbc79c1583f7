"""Adam and quasi-Newton of every kind: known minima, PyTorch's iterates, and one small problem."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import tgsr.problem as tp
from tgsr._jax import computing
from tgsr.loss import Controls, build_objective
from tgsr.network._propagate import MLP
from tgsr.optimiser._adam import adam
from tgsr.optimiser._lbfgs import lbfgs
from tgsr.optimiser._linesearch import Point, wolfe
from tgsr.optimiser._paper import paper_lbfgs, paper_rates
from tgsr.optimiser._program import CONVERGED, NON_FINITE, RUNNING, STUCK, Program, Trace
from tgsr.optimiser._self_scaled import self_scaled


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


class Batch(NamedTuple):
    """Which function, its data, its steepness or remainder, and the sign of the gradient that is reported."""

    which: jax.Array
    data: jax.Array
    number: jax.Array
    sign: jax.Array


SIZE = 8
CURVATURES = np.geomspace(1.0, 30.0, SIZE)


def rosenbrock(theta: jax.Array, shift: jax.Array, steep: jax.Array | float) -> jax.Array:
    x = theta + shift
    return jnp.sum(steep * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def bowl(theta: jax.Array, centre: jax.Array, remainder: jax.Array | float) -> jax.Array:
    return jnp.sum(CURVATURES * (theta - centre) ** 2) / 2.0 + remainder


def barrier(theta: jax.Array, target: jax.Array, _: jax.Array) -> jax.Array:
    return jnp.sum(50.0 * (theta - target) ** 2 - jnp.log(1.0 - theta))


def tanh_net(theta: jax.Array, data: jax.Array) -> jax.Array:
    output = jnp.tanh(data[0][:, None] * theta[:6] + theta[6:12]) @ theta[12:18] + theta[18]
    return jnp.mean((output - data[1]) ** 2)


FUNCTIONS = (rosenbrock, bowl, barrier)
LOOK = jax.jit(jax.vmap(jax.value_and_grad(rosenbrock), (0, None, None)))


def case(function: Callable[..., Any], data: Any = 0.0, number: float = 0.0, sign: float = 1.0) -> Batch:
    full = np.broadcast_to(data, (SIZE,)).astype(float)
    return Batch(*map(jnp.asarray, (FUNCTIONS.index(function), full, np.float64(number), np.float64(sign))))


class Analytic:
    """The least that an optimiser needs of an objective. Counts evaluations; a trace shows all of theta."""

    parts = ("all",)
    surrogate = SimpleNamespace(raw=lambda theta: theta, size=SIZE, network_size=SIZE)
    evaluations = 0

    def value(self, theta: jax.Array, batch: Any) -> jax.Array:
        if not isinstance(batch, Batch):
            return tanh_net(theta, batch)
        return jax.lax.switch(batch.which, FUNCTIONS, theta, batch.data, batch.number)

    def closure(self, theta: jax.Array, batch: Any, controls: Controls) -> Any:
        loss, gradient = jax.value_and_grad(self.value)(theta, batch)
        jax.debug.callback(self.count, loss)
        sign = batch.sign if isinstance(batch, Batch) else 1.0
        return (controls.weights[0] * loss, loss[None]), controls.weights[0] * sign * controls.mask * gradient

    def count(self, loss: Any) -> None:
        self.evaluations += 1


OBJECTIVE = Analytic()
STEPS = 20


MADE: dict[str, Program] = {}  # compiled once for all tests


def program(name: str) -> Program:
    objective: Any = OBJECTIVE
    makers: dict[str, Callable[[], Program]] = {
        "adam": lambda: adam(objective, STEPS, 0.7),
        "lbfgs": lambda: lbfgs(objective, STEPS, 10, first_step=0.6),
        "lbfgs, trial 0.1": lambda: lbfgs(objective, STEPS, 10, first_step=0.1, trial_step=0.1),
        "paper": lambda: paper_lbfgs(objective, STEPS),
        "paper, history 7": lambda: paper_lbfgs(objective, STEPS, 7),
        "ssbroyden": lambda: self_scaled(objective, STEPS),
        "ssbfgs": lambda: self_scaled(objective, STEPS, "bfgs"),
    }
    if name not in MADE:
        MADE[name] = makers[name]()
    return MADE[name]


NAMES, RATE = ("adam", "lbfgs", "paper", "ssbroyden"), {"adam": 0.02, "paper": 0.2}


def controls_for(size: int, mask: np.ndarray | None = None, weight: float = 1.0) -> Controls:
    zero, trained = jnp.zeros(size), jnp.asarray(np.ones(size) if mask is None else mask)
    return Controls(jnp.full(1, weight, dtype=float), zero[:0], trained, zero, zero)


def run(name: str, theta: np.ndarray, batches: list[Any], rates: Any = None) -> tuple[Any, list[Trace], int]:
    """(state, traces, evaluations) of one epoch per batch."""
    begun, controls, traces = OBJECTIVE.evaluations, controls_for(theta.size), []
    state = program(name).start(jnp.asarray(theta), batches[0], controls)
    rates = [RATE.get(name, 0.0)] * len(batches) if rates is None else rates
    for batch, rate in zip(batches, rates, strict=True):
        state, trace = program(name).epoch(state, batch, controls, jnp.full(1, rate, dtype=float))
        traces.append(jax.tree.map(np.asarray, trace))
    jax.effects_barrier()
    return state, traces, OBJECTIVE.evaluations - begun


# ---- what holds for all


@pytest.mark.parametrize("name", NAMES)
def test_one_program_exact_counts_bit_identical_resume(name: str, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(3)
    theta, shifts, mask = rng.uniform(-0.5, 0.5, SIZE), 0.1 * rng.normal(size=(6, SIZE)), np.ones(SIZE)
    theta[4], mask[[2, 4]] = -0.0, 0.0

    def epoch(number: int, state: Any) -> tuple[Any, Trace]:  # weights, rates and points change each time
        batch, rate = case(rosenbrock, shifts[number], 10.0), RATE.get(name, 0.0) / (1 + number)
        return own.epoch(state, batch, controls_for(SIZE, mask, 1.0 + number), jnp.full(1, rate, dtype=float))

    MADE.pop(name, None)  # the compilation is counted here
    own, half, closures, begun = program(name), None, 0, OBJECTIVE.evaluations
    state = own.start(jnp.asarray(theta), case(rosenbrock), controls_for(SIZE, mask))
    with jax.log_compiles():
        for number in range(6):
            half = jax.tree.map(np.asarray, state) if number == 3 else half
            state, trace = epoch(number, state)
            closures += int(trace.closures.sum())
            assert trace.status in (RUNNING, CONVERGED)
            assert trace.loss.shape == (STEPS,)
            assert trace.parts.shape == (STEPS, 1)
            np.testing.assert_array_equal(trace.loss, (1.0 + number) * trace.parts[:, 0])
        jax.effects_barrier()
        assert closures == OBJECTIVE.evaluations - begun > 3 * STEPS
        again = jax.tree.map(jnp.asarray, half)
        for number in range(3, 6):
            again, _ = epoch(number, again)
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(again), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert sum("ompiling jit(epoch)" in message for message in caplog.messages) == 1

    final = np.asarray(own.theta(state))
    assert final[mask == 0].tobytes() == theta[mask == 0].tobytes()  # -0.0, too
    assert np.all(final[mask == 1] != theta[mask == 1])


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_that_is_not_finite_is_said_and_changes_nothing(name: str) -> None:
    theta = np.full(SIZE, 2.0)
    state, (trace,), evaluations = run(name, theta, [case(barrier)])
    assert trace.status == NON_FINITE
    assert trace.closures.tolist() == [1] + [0] * (STEPS - 1)
    assert evaluations == 1
    np.testing.assert_array_equal(state.theta, theta)


# ---- with a line search


@pytest.mark.parametrize("name", ["lbfgs", "ssbroyden", "ssbfgs"])
def test_the_end_of_a_curved_valley_is_reached(name: str) -> None:
    state, traces, _ = run(name, np.tile([-1.2, 1.0], 4), [case(rosenbrock, -0.3, 100.0)] * 9)
    np.testing.assert_allclose(state.theta, 1.3, atol=1e-10)
    assert np.all(np.diff(np.concatenate([t.loss for t in traces])) <= 0)
    done = next(number for number, t in enumerate(traces) if t.status == CONVERGED)
    assert sum(t.closures.sum() for t in traces[:done]) < (1.4 if name == "lbfgs" else 1.8) * STEPS * done
    idle = np.flatnonzero(traces[done].closures == 0)
    assert idle.size
    assert np.all(traces[done].loss[idle] == traces[done].loss[idle[0] - 1])  # the rest repeats the last loss


@pytest.mark.parametrize("name", ["lbfgs", "lbfgs, trial 0.1", "ssbroyden"])
def test_every_step_meets_the_wolfe_conditions(name: str) -> None:
    theta = np.tile([-1.2, 1.0], 4)
    _, traces, evaluations = run(name, theta, [case(rosenbrock, 0.0, 100.0)] * 2)
    assert sum(t.closures.sum() for t in traces) == evaluations
    path = np.concatenate([theta[None], *(t.raw for t in traces)])
    losses = np.concatenate([t.loss for t in traces])
    values, gradients = LOOK(path, jnp.zeros(SIZE), 100.0)
    np.testing.assert_allclose(losses, values[1:], rtol=1e-10)
    for k, step in enumerate(np.diff(path, axis=0)):  # along the step itself, whose length is then one
        begin, end = (Point(float(t), values[k + t], gradients[k + t] @ step) for t in (0, 1))  # type: ignore[arg-type]
        assert all(wolfe(begin, end)), k
    assert losses[-1] < 0.1 * values[0]


def test_the_first_trials_are_those_asked_for() -> None:
    theta, gradient = np.full(SIZE, 0.2), 0.2 * CURVATURES
    for name, first in (("lbfgs", 0.6), ("lbfgs, trial 0.1", 0.1)):
        _, (trace,), _ = run(name, theta, [case(bowl)])
        assert trace.closures[0] == 2  # the opening of the epoch and the first trial, which is good
        np.testing.assert_allclose(theta - trace.raw[0], first * gradient / gradient.sum(), rtol=1e-12)
        assert min(trace.closures[1:4]) == (1 if name == "lbfgs" else 2)  # a tenth is too short


def test_no_pair_of_lbfgs_spans_two_batches() -> None:
    rng = np.random.default_rng(5)
    state, _, _ = run("lbfgs", np.full(SIZE, 0.3), [case(bowl, rng.normal(size=SIZE)) for _ in range(2)])
    s, y = np.split(np.asarray(state.memory.pairs), 2)
    np.testing.assert_allclose(y, s * CURVATURES, rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("name", ["lbfgs", "ssbroyden"])
def test_a_direction_that_lies_is_forgotten_and_then_the_run_is_stuck(name: str) -> None:
    batches = [case(bowl, 0.0), case(bowl, 1.0, sign=-1.0)]
    state, (honest, lying), _ = run(name, np.full(SIZE, 0.3), batches)
    assert lying.status == STUCK
    assert np.flatnonzero(lying.closures).tolist() == [0, 1]  # with its memory, then from the gradient
    np.testing.assert_array_equal(state.theta, honest.raw[-1])
    assert np.all(lying.loss == lying.loss[0])


@pytest.mark.parametrize("name", ["lbfgs", "ssbroyden"])
def test_a_search_steps_back_from_where_the_loss_is_not_a_number(name: str) -> None:
    theta = np.full(SIZE, 0.995)  # the wall at 1 is nearer than the first step is long
    _, traces, _ = run(name, theta, [case(barrier, 20.0)] * 2)
    x = traces[-1].raw[-1]
    np.testing.assert_allclose(100.0 * (x - 20.0) + 1.0 / (1.0 - x), 0.0, atol=3e-3)  # of 2000
    assert np.all(np.isfinite(traces[0].loss))
    assert traces[0].closures[0] > 2


@pytest.mark.parametrize("name", ["lbfgs", "ssbroyden"])
def test_a_fit_with_a_remainder_ends_at_rounding(name: str) -> None:
    wanted = np.random.default_rng(6).normal(size=SIZE)
    state, traces, _ = run(name, np.zeros(SIZE), [case(bowl, wanted, 3.0)] * 3)
    np.testing.assert_allclose(state.theta, wanted, atol=1e-7)
    assert CONVERGED in [int(t.status) for t in traces]
    assert sum(t.closures.sum() for t in traces) < 4 * STEPS


@pytest.mark.parametrize("update", ["broyden", "bfgs"])
def test_held_unknowns_stay_and_are_then_let_go(update: str) -> None:
    objective: Any = Analytic()
    objective.surrogate = SimpleNamespace(raw=lambda theta: theta, size=SIZE, network_size=SIZE - 2)
    own, controls = self_scaled(objective, STEPS, update), controls_for(SIZE)
    wanted, theta = np.random.default_rng(7).normal(size=SIZE), np.zeros(SIZE)
    batch = case(bowl, wanted)
    state = own.start(jnp.asarray(theta), batch, controls)
    for held in (True, True, True, False, False, False):
        state, trace = own.epoch(state, batch, controls, jnp.full(1, held, dtype=float))
        end = np.asarray(state.theta)
        if held:  # the rest is done soon, and that is no reason to stop
            assert end[-2:].tobytes() == theta[-2:].tobytes()
            assert trace.status == RUNNING
    np.testing.assert_allclose(end, wanted, atol=1e-7)
    assert trace.status == CONVERGED


# ---- the paper's L-BFGS


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "data" / "torch_lbfgs.npz") as file:
        return dict(file)


@pytest.mark.parametrize("name", ["rosenbrock", "ring", "stops"])
def test_the_paper_preset_is_pytorch_step_by_step(name: str) -> None:
    torch = {key.split(".")[1]: array for key, array in reference().items() if key.startswith(f"{name}.")}
    batches = [jnp.asarray(d) if name == "ring" else case(rosenbrock, d, 10.0) for d in torch["data"]]
    kind = "paper, history 7" if name == "ring" else "paper"
    state, traces, evaluations = run(kind, torch["theta"], batches, torch["rates"])
    np.testing.assert_array_equal([t.closures.sum() for t in traces], torch["closures"])
    assert evaluations == torch["closures"].sum()
    ran = np.isfinite(torch["losses"])
    losses = np.array([t.loss for t in traces])
    np.testing.assert_allclose(losses[ran], torch["losses"][ran], rtol=1e-9, atol=1e-18)
    raw = np.concatenate([t.raw[:n:5] for t, n in zip(traces, torch["closures"], strict=True)])
    np.testing.assert_allclose(raw, torch["iterates"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(state.theta, torch["final"], rtol=1e-9, atol=1e-12)
    assert min(int(state.memory.kept), int(torch["history"])) == torch["kept"]


def test_the_rates_are_those_of_pytorch() -> None:
    np.testing.assert_allclose(paper_rates(3), reference()["rosenbrock.rates"], rtol=1e-14)
    np.testing.assert_allclose(paper_rates(6, 1.0, 0.9), reference()["stops.rates"], rtol=1e-14)


def test_a_vanished_gradient_ends_the_paper_preset() -> None:
    _, (trace,), _ = run("paper", np.zeros(SIZE), [case(bowl)])
    assert trace.status == CONVERGED
    assert trace.closures.tolist() == [1] + [0] * (STEPS - 1)


# ---- Adam


def test_adam_is_optax_adam_at_a_rate_that_changes_by_epoch() -> None:
    rng, theta, rates = np.random.default_rng(4), np.full(SIZE, 0.4), [0.1, 0.05, 0.01]
    batches = [case(bowl, rng.normal(size=SIZE)) for _ in rates]
    state, traces, _ = run("adam", theta, batches, rates)
    x, losses, rule = jnp.asarray(theta), [], optax.adam(1.0)
    moments = rule.init(x)
    step = jax.jit(lambda x, m, data: (bowl(x, data, 0.0), rule.update(CURVATURES * (x - data), m)))
    for batch, rate in zip(batches, rates, strict=True):
        for _ in range(STEPS):
            loss, (update, moments) = step(x, moments, batch.data)
            losses.append(loss)
            x = x + rate * update
    np.testing.assert_allclose(state.theta, x, rtol=1e-11)
    np.testing.assert_allclose(np.concatenate([t.loss for t in traces]), losses, rtol=1e-11)
    assert [t.closures.sum() for t in traces] == [STEPS] * 3


def test_adam_without_a_rate_for_the_epoch_takes_its_own() -> None:
    theta, controls = np.full(SIZE, 0.4), controls_for(SIZE)
    given, _, _ = run("adam", theta, [case(bowl)], [0.7])
    begin = program("adam").start(jnp.asarray(theta), case(bowl), controls)
    own, _ = program("adam").epoch(begin, case(bowl), controls, jnp.zeros(0))
    np.testing.assert_array_equal(own.theta, given.theta)


# ---- a real problem


def test_lbfgs_finds_the_constant_of_a_small_problem_while_points_are_redrawn() -> None:
    x = np.linspace(0.0, 1.0, 12)
    problem = tp.Problem(
        coordinates={"x": (0.0, 1.0)},
        fields=["u"],
        unknowns=[tp.Unknown("k", guess=1.0, positive=True)],
        residuals=[lambda u, k: u.x + k * u],
        data=[tp.Data({"x": x}, {"u": np.exp(-2.0 * x)})],
    )
    objective = build_objective(problem, MLP((6,)), tp.Points(interior=16))
    theta = np.array(objective.surrogate.initial(np.random.default_rng(0)))
    batch, mask, zero = objective.draw(0), np.ones(theta.size), jnp.zeros(theta.size)
    mask[:6] = 0.0
    controls = Controls(jnp.ones(len(objective.parts)), jnp.ones(1), jnp.asarray(mask), zero, zero)
    own, look = lbfgs(objective, STEPS, 30), jax.jit(objective.value)
    state = own.start(jnp.asarray(theta), batch, controls)
    for epoch in range(6):
        drawn = objective.draw(0, "main-batch", epoch, keep=batch)
        state, trace = own.epoch(state, drawn, controls, jnp.zeros(1))
        loss, parts = look(state.theta, drawn, controls)
        np.testing.assert_allclose(trace.loss[-1], loss, rtol=1e-9)  # the last row is where the state is
        np.testing.assert_allclose(trace.parts[-1], parts, rtol=1e-9)
        np.testing.assert_array_equal(trace.raw[-1], objective.surrogate.raw(state.theta))
    assert np.asarray(state.theta)[:6].tobytes() == theta[:6].tobytes()
    np.testing.assert_allclose(objective.surrogate.unknowns(state.theta)["k"], 2.0, atol=0.02)
