"""Errors where the field changes fastest: on a strip, and of the gradient."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import tgsr
from tgsr._jax import computing
from tgsr.network._propagate import propagate
from tgsr.tasks._exact import derivative


def gradient(network: tgsr.SavedNetwork, points: np.ndarray) -> np.ndarray:
    """The exact derivative of a network's first field along each coordinate, at points (n, coordinates)."""
    d = points.shape[1]
    with computing():
        layers = [(jnp.asarray(w), jnp.asarray(b)) for w, b in zip(network.weights, network.biases, strict=True)]
        scaled = jnp.asarray((points - network.centre) / network.half_width)
        tape = propagate(layers, scaled, ((), *((i,) for i in range(d))), network.activation)
        slopes = np.stack([np.asarray(tape.outputs[i,])[:, 0] for i in range(d)], axis=1)
    return network.scale[0] * slopes / network.half_width


def strip_error(result: tgsr.Result, truth: tgsr.Truth, **axes: np.ndarray) -> float:
    """The relative L2 error of the field on the grid of `axes`."""
    points = _grid(**axes)
    assert truth.field is not None
    return _relative(result.predict(**points)["u"], np.asarray(truth.field(**points)))


def gradient_error(result: tgsr.Result, truth: tgsr.Truth, **axes: np.ndarray) -> float:
    """The relative L2 error of the gradient on the grid of `axes`, every grid point counting the same."""
    points = tuple(_grid(**axes).values())
    assert truth.field is not None
    with computing():
        exact = [np.asarray(derivative(truth.field, (i,))(*points)) for i in range(len(points))]
    return _relative(gradient(result.network, np.stack(points, axis=1)), np.stack(exact, axis=1))


def _grid(**axes: np.ndarray) -> dict[str, np.ndarray]:
    mesh = np.meshgrid(*axes.values(), indexing="ij")
    return {name: column.reshape(-1) for name, column in zip(axes, mesh, strict=True)}


def _relative(ours: np.ndarray, exact: np.ndarray) -> float:
    error = float(np.linalg.norm(ours - exact) / np.linalg.norm(exact))
    return error if np.isfinite(error) else float("inf")
