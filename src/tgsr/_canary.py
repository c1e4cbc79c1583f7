"""A start-up check that the installed compiler computes what it is asked: known-answer kernels against NumPy.

A release of jaxlib once returned wrong rows for small batched products without a word; nothing here runs on an
installation that does so. The verdict is kept per (jaxlib, CPU) in the user's cache folder.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import time
from pathlib import Path

from tgsr._errors import InstallationError

SIZES = (1, 7, 16384, 16385, 40000)


def cache_folder() -> Path:
    """Where facts about this machine are kept (never anything that a result depends on)."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "tgsr"


def cpu_name() -> str:
    """The processor's model and instruction-set flags, as a short fingerprint with a readable front."""
    name, flags = platform.processor() or platform.machine(), ""
    with_info = Path("/proc/cpuinfo")
    if with_info.exists():
        for line in with_info.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() == "flags":
                flags = value.strip()
                break
    return f"{name} [{hashlib.sha256(flags.encode()).hexdigest()[:8]}]"


def failures() -> list[str]:
    """Run the known-answer kernels; returns a sentence for each that is wrong."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rng = np.random.Generator(np.random.Philox(1))
    matrix = rng.normal(size=(3, 3))
    wrong = []

    @jax.jit
    def batched(x):
        return jax.vmap(lambda row: jnp.sum((jnp.asarray(matrix) @ row) ** 2))(x)

    @jax.jit
    def layer(x):
        return jnp.tanh(x @ jnp.asarray(matrix)).sum(axis=1)

    for n in SIZES:
        x = rng.normal(size=(n, 3))
        for name, ours, truth in (
            ("batched product", batched(x), ((x @ matrix.T) ** 2).sum(axis=1)),
            ("layer", layer(x), np.tanh(x @ matrix).sum(axis=1)),
        ):
            bad = int((~np.isclose(np.asarray(ours), truth, rtol=1e-9, atol=1e-12)).sum())
            if bad:
                wrong.append(f"{name} at {n} points: {bad} wrong values")
    return wrong


def _key() -> str:
    import jaxlib

    return f"jaxlib {jaxlib.__version__}, Python {platform.python_version()}, {cpu_name()}"  # pyright: ignore[reportPrivateImportUsage]


@functools.lru_cache(maxsize=1)
def trusted() -> str:
    """Refuse to compute where the canary fails. Returns how the verdict was reached ('checked', 'cached')."""
    path, key = cache_folder() / "canary.json", _key()
    try:
        if json.loads(path.read_text()).get(key) == "passed":
            return "cached"
    except (OSError, ValueError, AttributeError):
        pass  # no verdict on this machine yet: find one
    wrong = failures()
    if wrong:
        raise InstallationError(
            f"the start-up check failed ({'; '.join(wrong)}): this installation of JAX computes wrong numbers",
            remedy="Install a tested version: pip install 'jax==0.10.1' and run `tgsr doctor`",
        )
    with _ignoring_io():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}")
        temporary.write_text(json.dumps({key: "passed"}))
        temporary.replace(path)
    return "checked"


def _ignoring_io():
    """A cache that cannot be written only costs the check's quarter second again."""
    import contextlib

    return contextlib.suppress(OSError)
