"""What a task hands out: points and weights of each profile, one pool of readings, a truth that nothing can reach."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tgsr
from tgsr._jax import computing
from tgsr.loss import build_objective
from tgsr.network._evaluate import evaluate
from tgsr.tasks import PROFILES, names, task
from tgsr.tasks._local import gradient, gradient_error, strip_error

STEADY = "boundary-layer"
LIGHT = {("smooth-advection-diffusion", "source"), ("advected-pulse", "source")}


def rows_of(case):
    """Points per kind of term, as they come out of the objective."""
    with computing():
        objective = build_objective(case.problem, case.network, case.training.points)
        batch = objective.draw(0)
        found = {}
        for number, plan in enumerate(objective.plans):
            found.setdefault(plan.term.parts[0].kind, []).append(len(objective.points_of(batch, number)))
    return found


@pytest.mark.parametrize(("name", "role"), [(n, r) for n in names() for r in ("target", "source")])
def test_points_and_weights_of_the_paper(name, role):
    case = task(name).case(0, "paper", role)
    interior, side, start = (5000, 1000, 1000) if (name, role) in LIGHT else (10000, 2500, 2500)
    sides = 2 if name == "allen-cahn-burgers" else 4
    expected = {"pde": [interior], "bc": [side // sides] * sides, "ic": [start], "data": [1000]}
    if name == STEADY:
        del expected["ic"]
    assert rows_of(case) == expected
    pde, data = (1, 35) if (name, role) in LIGHT else (10, 50)
    assert case.training.weight_table == {"pde": pde, "ic": 10, "bc": 10, "data": data}
    assert case.training.points.sampling == "uniform"
    assert case.network == tgsr.MLP((100,) * 6)
    assert case.training.phases == (tgsr.PaperLBFGS(epochs=300, inner=20, history=100),)
    assert case.budget == "paper"
    assert case.problem.scale == "none"


def test_points_of_smaller_profiles():
    laptop, smoke = (rows_of(task("reaction-diffusion").case(0, profile)) for profile in ("laptop", "smoke"))
    assert laptop == {"pde": [2000], "bc": [125] * 4, "ic": [500], "data": [1000]}
    assert smoke == {"pde": [200], "bc": [12] * 4, "ic": [50], "data": [100]}
    assert {p.budget for p in PROFILES.values()} == {"paper", "matched"}
    assert hash(PROFILES["laptop"]) != hash(PROFILES["smoke"])


SETTLED = {
    ("boundary-layer", "target"): ({"eps": 0.01}, {"eps": 0.03}, 0.005),
    ("boundary-layer", "source"): ({"eps": 0.2}, {"eps": 0.1}, 0.005),
    ("allen-cahn-burgers", "target"): ({"nu": 0.01}, {"nu": 0.05}, 0.03),
    ("allen-cahn-burgers", "source"): ({"eps": 0.8}, {"eps": 0.85}, 0.01),
    ("reaction-diffusion", "target"): ({"alpha": 0.05, "rho": 1.0}, {"alpha": 0.1, "rho": 0.5}, 0.05),
    ("reaction-diffusion", "source"): ({"alpha": 0.05}, {"alpha": 0.1}, 0.005),
    ("smooth-advection-diffusion", "target"): (
        {"alpha": 1e-3, "v_x": 2.0, "v_y": 1.0}, {"alpha": 5e-3, "v_x": 1.0, "v_y": 0.5}, 0.005
    ),
    ("smooth-advection-diffusion", "source"): ({"alpha": 0.05}, {"alpha": 0.1}, 0.005),
    ("advected-pulse", "target"): (
        {"alpha": 1e-3, "v_x": 2.0, "v_y": 1.0}, {"alpha": 3e-3, "v_x": 1.0, "v_y": 0.5}, 0.005
    ),
    ("advected-pulse", "source"): (
        {"alpha": 5e-3, "v_x": 1.0, "v_y": 0.5}, {"alpha": 1e-2, "v_x": 0.5, "v_y": 0.25}, 0.005
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "role"), SETTLED)
def test_constants_guesses_and_noise(name, role):
    physics = task(name).physics(role)
    truth, guess, noise = SETTLED[name, role]
    assert physics.constants == pytest.approx(truth)
    assert {u.name: u.guess for u in physics.unknowns} == guess
    assert physics.noise == noise
    assert all(u.positive != u.name.startswith("v_") for u in physics.unknowns)


@pytest.mark.parametrize("name", names())
def test_one_pool_of_readings_for_everybody(name):
    a, b = (task(name).case(3, profile).problem.data[0] for profile in ("paper", "laptop"))
    assert a.fingerprint() == b.fingerprint()
    few = task(name).case(3, observations=50).problem.data[0]
    np.testing.assert_array_equal(few.values["u"], a.values["u"][:50])
    assert few.noise == a.noise
    assert task(name).case(4).problem.data[0].fingerprint() != a.fingerprint()
    assert task(name).case(3, role="source").problem.data[0].fingerprint() != a.fingerprint()
    physics = task(name).physics()
    exact = physics.exact(**a.points)
    sigma = physics.noise * np.mean(np.abs(exact))
    assert a.noise["u"].scale == pytest.approx(sigma)
    assert np.std(a.values["u"] - exact) == pytest.approx(sigma, rel=0.1)
    clean = task(name).case(3, noise=0.0).problem.data[0]
    np.testing.assert_array_equal(clean.values["u"], exact)


class ForbiddenTruth:
    """What a problem must never look at."""

    def __init__(self, *given):
        pass

    def __getattribute__(self, name):
        raise AssertionError(f"the truth was asked for {name}")


def test_a_run_never_reads_the_truth(monkeypatch):
    """Build, solve and end in seconds although every attribute of the truth raises; then measure with the real one."""
    real = task(STEADY).case(0, "smoke")
    monkeypatch.setattr(tgsr, "Truth", ForbiddenTruth)
    case = task(STEADY).case(0, "smoke")
    result = tgsr.solve(case.problem, network=case.network, training=case.training, seed=0)
    assert result.outcome.ok
    assert result.closures < 60  # the budget of 40 is looked at once per outer epoch
    assert case.problem.spec() == real.problem.spec()
    monkeypatch.undo()
    errors = task(STEADY).measure(result, real.truth)
    assert list(errors) == ["parameter", "eps", "field", "layer", "gradient"]
    assert errors["parameter"] == errors["eps"] > 0
    assert all(np.isfinite(value) for value in errors.values())


@pytest.mark.parametrize("name", names())
def test_no_reference_leads_from_a_problem_to_a_truth(name):
    """Walk everything a problem holds (attributes, closures, defaults), but not modules and their names."""
    case = task(name).case(0)
    seen, waiting = set(), [case.problem]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, (types.ModuleType, type)):
            continue
        seen.add(id(thing))
        assert not isinstance(thing, tgsr.Truth)
        if isinstance(thing, types.FunctionType):
            cells = [c.cell_contents for c in thing.__closure__ or ()]
            waiting += [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        elif isinstance(thing, functools.partial):
            waiting += [thing.func, *thing.args, *thing.keywords.values()]
        else:
            waiting += gc.get_referents(thing)
    assert {id(d) for d in case.problem.data} | {id(f) for f in case.problem.residuals} <= seen


def test_zero_data_control_runs():
    case = task("allen-cahn-burgers").case(0, "smoke", observations=0)
    assert case.problem.data == ()
    assert "data" not in rows_of(case)
    training = tgsr.Training(tgsr.LBFGS(epochs=1, inner=3), case.training.points, case.training.weight_table)
    result = tgsr.solve(case.problem, network=case.network, training=training, seed=0)
    assert np.isfinite(result.unknowns["nu"].value)
    assert set(task("allen-cahn-burgers").measure(result, case.truth)) == {"parameter", "nu", "field"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: task("boundary_layers"),
        lambda: task(STEADY).case(0, "desktop"),
        lambda: task(STEADY).case(0, role="both"),
        lambda: task(STEADY).case(0, observations=-1),
        lambda: task(STEADY).case(0, observations=2.5),
        lambda: task(STEADY).case(0, noise=float("nan")),
    ],
    ids=["task", "profile", "role", "negative", "fraction", "noise"],
)
def test_mistakes_are_named(wrong):
    with pytest.raises(tgsr.InputError):
        wrong()


def test_listing_tasks_loads_no_jax():
    code = "import sys, tgsr.tasks; assert len(tgsr.tasks.names()) == 5; assert 'jax' not in sys.modules"
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], check=True, env=path)


def network():
    rng = np.random.default_rng(0)
    return tgsr.SavedNetwork(
        (rng.normal(size=(2, 5)), rng.normal(size=(5, 4)), rng.normal(size=(4, 1))),
        (rng.normal(size=5), rng.normal(size=4), rng.normal(size=1)),
        "tanh", ("x", "y"), ("u",), np.array([0.5, 0.2]), np.array([0.5, 2.0]), np.array([1.0]), np.array([3.0]),
    )  # fmt: skip


def test_gradient_of_a_saved_network_with_its_scales():
    net, points, h = network(), np.random.default_rng(1).random((20, 2)), 1e-5
    slopes = [(evaluate(net, points + s)["u"] - evaluate(net, points - s)["u"]) / (2 * h) for s in h * np.eye(2)]
    np.testing.assert_allclose(gradient(net, points), np.stack(slopes, axis=1), rtol=1e-6, atol=1e-8)


def test_local_errors_of_a_scaled_field():
    """A field that is 3 % too large is 3 % off, as is its gradient."""
    net = network()

    def predict(**points):
        return evaluate(net, np.stack([points["x"], points["y"]], axis=1))

    @jax.jit
    def field(x, y):
        a = jnp.stack([jnp.asarray(x) - 0.5, (jnp.asarray(y) - 0.2) / 4], axis=-1) / 0.5
        for weight, bias in zip(net.weights[:2], net.biases[:2], strict=True):
            a = jnp.tanh(a @ weight + bias)
        return (1.0 + 3.0 * (a @ net.weights[2] + net.biases[2])[..., 0]) / 1.03

    result = types.SimpleNamespace(predict=predict, network=net)
    axes = {"x": np.linspace(0, 1, 9), "y": np.linspace(0, 1, 7)}
    with computing():
        assert strip_error(result, tgsr.Truth({}, field), **axes) == pytest.approx(0.03)
    assert gradient_error(result, tgsr.Truth({}, field), **axes) == pytest.approx(0.03)
