"""The self-scaled updates: secant condition, duality with the formula for B, and their promises on the spectrum."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._jax import computing
from tgsr.optimiser._self_scaled import FACTORS, UPDATES, Inverse, updated

SIZE = 9


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


@functools.cache
def update_of(name: str) -> Any:
    return jax.jit(lambda *a: updated(*a, name))


def pair(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(H, s, y, g) with y.s > 0."""
    rng = np.random.default_rng(seed)
    root, curvature = rng.normal(size=(2, SIZE, SIZE))
    s, g = rng.normal(size=(2, SIZE))
    return root @ root.T + np.eye(SIZE), s, (curvature @ curvature.T) @ s * 10.0 ** rng.uniform(-3, 3), g


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("seed", range(8))
def test_the_update_is_the_inverse_of_that_of_the_hessian(name: str, seed: int) -> None:
    H, s, y, g = pair(seed)
    B = np.linalg.inv(H)
    Bs, ys = B @ s, y @ s
    new, direction = update_of(name)(Inverse(H, jnp.asarray(3)), s, y, s @ Bs, g, jnp.asarray(True))
    after = np.asarray(new.matrix)
    np.testing.assert_allclose(after @ y, s, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(after, after.T, rtol=1e-9, atol=1e-9 * abs(after).max())
    assert np.linalg.eigvalsh((after + after.T) / 2).min() > 0
    np.testing.assert_allclose(direction, -after @ g, rtol=1e-8, atol=1e-8 * np.abs(after @ g).max())
    # Broyden's family for B: tau (B - B s s B / s.B s + theta (s.B s) w w) + y y / y.s with w = y / y.s - B s / s.B s
    b, h = s @ Bs / ys, y @ H @ y / ys
    phi, tau = (float(f) for f in FACTORS[name](jnp.asarray(b), jnp.asarray(h), SIZE))
    theta = (1 - phi) / (1 + (b * h - 1) * phi)
    w = y / ys - Bs / (s @ Bs)
    dual = tau * (B - np.outer(Bs, Bs) / (s @ Bs) + theta * (s @ Bs) * np.outer(w, w)) + np.outer(y, y) / ys
    np.testing.assert_allclose(after @ dual, np.eye(SIZE), atol=1e-6)
    assert 0 < tau <= 1
    assert int(new.pairs) == 4


@pytest.mark.parametrize("seed", range(4))
def test_without_overestimated_curvature_ssbfgs_is_bfgs(seed: int) -> None:
    H, s, y, g = pair(seed)
    y = y * 1e6  # b = s.B s / y.s is far below 1: nothing to shrink
    new, _ = update_of("bfgs")(Inverse(H, jnp.asarray(1)), s, y, s @ np.linalg.solve(H, s), g, jnp.asarray(True))
    left = np.eye(SIZE) - np.outer(s, y) / (y @ s)
    np.testing.assert_allclose(new.matrix, left @ H @ left.T + np.outer(s, s) / (y @ s), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", UPDATES)
def test_no_pair_is_the_identity_and_the_first_one_sets_the_scale(name: str) -> None:
    _, s, y, g = pair(5)
    rubbish = Inverse(jnp.full((SIZE, SIZE), jnp.nan), jnp.asarray(0))
    same, direction = update_of(name)(rubbish, s, y, s @ s, g, jnp.asarray(False))
    np.testing.assert_array_equal(direction, -g)
    assert int(same.pairs) == 0
    new, direction = update_of(name)(rubbish, s, y, s @ s, g, jnp.asarray(True))
    np.testing.assert_allclose(np.asarray(new.matrix) @ y, s, rtol=1e-9, atol=1e-9)
    scaled = Inverse(jnp.eye(SIZE) * (y @ s) / (y @ y), jnp.asarray(1))
    known, other = update_of(name)(scaled, s, y, (s @ s) * (y @ y) / (y @ s), g, jnp.asarray(True))
    np.testing.assert_allclose(new.matrix, known.matrix, rtol=1e-12)
    np.testing.assert_allclose(direction, other, rtol=1e-12)


def test_a_pair_that_is_not_kept_changes_nothing() -> None:
    H, s, y, g = pair(6)
    same, direction = update_of("broyden")(Inverse(H, jnp.asarray(2)), s, -y, 1.0, g, jnp.asarray(False))
    np.testing.assert_array_equal(same.matrix, H)
    np.testing.assert_allclose(direction, -H @ g, rtol=1e-12)


@pytest.mark.parametrize("name", UPDATES)
def test_a_quadratic_ends_after_few_more_steps_than_dimensions(name: str) -> None:
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]
    hessian = basis * np.geomspace(1.0, 300.0, SIZE) @ basis.T
    x = rng.normal(size=SIZE)
    first = np.linalg.norm(hessian @ x)
    inverse, direction = Inverse(jnp.zeros((SIZE, SIZE)), jnp.asarray(0)), -hessian @ x
    for _ in range(2 * SIZE):
        gradient, direction = hessian @ x, np.asarray(direction)
        length = -(gradient @ direction) / (direction @ hessian @ direction)
        s = length * direction
        x = x + s
        inverse, direction = update_of(name)(
            inverse, s, hessian @ s, -length * (gradient @ s), hessian @ x, jnp.asarray(True)
        )
        if np.linalg.norm(hessian @ x) <= 1e-8 * first:
            break
    assert np.linalg.norm(hessian @ x) <= 1e-8 * first
