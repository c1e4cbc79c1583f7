"""The native passes against the JAX ones: values, and slopes with respect to weights, points and coefficients."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._jax import computing
from tgsr.network import _build
from tgsr.network._channels import Index, closed
from tgsr.network._native import propagate_native, rules, serves, trusted
from tgsr.network._propagate import Tape, initial_layers, propagate

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
HURRY = {"xla_backend_optimization_level": 0}
BARS = {"float64": 1e-12, "float32": 1e-5}


class Case(NamedTuple):
    widths: tuple[int, ...]  # inputs, hidden layers, outputs
    wanted: tuple[Index, ...]
    operators: tuple[tuple[Index, ...], ...]
    points: int
    dtype: str = "float64"


PLANE = ((0, 0), (1, 1), (2,), (0,))
CASES = [
    Case((3, 100, 100, 1), ((0,), (1,)), (PLANE,), 1000),
    Case((3, 100, 100, 1), ((0,), (1,)), (PLANE,), 1000, "float32"),
    Case((3, 17, 17, 3), ((0,), (1,)), (PLANE,), 17),
    Case((1, 100, 2), (), (), 1000),
    Case((1, 3, 1, 1), ((0, 0),), (), 1),
    Case((2, 1, 100, 17, 1), ((0, 0), (0, 1), (1, 1)), (), 16),
    Case((2, 1, 100, 17, 1), ((0, 0), (0, 1), (1, 1)), (), 15, "float32"),
    Case((4, 64, 65, 2), ((0,), (1,), (2,), (3,)), (((0, 0), (1, 2), (3,)), ((3, 3),)), 130),
    Case((4, 16, 1), ((0,), (1,), (2,), (3,)), (((0, 0), (1, 2), (3,)), ((3, 3),)), 1, "float32"),
    Case((2, 70, 56, 85, 1), ((0, 0), (0, 1)), (), 61, "float32"),  # 6, 8 and 5 columns beyond whole vectors
    Case((2, 8, 1), ((1,),), (((0,),),), 33),
    Case((2, 128, 33, 2), ((0, 1),), (), 0),
    Case((2, 5, 1), (), (), 0, "float32"),
]


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield


def arrays(case: Case) -> tuple[Any, ...]:
    """(layers, points, coefficients), and weights of a loss that uses every output."""
    rng = np.random.default_rng(sum(case.widths))
    fresh = initial_layers(case.widths[0], case.widths[1:-1], case.widths[-1], rng)
    layers = [(1.5 * weight, jnp.asarray(rng.normal(0.0, 0.4, bias.shape))) for weight, bias in fresh]
    n, rows = case.points, len(closed(case.wanted)) + len(case.operators)
    x = rng.uniform(-1.0, 1.0, (n, case.widths[0]))
    coefficients = [rng.normal(size=(len(operator), n)) for operator in case.operators]
    given = (layers, x, coefficients), rng.normal(size=(rows, n, case.widths[-1]))
    return jax.tree.map(lambda a: jnp.asarray(a, case.dtype), given)


def loss(engine: Callable[..., Tape], case: Case) -> Callable[..., Any]:
    """A sum that is quadratic in every output channel, with the channels themselves beside it."""

    def function(given: Any, weights: jax.Array) -> Any:
        layers, x, coefficients = given
        operators = [dict(zip(o, c, strict=True)) for o, c in zip(case.operators, coefficients, strict=True)]
        tape = engine(layers, x, closed(case.wanted), operators=operators)
        rows = jnp.stack([jnp.broadcast_to(a, weights.shape[1:]) for a in (*tape.outputs.values(), *tape.operators)])
        return jnp.sum(weights * rows + rows**2), rows

    return function


def jax_engine(layers: Any, x: Any, channels: Any, operators: Sequence[Any] = ()) -> Tape:
    return propagate(layers, x, channels, "tanh", operators)


def slopes(engine: Callable[..., Tape], case: Case) -> Callable[..., Any]:
    return jax.jit(jax.value_and_grad(loss(engine, case), has_aux=True), compiler_options=HURRY)


@needs_compiler
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{'-'.join(map(str, c.widths))} at {c.points} {c.dtype}")
def test_values_and_slopes_are_those_of_jax(case: Case) -> None:
    given, weights = arrays(case)
    (_, rows), found = slopes(propagate_native, case)(given, weights)
    (_, expected_rows), expected = slopes(jax_engine, case)(given, weights)
    assert rows.shape == expected_rows.shape
    for a, b in zip(jax.tree.leaves((rows, found)), jax.tree.leaves((expected_rows, expected)), strict=True):
        assert a.dtype == b.dtype == case.dtype
        if b.size:
            assert float(jnp.max(jnp.abs(a - b))) <= BARS[case.dtype] * max(float(jnp.max(jnp.abs(b))), 1e-300)


@needs_compiler
def test_far_out_nothing_overflows_and_a_nan_stays_one() -> None:
    case = Case((1, 1, 1), ((0, 0),), (), 6)
    one = jnp.ones((1, 1))
    x = jnp.asarray([[-1e6], [-30.0], [1e-9], [30.0], [1e6], [np.nan]])
    (value, first, second) = propagate_native([(one, one[0] * 0), (one, one[0] * 0)], x, closed(case.wanted))[
        0
    ].values()
    np.testing.assert_allclose(value[:, 0], np.tanh(x[:, 0]), rtol=1e-15)
    np.testing.assert_allclose(first[:5, 0], 1.0 - np.tanh(x[:5, 0]) ** 2, rtol=1e-13, atol=1e-15)
    assert np.isfinite(np.asarray(second)[:5]).all()
    assert np.isnan(np.asarray(second)[5]).all()


@needs_compiler
def test_the_same_bits_in_a_scan_under_vmap_and_from_many_threads() -> None:
    case = CASES[7]
    given, weights = arrays(case)
    function = slopes(propagate_native, case)
    first = jax.tree.leaves(function(given, weights))

    def same(again: Any) -> bool:
        return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(again), first, strict=True))

    def once(_: int) -> bool:
        with jax.enable_x64(True):  # settings belong to a thread
            return same(function(given, weights))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(once, range(40)))
    plain = jax.value_and_grad(loss(propagate_native, case), has_aux=True)
    twice = jax.tree.map(lambda a: jnp.stack([a, a]), (given, weights))
    scanned = jax.jit(lambda t: jax.lax.scan(lambda c, a: (c, plain(*a)), 0, t)[1], compiler_options=HURRY)(twice)
    mapped = jax.jit(lambda t: jax.vmap(plain)(*t), compiler_options=HURRY)(twice)
    for many in (scanned, mapped):
        for row in (0, 1):
            assert same(jax.tree.map(lambda a, row=row: a[row], many))


BITS = """
import hashlib, jax, jax.numpy as jnp, numpy as np
from tgsr._jax import computing, thread_count
from tgsr.network._native import propagate_native
rng = np.random.default_rng(0)
sizes, channels = ((2, 40), (40, 40), (40, 1)), ((), (0,), (1,), (0, 1))
with computing():
    layers = [(jnp.asarray(rng.normal(size=s) / 5), jnp.asarray(rng.normal(size=s[1]))) for s in sizes]
    x = jnp.asarray(rng.normal(size=(1300, 2)))
    def loss(layers):
        return sum(jnp.sum(o**2) for o in propagate_native(layers, x, channels).outputs.values())
    bits = b"".join(np.asarray(a).tobytes() for a in jax.tree.leaves(jax.grad(loss)(layers)))
    print(thread_count(), hashlib.sha256(bits).hexdigest())
"""


@needs_compiler
def test_the_same_bits_on_one_thread_and_on_three() -> None:
    answers = []
    for threads in ("1", "3"):
        run = subprocess.run(
            [sys.executable, "-c", BITS],
            env=os.environ | {"NPROC": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append(run.stdout.split())
    assert [a[0] for a in answers] == ["1", "3"]
    assert answers[0][1] == answers[1][1]


def test_what_it_serves() -> None:
    assert serves("tanh", closed([(0, 0), (0, 1)]), 2)
    assert not serves("sin", ((),))
    assert not serves("tanh", closed([(0, 0, 0)]))
    assert not serves("tanh", ((),), 64)


def test_rules_of_mixed_derivatives_and_operators() -> None:
    starts, terms = rules(closed([(0, 1)]), (((1, 1), (0,)), ((0, 0),)))
    assert starts.reshape(-1, 3).tolist() == [[1, 0, -1], [2, 1, -1], [4, 0, 1]]
    assert terms.reshape(-1, 4).tolist() == [[3, 1, 2, -1], [4, 2, 2, 0], [5, 1, 1, 2]]


# ---- building


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache, and nothing remembered of it afterwards."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _build._found.cache_clear()
    yield tmp_path
    _build._found.cache_clear()


def why() -> str:
    with pytest.raises(_build.NativeUnavailableError) as error:
        _build.library()
    return str(error.value)


def test_without_a_compiler_it_says_so(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(unbuilt))
    assert why() == "there is no g++ on the path"


@needs_compiler
def test_a_build_that_fails_leaves_nothing_behind(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_build, "FLAGS", [*_build.FLAGS, "-fno-such-flag"])
    assert "g++ failed" in why()
    assert [path.name for path in (unbuilt / "tgsr" / "native").iterdir()] == ["lock"]


@needs_compiler
def test_a_cache_that_cannot_be_written_is_no_accident(unbuilt: Path) -> None:
    (unbuilt / "tgsr").write_text("in the way")
    assert "cannot be kept or loaded" in why()


@needs_compiler
def test_a_library_is_kept_only_if_it_computes_right(unbuilt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, built = _build._output, []
    monkeypatch.undo()  # the user's own cache, for a library that is there already
    good = _build._loaded()
    monkeypatch.setenv("XDG_CACHE_HOME", str(unbuilt))

    def output(command: list[str]) -> str:
        if "-o" not in command:
            return real(command)
        built.append(command[0])
        shutil.copy(good.path, command[-1])
        return ""

    monkeypatch.setattr(_build, "_output", output)
    monkeypatch.setattr("tgsr.network._native.trusted", lambda found: "everything is 7")
    assert why() == "what g++ built computes wrong numbers: everything is 7"
    monkeypatch.setattr("tgsr.network._native.trusted", lambda found: "")
    _build._found.cache_clear()
    assert _build.library().path.parent == unbuilt / "tgsr" / "native"
    _build._found.cache_clear()
    assert _build.library().label == good.label
    assert len(built) == 2  # not for the third time
    assert trusted(good) == ""
