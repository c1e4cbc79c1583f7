"""Derivatives carried forward through a network against nested automatic differentiation of the network itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._jax import computing
from tgsr.network._activations import activation
from tgsr.network._channels import Index, chain_rule, closed, order_of
from tgsr.network._names import ACTIVATIONS
from tgsr.network._propagate import Layer, initial_layers, propagate

PLAIN = {
    "tanh": jnp.tanh,
    "sin": jnp.sin,
    "swish": lambda z: z / (1.0 + jnp.exp(-z)),
    "gelu": lambda z: 0.5 * z * (1.0 + jax.scipy.special.erf(z / np.sqrt(2.0))),
    "softplus": lambda z: jnp.log1p(jnp.exp(z)),
    "sigmoid": lambda z: 1.0 / (1.0 + jnp.exp(-z)),
}
BAR = 1e-10
HURRY = {"xla_backend_optimization_level": 0}  # compiling takes longer than running


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def relative(found: jax.Array, expected: jax.Array) -> float:
    return float(jnp.max(jnp.abs(found - expected)) / jnp.maximum(jnp.max(jnp.abs(expected)), 1e-300))


def network(d: int, outputs: int, seed: int = 0) -> list[Layer]:
    """Two hidden layers whose biases are not zero, as after training."""
    rng = np.random.default_rng(seed)
    layers = initial_layers(d, (5, 4), outputs, rng)
    return [(2.0 * w, jnp.asarray(rng.normal(0.0, 0.5, b.shape))) for w, b in layers]


def evaluate(layers: list[Layer], x: jax.Array, phi: Callable[[jax.Array], jax.Array]) -> jax.Array:
    for weight, bias in layers[:-1]:
        x = phi(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def tensors(function: Callable[[jax.Array], jax.Array], x: jax.Array, order: int) -> list[jax.Array]:
    """All derivatives of a function of one point, by jvp of jvp of ..., at all points: (points, outputs, d, d, ...)."""

    def up(lower: Callable[[jax.Array], tuple]) -> Callable[[jax.Array], tuple]:
        def with_itself(x: jax.Array) -> tuple:
            found = lower(x)
            return found[0], found

        return jax.jacfwd(with_itself, has_aux=True)

    nested: Callable[[jax.Array], tuple] = lambda x: (function(x), ())  # noqa: E731
    for _ in range(order):
        nested = up(nested)
    found, rest = [], jax.jit(jax.vmap(nested), compiler_options=HURRY)(x)
    while rest:
        found.insert(0, rest[0])
        rest = rest[1]
    return found


def every(d: int, order: int) -> list[Index]:
    return [i for n in range(order + 1) for i in combinations_with_replacement(range(d), n)]


CASES = [
    *((name, 2, 2, every(2, 4)) for name in ACTIVATIONS),
    ("tanh", 1, 3, every(1, 4)),
    ("sin", 3, 1, [*every(3, 2), (0, 0, 1, 2), (1, 1, 1, 1)]),
    ("tanh", 4, 2, [*every(4, 2), (0, 1, 2, 3), (0, 0, 3, 3)]),
]


def test_the_catalogue_is_covered() -> None:
    assert set(PLAIN) == set(ACTIVATIONS)


@pytest.mark.parametrize(("name", "d", "outputs", "wanted"), CASES, ids=[f"{n}-{d}-{m}" for n, d, m, _ in CASES])
def test_every_derivative_agrees_with_nested_autodiff(name: str, d: int, outputs: int, wanted: list[Index]) -> None:
    layers, x = network(d, outputs), jnp.asarray(np.random.default_rng(1).uniform(-1.0, 1.0, (4, d)))
    channels = closed(wanted)
    assert set(channels) >= set(wanted)
    tape = jax.jit(lambda x: propagate(layers, x, channels, name).outputs, compiler_options=HURRY)(x)
    expected = tensors(lambda x: evaluate(layers, x, PLAIN[name]), x, order_of(wanted))
    for index, found in tape.items():
        assert relative(found, expected[len(index)][(..., *index)]) < BAR, index


def test_activations_stay_finite_far_out_and_settle_there() -> None:
    z = jnp.asarray([-800.0, -40.0, 40.0, 800.0])
    everything = jax.jit(lambda z: {name: activation(name)(z, 4) for name in ACTIVATIONS})(z)
    for name, found in everything.items():
        assert len(found) == 5
        assert bool(jnp.isfinite(jnp.stack(found)).all()), name
        if name != "sin":
            np.testing.assert_allclose(jnp.stack(found[2:]), 0.0, atol=1e-15)
    assert [len(activation("sin")(z, order)) for order in range(5)] == [1, 2, 3, 4, 5]


def test_a_few_derivatives_are_the_same_as_all_of_them() -> None:
    """What else travels changes no channel: mixed derivatives on their own, out of order, repeated."""
    layers, x = network(3, 2), jnp.asarray(np.random.default_rng(2).uniform(-1.0, 1.0, (3, 3)))
    subsets = [closed(i) for i in ([(0, 1, 2)], [(2, 0)], [(1, 1, 0), (2,)], [(0, 0, 0), (0, 0, 0)])]
    every_one, *few = jax.jit(
        lambda: [propagate(layers, x, wanted, "tanh").outputs for wanted in [closed(every(3, 3)), *subsets]]
    )()
    for one in few:
        for index, found in one.items():
            assert relative(found, every_one[index]) < 1e-13


def test_channels_are_closed_and_ordered() -> None:
    assert closed([]) == ((),)
    assert closed([(1, 0)]) == ((), (0,), (1,), (0, 1))
    assert closed([(0, 0, 1)]) == ((), (0,), (1,), (0, 0), (0, 1), (0, 0, 1))
    assert order_of(closed([(0, 0, 1)])) == 3
    assert order_of([]) == 0


def test_the_chain_rule_counts_set_partitions() -> None:
    for order, bell in enumerate((1, 1, 2, 5, 15)):
        assert sum(times for times, _, _ in chain_rule(tuple(range(order)))) == bell
        assert sum(times for times, _, _ in chain_rule((0,) * order)) == bell
    assert chain_rule((0, 0)) == ((1, 1, ((0, 0),)), (1, 2, ((0,), (0,))))
    assert (3, 2, ((0,), (0, 0))) in chain_rule((0, 0, 0))


def test_a_whole_operator_is_the_sum_of_its_derivatives() -> None:
    """Two operators with coefficients per point and mixed second derivatives, and what flows back through them."""
    rng = np.random.default_rng(3)
    layers, x = network(3, 2), jnp.asarray(rng.uniform(-1.0, 1.0, (5, 3)))
    sets: list[list[Index]] = [[(0, 0), (0, 1), (1, 1), (2,)], [(2, 2), (0, 2), (0,)], [(1, 1)]]
    coefficients = [{index: jnp.asarray(rng.normal(size=5)) for index in one} for one in sets]
    channels = closed([(0,), (1,), (2,)])

    def carried(layers: list[Layer], coefficients: list[dict[Index, jax.Array]]) -> list[jax.Array]:
        return list(propagate(layers, x, channels, "tanh", coefficients).operators)

    def summed(layers: list[Layer], coefficients: list[dict[Index, jax.Array]]) -> list[jax.Array]:
        outputs = propagate(layers, x, closed([i for one in sets for i in one]), "tanh").outputs
        return [sum(c[:, None] * outputs[i] for i, c in one.items()) for one in coefficients]  # type: ignore[misc]

    weights = [jnp.asarray(rng.normal(size=(5, 2))) for _ in sets]

    def both(function: Callable[..., list[jax.Array]]) -> tuple[list[jax.Array], object]:
        def loss(*arguments: object) -> jax.Array:
            return sum(jnp.sum(w * o**2) for w, o in zip(weights, function(*arguments), strict=True))

        return function(layers, coefficients), jax.grad(loss, (0, 1))(layers, coefficients)

    found, expected = jax.jit(lambda: both(carried))(), jax.jit(lambda: both(summed))()
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert relative(a, b) < 1e-12


def test_probes_are_the_pre_activations() -> None:
    """The derivative of a loss along the probes of the value channel sums to that along the layer's bias."""
    layers, x = network(2, 1), jnp.asarray(np.random.default_rng(4).uniform(-1.0, 1.0, (3, 2)))
    channels = closed([(0, 0), (0, 1)])

    def loss(probes: list[jax.Array], biases: list[jax.Array]) -> jax.Array:
        shifted = [(w, b + s) for (w, b), s in zip(layers, biases, strict=True)]
        return jnp.sum(propagate(shifted, x, channels, "tanh", probes=probes).outputs[0, 0] ** 2)

    zeros = [jnp.zeros((len(channels), 3, w.shape[1])) for w, _ in layers]
    probes, biases = jax.jit(jax.grad(loss, (0, 1)))(zeros, [jnp.zeros_like(b) for _, b in layers])
    for probe, bias in zip(probes, biases, strict=True):
        np.testing.assert_allclose(probe[0].sum(axis=0), bias, rtol=1e-12, atol=1e-14)
    assert any(bool(jnp.any(probe)) for probe in probes)
