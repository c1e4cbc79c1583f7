"""The loss of whole problems by the native engine against JAX, and which engine is taken."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tgsr._errors import InputError
from tgsr._solve import _engine_of
from tgsr.loss import _engine, build_objective, engine_label
from tgsr.network._propagate import MLP
from tgsr.problem import Points

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@needs_compiler
@pytest.mark.parametrize("name", ["burgers", "anisotropic", "flow", "kdv"])
def test_loss_parts_and_gradient_are_those_of_jax(case: Callable[[str], Any], hurry: Any, name: str) -> None:
    """Collapsed operators with coefficients of position and unknowns; several fields; what only JAX serves beside."""
    one = case(name).with_blocks(3)
    native = replace(one.objective, engine="native")
    assert native != one.objective
    free = one.controls._replace(mask=jnp.ones_like(one.controls.mask))
    found = hurry(native.closure)(one.theta, one.batch, free)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(one.program(one.theta, one.batch, free)), strict=True):
        assert float(jnp.max(jnp.abs(a - b))) <= 1e-12 * float(jnp.max(jnp.abs(b)))


def built(case: Callable[[str], Any], engine: str, mlp: MLP | None = None) -> str:
    return build_objective(case("burgers").objective.problem, mlp or MLP((4,)), Points(9, 5, 5), engine=engine).engine


@needs_compiler
def test_auto_takes_it_where_the_work_is_long(case: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert built(case, "auto") == "jax"
    assert built(case, "native") == "native"
    monkeypatch.setattr(_engine, "LEAST", 1)
    assert built(case, "auto") == "native"
    assert built(case, "jax") == "jax"
    assert built(case, "auto", MLP((4,), "sin")) == "jax"
    assert engine_label("native").startswith("native ")
    assert engine_label("jax") == "jax"


def test_what_cannot_run_is_refused_by_name_and_left_out_by_auto(
    case: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_engine, "reason_against", lambda: "there is no g++ on the path")
    monkeypatch.setattr(_engine, "LEAST", 1)
    assert built(case, "auto") == "jax"
    with pytest.raises(InputError, match=r"cannot run: there is no g\+\+"):
        built(case, "native")
    monkeypatch.setattr(_engine, "reason_against", lambda: None)
    with pytest.raises(InputError, match="it serves tanh networks"):
        built(case, "native", MLP((4,), "sin"))
    with pytest.raises(InputError, match="engine is 'fast'"):
        built(case, "fast")


def test_a_run_goes_on_without_the_native_engine_if_it_began_so() -> None:
    def run(engine: str | None, checkpoint: object = 1) -> Any:
        before = None if engine is None else {"engine": engine}
        return SimpleNamespace(environment=lambda: before, load_checkpoint=lambda: checkpoint)

    assert _engine_of(run("jax"), "auto") == "jax"
    assert _engine_of(run("jax"), "native") == "native"  # and is refused: another environment
    assert _engine_of(run("native avx512 0123"), "auto") == "auto"
    assert _engine_of(run("jax", None), "auto") == _engine_of(run(None), "auto") == "auto"


@needs_compiler
def test_single_precision(case: Callable[[str], Any]) -> None:
    one = case("burgers").with_blocks(2)
    native = replace(one.objective, engine="native")
    given = jax.tree.map(lambda a: a.astype("float32"), (one.theta, one.batch, one.controls))
    with jax.enable_x64(False):
        (loss, _), gradient = jax.jit(native.closure)(*given)
        (expected, _), truth = jax.jit(one.objective.closure)(*given)
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    assert float(jnp.max(jnp.abs(gradient - truth))) <= 1e-5 * float(jnp.max(jnp.abs(truth)))
