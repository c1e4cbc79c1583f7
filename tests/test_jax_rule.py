"""The one door to JAX: the user's settings stay, the canary refuses, a broken release is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

import tgsr
from tgsr import _canary, _jax
from tgsr._jax import computing

PATH = os.pathsep.join(map(os.path.abspath, sys.path))

GUEST = """
import os, json, sys
first = sys.argv[1] == "jax first"
if first:
    import jax, jax.numpy as jnp
    jnp.zeros(1).block_until_ready()
import numpy as np, tgsr
from tgsr._jax import computing, thread_count
before = os.environ.get("NPROC")
def decay(x, a):
    return x.t + a * x
t = np.linspace(0.0, 1.0, 5)
problem = tgsr.Problem(coordinates={"t": (0.0, 1.0)}, fields=["x"], unknowns=[tgsr.Unknown("a", guess=1.0)],
                       residuals=[decay], data=[tgsr.Data({"t": t}, {"x": np.exp(-t)}, noise=0.1)])
result = tgsr.solve(problem, network=tgsr.MLP((2,)), training=tgsr.Training(
    phases=(tgsr.Adam(epochs=1, inner=2),), points=tgsr.Points(interior=4)))
import jax, jax.numpy as jnp
print(json.dumps({
    "x64": bool(jax.config.jax_enable_x64), "dtype": str(jnp.zeros(1).dtype), "nproc": os.environ.get("NPROC"),
    "same": os.environ.get("NPROC") == before, "threads": thread_count(), "told": result.provenance["threads"],
    "precision": str(jax.config.jax_default_matmul_precision), "weights": str(result.network.weights[0].dtype),
}))
"""


@pytest.mark.parametrize(("first", "nproc"), [("tgsr first", None), ("jax first", "3")])
def test_the_users_process_keeps_its_settings(first: str, nproc: str | None) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "NPROC"} | {"PYTHONPATH": PATH}
    environment |= {"NPROC": nproc} if nproc else {}
    done = subprocess.run([sys.executable, "-c", GUEST, first], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    threads = int(nproc or _jax.DEFAULT_THREADS)
    assert seen == {
        "x64": False, "dtype": "float32", "nproc": nproc, "same": True, "threads": threads, "told": threads,
        "precision": "None", "weights": "float64",
    }  # fmt: skip


def test_settings_hold_inside_and_only_there() -> None:
    before = jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision
    with computing(), computing():
        assert jnp.zeros(1).dtype == np.float64
        assert jax.config.jax_default_matmul_precision == "highest"
    assert (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision) == before
    with pytest.raises(ZeroDivisionError), computing():
        raise ZeroDivisionError
    assert (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision) == before


def test_threads_cannot_change_once_computing_has_begun() -> None:
    count = _jax.thread_count()
    _jax.use_threads(count)
    with pytest.raises(tgsr.InstallationError, match="cannot change"):
        _jax.use_threads(count + 1)
    assert _jax.thread_count() == count


def test_the_broken_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxlib, "__version__", "0.10.2")
    with pytest.raises(tgsr.InstallationError, match=r"jaxlib 0\.10\.2 cannot be used.*39103.*pip install") as refused:
        _jax._started.__wrapped__()
    assert refused.value.exit_code == 3


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tgsr" / "canary.json"


def verdict() -> str:
    with jax.enable_x64(True):
        return _canary.trusted.__wrapped__()


def test_the_canary_passes_and_its_verdict_is_kept(cache: Path) -> None:
    assert verdict() == "checked"
    assert list(json.loads(cache.read_text()).values()) == ["passed"]
    assert jaxlib.__version__ in cache.read_text()
    assert verdict() == "cached"
    assert [p.name for p in cache.parent.iterdir()] == ["canary.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"other": "passed"}', b"\xff\xfe"])
def test_a_cache_that_says_nothing_is_asked_again(
    cache: Path, content: str | bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.mkdir()
    cache.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setattr(_canary, "failures", list)
    assert verdict() == "checked"
    assert verdict() == "cached"


def test_a_cache_that_cannot_be_written_costs_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.parent.write_text("no folder")
    monkeypatch.setattr(_canary, "failures", list)
    assert verdict() == "checked"


def test_a_wrong_kernel_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tanh = jnp.tanh
    monkeypatch.setattr(jnp, "tanh", lambda x: tanh(x).at[-1].add(1e-6))  # one row in forty thousand
    with pytest.raises(tgsr.InstallationError, match=r"layer at 40000 points: 1 wrong values.*pip install") as refused:
        verdict()
    assert refused.value.exit_code == 3
    assert not cache.exists()
