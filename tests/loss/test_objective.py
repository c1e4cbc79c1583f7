"""The loss, its gradient and its blocks against finite differences, plain sums and the uncollapsed path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr.loss import Batch, Controls

STEP = 1e-5


def close(a: Any, b: Any, bar: float) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.max(np.abs(a - b))) <= bar * float(np.max(np.abs(b)))


def test_value_gradient_and_parts(each: Any) -> None:
    program, controls, theta = each.program, each.controls, each.theta
    free = controls._replace(mask=jnp.ones_like(controls.mask))
    (loss, parts), gradient = program(theta, each.batch, free)
    assert close(loss, controls.weights @ parts + controls.pull @ (theta - controls.anchor) ** 2, 1e-14)
    rng, raw = np.random.default_rng(0), each.objective.surrogate.network_size
    directions = [d / np.linalg.norm(d) for d in rng.normal(size=(4, theta.size))]
    directions += list(np.eye(theta.size)[raw:])  # every unknown on its own
    for direction in directions:
        up, down = (program(theta + s * STEP * direction, each.batch, free)[0][0] for s in (1, -1))
        slope, expected = float(gradient @ direction), float(up - down) / (2 * STEP)
        assert abs(slope - expected) <= 1e-6 * max(abs(slope), 1e-3 * float(jnp.linalg.norm(gradient)))
    masked = program(theta, each.batch, controls)[1]
    np.testing.assert_array_equal(masked, controls.mask * gradient)
    assert bool((controls.mask == 0).any())


@pytest.mark.parametrize("name", ["kdv", "rod"])
def test_parts_are_mean_squares_of_rows_and_the_value_is_the_closures(
    case: Callable[[str], Any], hurry: Any, name: str
) -> None:
    each = case(name)
    objective = each.objective
    rows = hurry(objective.rows)(each.theta, each.first_block(), each.controls)
    value, parts = hurry(objective.value)(each.theta, each.batch, each.controls)
    (loss, same), _ = each.program(each.theta, each.batch, each.controls)
    assert close(value, loss, 1e-14)
    assert close(parts, same, 1e-14)
    means = [float(jnp.mean(row**2)) for some in rows for row in some]
    assert close(parts, means, 1e-13)
    assert len(objective.parts) == len(means) == len({part.name for part in objective.parts})


@pytest.mark.parametrize("name", ["kdv", "rod"])
def test_blocks_and_padding_change_nothing(case: Callable[[str], Any], name: str) -> None:
    one, seven = case(name), case(name).with_blocks(7)
    (loss, parts), gradient = one.program(one.theta, one.batch, one.controls)
    (loss7, parts7), gradient7 = seven.program(seven.theta, seven.batch, seven.controls)
    assert close(loss7, loss, 1e-13)
    assert close(parts7, parts, 1e-13)
    assert close(gradient7, gradient, 1e-13)
    for term, batch in enumerate(seven.batch):
        assert batch.share.shape[0] == 7
        np.testing.assert_allclose(float(batch.share.sum()), 1.0, rtol=1e-14)
        np.testing.assert_array_equal(
            seven.objective.points_of(seven.batch, term), one.objective.points_of(one.batch, term)
        )
    moved = tuple(
        b._replace(x=tuple(jnp.where(b.share[..., None] > 0, x, 0.3 + 0.1 * x) for x in b.x)) for b in seven.batch
    )
    again = seven.program(seven.theta, moved, seven.controls)[1]
    np.testing.assert_array_equal(again, gradient7)


@pytest.mark.parametrize("name", ["burgers", "rod", "anisotropic"])
def test_collapsed_operators_change_nothing(case: Callable[[str], Any], hurry: Any, name: str) -> None:
    """Loss, parts and gradient, with respect to the weights and to the unknowns in the coefficients."""
    one = case(name)
    assert one.objective.plans[0].collapses
    plain = replace(one.objective, collapsing=False)
    free = one.controls._replace(mask=jnp.ones_like(one.controls.mask))
    (loss, parts), gradient = one.program(one.theta, one.batch, free)
    (loss_plain, parts_plain), gradient_plain = hurry(plain.closure)(one.theta, one.batch, free)
    assert close(loss, loss_plain, 1e-12)
    assert close(parts, parts_plain, 1e-12)
    assert close(gradient, gradient_plain, 1e-12)
    assert close(one.objective.surrogate.raw(gradient), one.objective.surrogate.raw(gradient_plain), 1e-12)


def test_one_program_serves_every_theta_batch_and_weight(case: Callable[[str], Any]) -> None:
    one, count = case("burgers"), 0

    def counted(theta: jax.Array, batch: Batch, controls: Controls) -> Any:
        nonlocal count
        count += 1
        return one.objective.value(theta, batch, controls)

    program = jax.jit(counted)
    losses = set()
    for epoch in range(4):
        batch = one.objective.draw(epoch, "main-batch", epoch, keep=one.batch)
        controls = one.controls._replace(weights=one.controls.weights + epoch, sigma=one.controls.sigma + epoch)
        losses.add(float(program(one.theta + 0.1 * epoch, batch, controls)[0]))
    assert (count, len(losses)) == (1, 4)


def test_draws_are_reproducible_and_keep_measured_points(case: Callable[[str], Any]) -> None:
    objective, batch = case("rod").objective, case("rod").batch
    for again, before in zip(jax.tree.leaves(objective.draw(0)), jax.tree.leaves(batch), strict=True):
        np.testing.assert_array_equal(again, before)
    other = objective.draw(1, keep=batch)
    for plan, old, new in zip(objective.plans, batch, other, strict=True):
        same = all(np.array_equal(a, b) for a, b in zip(old.x, new.x, strict=True))
        assert same == (plan.term.fixed or plan.term.name == "probe")
        assert (new is old) == plan.term.fixed


def test_names_and_kinds_of_parts(case: Callable[[str], Any]) -> None:
    named = {name: [(p.name, p.kind) for p in case(name).objective.parts] for name in ("lorenz", "kdv", "rod")}
    assert named["lorenz"] == [
        ("system[0]", "pde"), ("system[1]", "pde"), ("system[2]", "pde"),
        ("initial x", "ic"), ("initial y", "ic"), ("initial z d1", "ic"), ("data x", "data"), ("data z", "data"),
    ]  # fmt: skip
    assert [name for name, _ in named["kdv"]] == [
        "function", "periodic u", "periodic u d1", "periodic u d2", "initial u", "data",
    ]  # fmt: skip
    assert ("probe", "bc") in named["rod"]
