"""Networks with their scales, unknown fields and unknowns against plain functions and nested autodiff."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._errors import InputError
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.network._propagate import MLP
from tgsr.network._surrogate import Net, Surrogate
from tgsr.problem._unknowns import Transform, Unknown

BOX = np.array([[2.0, -1.0, 1e-3], [6.0, 5.0, 3e-3]])
MAIN = Net(("u", "v"), (0, 1, 2), MLP((5, 4)), (4.0, 2.0, 2e-3), (2.0, 3.0, 1e-3), (20.0, -3.0), (60.0, 0.01))
SOURCE = Net(("q",), (2, 0), MLP((4,), "sin"), (2e-3, 4.0), (1e-3, 2.0), (0.5,), (3.0,))
KAPPA = Net(("kappa",), (1,), MLP((4,)), (2.0,), (3.0,), (0.0,), (7.0,), positive=True)
UNKNOWNS = (
    Unknown("a", 3.0, positive=True),
    Unknown("b", 1.0, bounds=(-4.0, 9.0)),
    Unknown("c", 1e-9, log=True),
)
WHOLE = Surrogate((MAIN, SOURCE, KAPPA), tuple(Transform(u) for u in UNKNOWNS))
ORDER = 3


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def theta() -> jax.Array:
    fresh = WHOLE.initial(stream(3, "init"))
    return fresh + 0.3 * jnp.asarray(np.random.default_rng(3).normal(size=fresh.shape))


def plain(weights: jax.Array, name: str, x: jax.Array) -> jax.Array:
    """One field at one physical point, written out."""
    number = WHOLE.net_of(name)
    net, h = WHOLE.nets[number], None
    h = jnp.stack([(x[a] - c) / w for a, c, w in zip(net.axes, net.centre, net.half_width, strict=True)])
    *hidden, (weight, bias) = WHOLE.layers(weights)[number]
    for w, b in hidden:
        h = {"tanh": jnp.tanh, "sin": jnp.sin}[net.mlp.activation](h @ w + b)
    column = net.fields.index(name)
    out = (h @ weight + bias)[column]
    out = jnp.log1p(jnp.exp(out)) if net.positive else out
    return net.offset[column] + net.scale[column] * out


@pytest.mark.parametrize("name", ["v", "q", "kappa"])
def test_physical_derivatives_of_every_kind_of_field(name: str) -> None:
    """Scales of 60 and 1/100, coordinates in thousandths, a positive field, fields of some coordinates only."""
    t, x = theta(), jnp.asarray(np.random.default_rng(5).uniform(*BOX, (4, 3)))
    indices = [i for n in range(ORDER + 1) for i in combinations_with_replacement(range(3), n)]

    def carried(t: jax.Array) -> list[jax.Array]:
        get = WHOLE.getter(WHOLE.tapes(t, x, {name: indices}))
        return [get(name, i) for i in indices]

    def nested(t: jax.Array) -> list[jax.Array]:
        functions = [lambda x: plain(t, name, x)]
        for _ in range(ORDER):
            functions.append(jax.jacfwd(functions[-1]))
        values = [jax.vmap(f)(x) for f in functions]
        return [values[len(i)][(..., *i)] for i in indices]

    for index, found, expected in zip(indices, jax.jit(carried)(t), jax.jit(nested)(t), strict=True):
        scale = float(jnp.max(jnp.abs(expected)))
        assert float(jnp.max(jnp.abs(found - expected))) <= 1e-10 * scale, index
        if not set(index) <= set(WHOLE.nets[WHOLE.net_of(name)].axes):
            assert not jnp.any(found)
            assert scale == 0.0


def test_only_the_networks_that_are_asked_run() -> None:
    needs = WHOLE.needs({"q": [(2, 2), (1,)], "u": [(0,)], "v": [(1,)]})
    assert needs == {0: ((), (0,), (1,)), 1: ((), (0,), (0, 0))}  # q's own first coordinate is the third
    assert WHOLE.needs({"kappa": [(0, 2)]}) == {2: ((),)}


def test_theta_is_one_vector_with_named_parts() -> None:
    t = theta()
    entries = WHOLE.entries()
    covered = np.zeros(WHOLE.size, dtype=int)
    for one in entries.values():
        covered[one] += 1
    assert (covered == 1).all()
    assert t.shape == (WHOLE.size,)
    assert WHOLE.network_size == WHOLE.size - 3
    np.testing.assert_array_equal(WHOLE.flatten(WHOLE.layers(t), WHOLE.raw(t)), t)
    np.testing.assert_array_equal(t[entries["unknown.b"]], WHOLE.raw(t)[1:2])
    np.testing.assert_array_equal(t[entries["net1.1.weight"]].reshape(4, 1), WHOLE.layers(t)[1][1][0])
    assert WHOLE.unknown_names == ("a", "b", "c")


def test_a_fresh_start_is_at_the_guesses() -> None:
    t = WHOLE.initial(stream(0, "init"))
    np.testing.assert_array_equal(t, WHOLE.initial(stream(0, "init")))
    assert not np.array_equal(t, WHOLE.initial(stream(1, "init")))
    for unknown in UNKNOWNS:
        np.testing.assert_allclose(WHOLE.unknowns(t)[unknown.name], unknown.guess, rtol=1e-14)
    x = jnp.asarray(np.random.default_rng(6).uniform(*BOX, (3, 3)))
    get = WHOLE.getter(WHOLE.tapes(t, x, {"q": [(), (2,)], "kappa": [()]}))
    np.testing.assert_allclose(get("q", ()), 0.5, rtol=1e-15)
    np.testing.assert_allclose(get("kappa", ()), 7.0, rtol=1e-15)
    assert not jnp.any(get("q", (2,)))


def test_glorot_limits() -> None:
    (weight, bias), *_ = WHOLE.layers(WHOLE.initial(stream(0, "init")))[0]
    assert float(jnp.max(jnp.abs(weight))) <= math.sqrt(6.0 / 8.0)
    assert not jnp.any(bias)


@pytest.mark.parametrize(
    "given",
    [{"widths": ()}, {"widths": (0,)}, {"widths": (True,)}, {"widths": (2.5,)}, {"widths": (5,) * 101},
     {"widths": (70000,)}, {"widths": ("5",)}, {"widths": None}, {"widths": 2.5}, {"widths": "5"}, {"widths": {3: 4}},
     {"activation": "relu"}, {"activation": "silu"}, {"activation": None}, {"activation": ["tanh"]}],
    ids=repr,
)  # fmt: skip
def test_a_bad_architecture_is_refused(given: dict) -> None:
    with pytest.raises(InputError) as caught:
        MLP(**given)
    assert caught.value.field == next(iter(given))
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_one_width_is_one_layer() -> None:
    assert MLP(7).widths == (7,)  # type: ignore[arg-type]
    assert MLP([3, 4]).widths == (3, 4)  # type: ignore[arg-type]
