"""The one door to JAX: the version rule, scoped float64, a pinned thread count, and the start-up canary.

The user's process keeps its own JAX settings: precision is a scoped context, and the thread count is an
environment variable of the moment in which the CPU backend starts, put back at once.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator

from tgsr._errors import InstallationError

TESTED = ("0.10.1",)
BROKEN = {"0.10.2": "it miscomputes batched small matrix products on CPU (jax-ml/jax issue 39103)"}
# The order in which XLA sums depends on its number of threads. A fixed number, whatever the machine, gives the
# same bits on one core and on two; small PINN products gain nothing from more.
DEFAULT_THREADS = 2
_threads: int | None = None
_devices = 1


def use_devices(count: int) -> None:
    """Let JAX see the processor as at least `count` devices. Only before the first computation of the process."""
    global _devices
    if _started.cache_info().currsize and count != _devices:
        raise InstallationError("the number of devices cannot change once computing has begun")
    _devices = count


def use_threads(count: int) -> None:
    """Let XLA use `count` threads. Only before the first computation of the process."""
    global _threads
    if _started.cache_info().currsize and count != _threads:
        raise InstallationError("the thread count cannot change once computing has begun")
    _threads = count


@functools.lru_cache(maxsize=1)
def _started() -> int:
    """Start the CPU backend with a fixed thread count (once per process); returns that count."""
    global _threads
    import jax
    import jaxlib

    installed = jaxlib.__version__  # pyright: ignore[reportPrivateImportUsage]
    if installed in BROKEN:
        raise InstallationError(
            f"jaxlib {installed} cannot be used: {BROKEN[installed]}",
            remedy=f"Install a tested version: pip install 'jax=={TESTED[-1]}'",
        )
    from jax._src import xla_bridge  # no public way to ask whether a backend exists already

    if xla_bridge.backends_are_initialized():  # the user's own JAX was first: its threads are what we have
        _threads = int(os.environ.get("NPROC", 0)) or len(os.sched_getaffinity(0))
        _threads = max(_threads, jax.local_device_count("cpu"))
        return _threads
    if _devices > 1:
        jax.config.update("jax_num_cpu_devices", _devices)
    before = os.environ.get("NPROC")
    _threads = _threads or int(before or DEFAULT_THREADS)
    os.environ["NPROC"] = str(_threads)
    try:
        # XLA starts a thread for every device of a processor, and lets all of them share the work of one.
        _threads = max(_threads, jax.local_device_count("cpu"))
    finally:
        if before is None:
            del os.environ["NPROC"]
        else:
            os.environ["NPROC"] = before
    return _threads


def thread_count() -> int:
    """How many threads XLA uses on this CPU (starts the backend)."""
    return _started()


@functools.lru_cache(maxsize=1)
def _blas():
    import scipy.linalg  # noqa: F401  # pyright: ignore[reportUnusedImport]  JAX calls LAPACK through it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_depth = 0


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Everything numerical happens in here: float64 on, full-precision products, one LAPACK thread.

    One LAPACK thread because a factorisation's bits depend on their number, and a second one gains about a tenth.
    """
    global _depth
    import jax

    from tgsr._canary import trusted

    if _depth:  # nested: the settings hold already
        yield
        return
    _started()
    _depth += 1
    try:
        with jax.enable_x64(True), jax.default_matmul_precision("highest"), _blas().limit(limits=1, user_api="blas"):
            trusted()
            yield
    finally:
        _depth -= 1
