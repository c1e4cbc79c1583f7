"""What a residual may write about a field, and what it is told when it writes something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._errors import InputError
from tgsr._jax import computing
from tgsr.loss._terms import build_terms
from tgsr.problem import Points, Problem
from tgsr.problem._fields import FieldView, Index


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def field(*coordinates: str) -> FieldView:
    """A field whose derivatives are recognised by their numbers: 1, 2, 3 plus 100 i0 + 10 i1 + i2 ... counted from 1."""

    def get(index: Index) -> jax.Array:
        return jnp.array([1.0, 2.0, 3.0]) + float("".join(str(i + 1) for i in index) or 0) * 10

    return FieldView("u", coordinates, get)


def which(derivative: jax.Array) -> str:
    return str(round(float(derivative[0] - 1.0) / 10))


U = field("x", "t", "y")
V = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda u: u.x, "1"), (lambda u: u.t, "2"), (lambda u: u.xx, "11"), (lambda u: u.xt, "12"),
        (lambda u: u.tx, "12"), (lambda u: u.yx, "13"), (lambda u: u.xxxx, "1111"), (lambda u: u.yxt, "123"),
        (lambda u: u.d("x", 3), "111"), (lambda u: u.d("x", 2, "t", 1), "112"), (lambda u: u.d("t", "x"), "12"),
        (lambda u: u.d("y"), "3"), (lambda u: u.d("y", 1, "x", 3), "1113"), (lambda u: u.value, "0"),
    ],
    ids=count(),
)  # fmt: skip
def test_derivatives(ask: Callable[[FieldView], jax.Array], index: str) -> None:
    assert which(ask(U)) == index


def test_laplacian() -> None:
    np.testing.assert_array_equal(U.laplacian("x", "y"), U.xx + U.yy)
    np.testing.assert_array_equal(U.laplacian("t"), U.tt)


def test_coordinates_of_several_letters() -> None:
    u = field("r", "theta", "rho")
    assert [which(d) for d in (u.r, u.theta, u.rho, u.rrho, u.thetatheta, u.rhor, u.rthetar)] == [
        "1", "2", "3", "13", "22", "13", "112",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: U.z, "'z': field 'u' has no derivative 'z'. The coordinates are x, t, y."),
        (lambda: U.xz, "no derivative 'xz'"), (lambda: U.T, "no derivative 'T'"), (lambda: U.mean, "'mean'"),
        (lambda: U.xxxxx, "order 5. Orders up to 4"), (lambda: U.d("x", 5), "order 5"),
        (lambda: U.d("x", 10**12), "not a derivative"), (lambda: U.d("z"), "no coordinate 'z'"),
        (lambda: U.d(), "u.d() is not"), (lambda: U.d(2), "u.d(2)"), (lambda: U.d("x", 0), "not a derivative"),
        (lambda: U.d("x", True), "not a derivative"), (lambda: U.d("x", 1.0), "not a derivative"),
        (lambda: U.d("x", -1), "not a derivative"), (lambda: U.d(None), "not a derivative"),
        (lambda: U.laplacian(), "needs its coordinates"), (lambda: U.laplacian("z"), "no coordinate 'z'"),
        (lambda: field("x", "xx").xx, "more than one way"), (lambda: field("a", "ab", "b").ab, "more than one way"),
        (lambda: field("x", "xx").xxx, "more than one way"), (lambda: jax.jit(lambda u: u.x)(U), "outside of jax.jit"),
    ],
    ids=count(),
)  # fmt: skip
def test_what_is_no_derivative(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        ask()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    assert caught.value.field


def test_an_attribute_that_is_missing_is_missing() -> None:
    assert not hasattr(U, "aval")
    assert not hasattr(U, "_secret")


@pytest.mark.parametrize(
    "function",
    [
        lambda u: u + 1, lambda u: 1 - u, lambda u: 2.0 * u, lambda u: u / 3, lambda u: 3 / u, lambda u: u**2,
        lambda u: 2.0**u, lambda u: u % 2, lambda u: u // 2, lambda u: 7 // u, lambda u: -u, lambda u: +u,
        lambda u: abs(-u), lambda u: u < 2, lambda u: u >= 2, lambda u: u == 2, lambda u: u != 2, lambda u: V - u,
        lambda u: u * jnp.asarray(V), lambda u: jnp.asarray(V) * u, lambda u: jnp.asarray(V) - u, lambda u: V * u, lambda u: u - V,
        lambda u: V / u, lambda u: np.float64(2.0) * u, lambda u: np.float64(2.0) ** u,
        lambda u: u > V, lambda u: jnp.float64(2.0) - u, lambda u: u * u, lambda u: u - 2 * u,
        lambda u: jnp.sin(u), lambda u: jnp.exp(-u), lambda u: jnp.where(u > 1, u, 0.0), lambda u: jnp.maximum(u, 2.0),
        lambda u: jnp.power(u, 3), lambda u: jnp.stack([u, u])[0], lambda u: jnp.clip(u, 1.5, 2.5),
        lambda u: jnp.ones_like(u), lambda u: jnp.asarray(u), lambda u: jnp.select([u > 1], [u], 0.0),
        lambda u: jnp.hypot(u, u), lambda u: jax.nn.softplus(u), lambda u: jnp.tanh(u) * jnp.sign(u),
    ],
    ids=count(),
)  # fmt: skip
def test_a_field_is_an_array_of_its_values(function: Callable[[Any], Any]) -> None:
    found, expected = function(U), function(V)
    assert isinstance(found, jax.Array)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_two_fields_and_shape() -> None:
    np.testing.assert_array_equal(U * field("x") + U, V * V + V)
    assert (U.shape, U.ndim, U.size, U.dtype, repr(U)) == ((3,), 1, 3, np.dtype(float), "<field u>")


def if_(u: Any) -> Any:
    return u.t if u > 0 else u.x


def float_(u: Any) -> Any:
    return u.t * float(u)


def numpy_(u: Any) -> Any:
    return u.t - np.sin(u)


def numpy_of_derivative(u: Any) -> Any:
    return np.sin(u.t)


def math_(u: Any) -> Any:
    return u.t - math.sin(u)


def while_(u: Any) -> Any:
    while jnp.any(u > 0):
        u = u - 1
    return u


def int_(u: Any) -> Any:
    return u.t * int(u.x[0])


def lax_(u: Any) -> Any:
    return u.t - jax.lax.sin(u)


def index_(u: Any) -> Any:
    return u[0]


def zero_(u: Any) -> Any:
    return u.t / (1 / 0)


def attribute_(u: Any) -> Any:
    return u.t.foo


def jit_(u: Any) -> Any:
    return jax.jit(lambda u: u.x)(u)


def wrong_name(u: Any) -> Any:
    return u.q


@pytest.mark.parametrize(
    ("residual", "says"),
    [
        (if_, "jnp.where"), (float_, "jnp.where"), (math_, "instead of numpy or math"), (int_, "jax.numpy"),
        (while_, "jnp.where"), (numpy_of_derivative, "instead of numpy"), (numpy_, "jax.numpy"),
        (lax_, "u.value"), (index_, "u.value"), (zero_, "ZeroDivisionError"), (attribute_, "AttributeError"),
        (jit_, "outside of jax.jit"), (wrong_name, "no derivative 'q'"),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)  # fmt: skip
def test_a_residual_that_cannot_be_is_named(residual: Callable[..., Any], says: str) -> None:
    problem = Problem(coordinates={"x": (0, 1), "t": (0, 1)}, fields=["u"], residuals=[residual])
    with pytest.raises(InputError) as caught:
        build_terms(problem, Points(5))
    assert says in str(caught.value)
    assert residual.__name__ in str(caught.value) or caught.value.field in ("q", "x")
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
