"""Activations with the derivatives that the channels of a field need, in closed form where that is shorter."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from tgsr.network._names import checked_activation

Derivatives = Callable[[jax.Array, int], list[jax.Array]]


def _tanh(z: jax.Array, order: int) -> list[jax.Array]:
    """tanh and its derivatives as polynomials of h = tanh z: h' = 1 - h^2 =: d."""
    h = jnp.tanh(z)
    d = 1.0 - h * h
    d2 = -2.0 * h * d
    return [h, d, d2, d * (6.0 * h * h - 2.0), d2 * (12.0 * h * h - 8.0)][: order + 1]  # what is unused costs nothing


def _sin(z: jax.Array, order: int) -> list[jax.Array]:
    s, c = jnp.sin(z), jnp.cos(z)
    return [s, c, -s, -c, s][: order + 1]


def _sigmoid(z: jax.Array, order: int) -> list[jax.Array]:
    """sigmoid(z) = (1 + tanh(z/2))/2."""
    parts = _tanh(0.5 * z, order)
    return [0.5 + 0.5 * parts[0]] + [0.5 ** (k + 1) * parts[k] for k in range(1, order + 1)]


def _softplus(z: jax.Array, order: int) -> list[jax.Array]:
    return [jnp.logaddexp(z, 0.0), *(_sigmoid(z, order - 1) if order else [])]


def _by_autodiff(function: Callable[[jax.Array], jax.Array]) -> Derivatives:
    """Derivatives of an elementwise function, each the tangent of the one before."""

    def derivatives(z: jax.Array, order: int) -> list[jax.Array]:
        functions = [function]
        for _ in range(order):
            last = functions[-1]
            functions.append(lambda x, last=last: jax.jvp(last, (x,), (jnp.ones_like(x),))[1])
        return [f(z) for f in functions]

    return derivatives


_DERIVATIVES: dict[str, Derivatives] = {
    "tanh": _tanh,
    "sin": _sin,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "swish": _by_autodiff(lambda z: z * jax.nn.sigmoid(z)),
    "gelu": _by_autodiff(lambda z: jax.nn.gelu(z, approximate=False)),
}


def activation(name: str) -> Derivatives:
    """`f(z, order)` -> [value, first, ... order-th derivative] of the activation called `name`."""
    return _DERIVATIVES[checked_activation(name)]
