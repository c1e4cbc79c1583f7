"""Rows and their Jacobian from one backward pass per part, against autodiff of the rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr.loss import weighted_jacobian, weighted_rows
from tgsr.loss._rows import whitened
from tgsr.problem import Gaussian, Laplace, StudentT


def test_rows_and_jacobian(each: Any, hurry: Any) -> None:
    """Against autodiff; the rows' squares sum to the loss, and J^T r is half its gradient."""
    objective, block, controls = each.objective, each.first_block(), each.controls
    still = controls._replace(pull=jnp.zeros_like(controls.pull))

    def everything(theta: jax.Array) -> Any:
        def rows(theta: jax.Array) -> jax.Array:
            return weighted_rows(objective, theta, block, still)

        return weighted_jacobian(objective, theta, block, still), rows(theta), jax.jacfwd(rows)(theta)

    (found_rows, found), rows, expected = hurry(everything)(each.theta)
    (loss, _), gradient = each.program(each.theta, each.batch, still)
    size = float(jnp.max(jnp.abs(rows)))
    np.testing.assert_allclose(found_rows, rows, rtol=1e-10, atol=1e-12 * size)
    expected = expected * still.mask
    scale = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1e-12 * float(jnp.max(jnp.abs(expected))))
    assert float(np.max(np.abs(found - expected) / scale)) < 1e-10
    np.testing.assert_allclose(float(rows @ rows), float(loss), rtol=1e-13)
    np.testing.assert_allclose(
        found.T @ rows, 0.5 * gradient, rtol=1e-9, atol=1e-12 * float(jnp.max(jnp.abs(gradient)))
    )


@pytest.mark.parametrize("noise", [Gaussian(1.0), Laplace(1.0), StudentT(1.0), StudentT(1.0, df=1.0)], ids=str)
def test_robust_rows(noise: Any) -> None:
    """Half the square of a row is rho; its slope is finite everywhere, and 1 at zero."""
    z = jnp.asarray([0.0, 1e-300, 1e-9, 9.9e-5, 1.01e-4, -1e-3, -0.5, 3.0, -40.0, 1e8])
    row = whitened(z, noise)
    np.testing.assert_allclose(0.5 * row**2, noise.rho(np.asarray(z)), rtol=1e-8)
    np.testing.assert_array_equal(jnp.sign(row), jnp.sign(z))
    slope = jax.jit(jax.vmap(jax.grad(lambda z: whitened(z, noise))))(z)
    assert bool(jnp.isfinite(slope).all())
    np.testing.assert_allclose(slope[:4], 1.0, rtol=1e-7)
    np.testing.assert_allclose((row * slope)[4:], noise.psi(np.asarray(z))[4:], rtol=1e-7)
