"""dL/dz and its gates against central differences and against a forward pass written out with nested autodiff."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import method_cases  # noqa: F401  float64
import numpy as np
import pytest

import tgsr
from tgsr._random import stream
from tgsr.loss import Batch, Controls, Objective, TermBatch, build_objective
from tgsr.methods import TgsrOptions
from tgsr.methods._diagnostics import gated_loss
from tgsr.methods.tgsr._evidence import collect, neuron_products
from tgsr.problem import Data, Dirichlet, Initial, Neumann, Periodic, Points, Problem, Unknown

PAPER, JET, REF = TgsrOptions(), TgsrOptions(gate="jet"), TgsrOptions(score="ref")
BOX = {"x": (0.0, 2.0), "t": (0.0, 1.0)}
EQUATIONS: dict[int, Any] = {
    1: lambda u, c: u.t + c * u * u.x,
    2: lambda u, c: u.t + u * u.x - c * u.xx,
    3: lambda u, c: u.t + u * u.x + c * u.d("x", 3),
}


@cache
def built(order: int) -> tuple[Objective, jax.Array, Batch, Controls]:
    rng = np.random.default_rng(order)
    readings = Data({k: rng.uniform(*v, 4) for k, v in BOX.items()}, {"u": rng.normal(size=4)}, 0.3)
    problem = Problem(
        "waves",
        coordinates=BOX,
        fields=["u"],
        unknowns=[Unknown("c", 0.7, positive=True)],
        residuals=[EQUATIONS[order]],
        conditions=[
            Periodic("x", order=2) if order == 3 else Neumann("u", at="x=2", value=0.3),
            Initial("u", lambda x: jnp.sin(x)),
            Dirichlet("u", at="x=0"),
        ],
        data=[readings],
    )
    objective = build_objective(problem, tgsr.MLP((4, 3)), Points(5, 4, 3), blocks=2)
    theta = objective.surrogate.initial(stream(0, "init"))
    theta = theta + 0.2 * jnp.asarray(rng.normal(size=theta.shape))
    parts = len(objective.parts)
    controls = Controls(
        jnp.asarray(rng.uniform(0.5, 2.0, parts)), jnp.full(1, 0.3), jnp.ones_like(theta), 0 * theta, 0 * theta
    )
    return objective, theta, objective.draw(0), controls


def fast(function: Any) -> Any:
    """Compiled in a hurry: here compiling takes longer than running."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


@cache
def products(order: int, options: TgsrOptions) -> list[tuple[Any, Any, TermBatch]]:
    """(z, z dL/dz, points) of every term and block."""
    objective, theta, batch, controls = built(order)

    def block_products(block: Batch) -> list[Any]:
        out, first = [], 0
        for number, term in enumerate(block):
            weights = controls.weights[first : first + len(objective.plans[number].term.parts)]
            first += len(weights)
            out.append(neuron_products(objective, number, theta, term, controls, weights, options))
        return out

    blocks = [jax.tree.map(lambda a, i=i: a[i], batch) for i in range(objective.blocks)]
    program = fast(block_products)
    return [(*both, term) for block in blocks for both, term in zip(program(block), block, strict=True)]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_each_pre_activation_against_central_differences(order: int) -> None:
    """Moving the bias of a neuron at one point alone moves its value there, and no derivative of it."""
    objective, theta, batch, controls = built(order)
    entries = objective.surrogate.entries()

    @fast
    def per_point(theta: jax.Array, block: Batch) -> list[jax.Array]:
        weights, out = iter(controls.weights), []
        for term, rows in zip(block, objective.rows(theta, block, controls), strict=True):
            out.append(sum(next(weights) * term.share * row * row for row in rows))
        return out

    step, found, expected = 1e-4, [], []
    answers = products(order, PAPER)
    for number in range(objective.blocks):
        block = jax.tree.map(lambda a, i=number: a[i], batch)
        mine = answers[number * len(block) : (number + 1) * len(block)]
        for layer, width in enumerate((4, 3)):
            for neuron in range(width):
                at = entries[f"net0.{layer}.bias"].start + neuron
                shifted = [per_point(theta.at[at].add(s * step), block) for s in (-2, -1, 1, 2)]
                for term, (z, gated, points) in enumerate(mine):
                    a, b, c, d = (np.asarray(one[term]) for one in shifted)
                    slope = (a - 8 * b + 8 * c - d) / (12 * step)
                    sets = len(points.x)  # a periodic row compares two points, and both were moved
                    dz = (gated[layer][:, neuron] / z[layer][:, neuron]).reshape(sets, -1).sum(axis=0)
                    found.append(np.asarray(dz))
                    expected.append(slope)
    found, expected = np.concatenate(found), np.concatenate(expected)
    assert np.max(np.abs(found - expected)) < 1e-6 * np.max(np.abs(expected))
    assert np.mean(found != 0) > 0.5


def forward(theta: jax.Array, x: jax.Array, gates: list[jax.Array], jet: bool) -> jax.Array:
    """The field at one point with its pre-activations scaled: all of them, or their values only."""
    net = built(2)[0].surrogate.nets[0]
    h = (x - jnp.array(net.centre)) / jnp.array(net.half_width)
    *hidden, (weight, bias) = built(2)[0].surrogate.layers(theta)[0]
    for (w, b), gate in zip(hidden, gates, strict=True):
        z = h @ w + b
        z = z + (gate - 1.0) * (z if jet else jax.lax.stop_gradient(z))  # derivatives along x pass by
        h = jnp.tanh(z)
    return net.offset[0] + net.scale[0] * (h @ weight + bias)[0]


def written_out(gates: list[jax.Array], jet: bool) -> jax.Array:
    """The loss of the second-order problem, with nothing of the engine but its points, weights and scales."""
    objective, theta, batch, controls = built(2)

    def along(function: Any, axis: int) -> Any:
        return lambda x: jax.jvp(function, (x,), (jnp.eye(2)[axis],))[1]

    def u(x: jax.Array) -> jax.Array:
        return forward(theta, x, gates, jet)

    u_x, u_t, c, total = along(u, 0), along(u, 1), objective.surrogate.unknowns(theta)["c"], jnp.zeros(())
    u_xx = along(u_x, 0)
    rows = [
        lambda x, _: u_t(x) + u(x) * u_x(x) - c * u_xx(x),
        lambda x, _: u_x(x) - 0.3,
        lambda x, _: u(x) - jnp.sin(x[0]),
        lambda x, _: u(x),
        lambda x, y: (u(x) - y) / controls.sigma[0],
    ]
    for number, row in enumerate(rows):
        term, size = batch[number], objective.sizes[number][0]
        x, share = term.x[0].reshape(-1, 2), term.share.reshape(-1)
        y = term.stored["values"].reshape(-1) if number == 4 else share
        total += controls.weights[number] * jnp.sum(share * (jax.vmap(row)(x, y) / size) ** 2)
    return total


@pytest.mark.parametrize(("options", "jet"), [(PAPER, False), (JET, True)], ids=["value", "jet"])
def test_gate_derivative_is_the_sum_over_points(options: TgsrOptions, jet: bool) -> None:
    """phi'(1) = sum z dL/dz, against a loss that is written out; far from 1 both ways of gating agree, too."""
    objective, theta, batch, controls = built(2)
    ones = [jnp.ones(4), jnp.ones(3)]
    exact = fast(lambda gates: (written_out(gates, jet), jax.jacfwd(lambda g: written_out(g, jet))(gates)))
    by_probes = fast(lambda gates: gated_loss(objective, jet)(gates, theta, batch, controls))
    slopes = exact(ones)[1]
    for layer, slope in enumerate(slopes):
        summed = sum(np.asarray(gated[layer]).sum(axis=0) for _, gated, _ in products(2, options))
        np.testing.assert_allclose(summed, slope, rtol=1e-9)
        gates = [*ones]
        gates[layer] = gates[layer].at[1].set(0.6)
        np.testing.assert_allclose(by_probes(gates), exact(gates)[0], rtol=1e-11)


def test_the_jet_gate_is_the_derivative_of_scaling_row_and_bias() -> None:
    objective, theta, batch, controls = built(3)
    answers = products(3, JET)
    entries = objective.surrogate.entries()
    gradient = fast(objective.closure)(theta, batch, controls)[1]
    for layer, shape in enumerate(((2, 4), (4, 3))):
        weight, bias = (entries[f"net0.{layer}.{kind}"] for kind in ("weight", "bias"))
        expected = (theta[weight] * gradient[weight]).reshape(shape).sum(axis=0) + theta[bias] * gradient[bias]
        found = sum(np.asarray(gated[layer]).sum(axis=0) for _, gated, _ in answers)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_reference_score_counts_interior_points_six_times() -> None:
    """One true derivative and one for each of u_t, u_x, u_y, u_xx, u_yy; other points once; V once."""
    problem = Problem(
        "spread",
        coordinates={"x": (0.0, 1.0), "y": (0.0, 1.0), "t": (0.0, 1.0)},
        fields=["u"],
        unknowns=[Unknown("a", 0.5, positive=True), Unknown("v", 0.4), Unknown("w", 0.2)],
        residuals=[lambda u, a, v, w: u.t + v * u.x + w * u.y - a * u.laplacian("x", "y")],
        conditions=[Initial("u", 1.0)],
        scale="none",
    )
    objective = build_objective(problem, tgsr.MLP((3,)), Points(7, 1, 4), blocks=1)
    theta, batch = objective.surrogate.initial(stream(1, "init")), objective.draw(1)
    controls = Controls(jnp.ones(2), jnp.ones(1), jnp.ones_like(theta), 0 * theta, 0 * theta)
    interior = jax.tree.map(lambda a: a[0], batch)[0]
    z, gated = fast(lambda t: neuron_products(objective, 0, t, interior, controls, controls.weights[:1], REF))(theta)
    assert (len(z[0]), len(gated[0])) == (7, 6 * 7)
    plain, ref = (collect(objective, theta, batch, controls, options) for options in (PAPER, REF))
    np.testing.assert_array_equal(plain.variance[0], ref.variance[0])
    inner = np.abs(np.asarray(gated[0])).sum(axis=0)
    true = np.abs(np.asarray(gated[0])[:7]).sum(axis=0)
    others = plain.sensitivity[0] * (7 + 4) - true
    np.testing.assert_allclose(ref.sensitivity[0], (inner + others) / (6 * 7 + 4), rtol=1e-12)
    # The first of the five is du/dz itself: outgoing weight times the slope of the activation.
    weight = objective.surrogate.layers(theta)[0][1][0][:, 0]
    expected = z[0] * (1 - jnp.tanh(z[0]) ** 2) * weight
    np.testing.assert_allclose(gated[0][7:14], expected, rtol=1e-12)
