"""The native passes as a shared library: compiled by the user's own g++ at first use, for this processor, and kept.

Never required: what stands in the way is a sentence, and the JAX passes run instead. The library lies in the user's
cache folder under a name that follows from its source, the flags, the compiler, the processor and XLA's headers, so a
stale one cannot be loaded. A file lock lets one process build while others wait; the finished library is moved into
place in one step. A freshly built one has to give the right numbers before it is kept (`_native.trusted`).
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tgsr._canary import cache_folder, cpu_name
from tgsr._errors import plain

SOURCES = Path(__file__).parent / "native"
FLAGS = "-O3 -march=native -std=c++17 -ffp-contract=fast -fno-math-errno -shared -fPIC -w".split()
TIMEOUT = 300  # seconds
ISA = {64: "avx512", 32: "avx2", 16: "128 bit"}


class NativeUnavailableError(Exception):
    """Why the native passes cannot be used here."""


@dataclass(frozen=True)
class Library:
    """The loaded passes."""

    path: Path
    compiler: str
    key: str
    handle: ctypes.CDLL = field(repr=False, compare=False)

    @property
    def label(self) -> str:
        """What a run's record calls this engine: equal labels give equal bits on one processor."""
        return f"native {ISA.get(self.handle.tgsr_vector_bytes(), '?')} {self.key[:8]}"

    def target(self, which: str, dtype: str) -> str:
        """The name under which XLA knows a pass."""
        return _registered(self, f"tgsr_{which}_{dtype}")


@functools.cache
def _registered(library: Library, symbol: str) -> str:
    import jax

    name = f"{symbol}_{library.key[:16]}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library.handle, symbol)), platform="cpu")
    return name


def library() -> Library:
    """The passes, built if need be; raises `NativeUnavailableError`."""
    found = _found()
    if isinstance(found, str):
        raise NativeUnavailableError(found)
    return found


@functools.lru_cache(maxsize=1)
def _found() -> Library | str:
    """Tried once per process: what fails would fail again, and costs seconds."""
    try:
        return _loaded()
    except NativeUnavailableError as error:
        return str(error)
    except OSError as error:
        return f"the library cannot be kept or loaded: {plain(error, 200)}"


def _loaded() -> Library:
    compiler = shutil.which("g++")
    if compiler is None:
        raise NativeUnavailableError("there is no g++ on the path")
    about = f"{_output([compiler, '-dumpfullversion'])} {_output([compiler, '-dumpmachine'])}"
    key = _key(about)
    path = cache_folder() / "native" / f"{key}.so"
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path.parent / "lock"):
            if not path.exists():  # another process may have been faster
                _build(compiler, path, about, key)
    if path.stat().st_uid != os.getuid():
        raise NativeUnavailableError(f"{path} belongs to another user")
    return Library(path, f"g++ {about.split()[0]}", key, ctypes.CDLL(str(path)))


def _key(compiler: str) -> str:
    digest = hashlib.sha256(f"{compiler}|{' '.join(FLAGS)}|{cpu_name()}".encode())
    digest.update(importlib.metadata.version("jaxlib").encode())
    for source in sorted(SOURCES.iterdir()):
        if source.suffix in (".h", ".cc"):
            digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def _build(compiler: str, path: Path, about: str, key: str) -> None:
    import jax

    from tgsr.network._native import trusted

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # the same file system, for the last step
        made = Path(folder) / "native.so"
        command = [compiler, *FLAGS, f"-I{jax.ffi.include_dir()}", str(SOURCES / "kernel.cc"), "-o", str(made)]
        _output(command)
        wrong = trusted(Library(path, about, f"trial-{key}", ctypes.CDLL(str(made))))
        if wrong:
            raise NativeUnavailableError(f"what g++ built computes wrong numbers: {wrong}")
        os.replace(made, path)


def _output(command: list[str]) -> str:
    """What a command prints; its first error as the reason if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise NativeUnavailableError(f"{command[0]} took longer than {TIMEOUT} s") from None
    if done.returncode:
        errors = re.findall(r"^.*error.*$", done.stderr, re.MULTILINE) or done.stderr.splitlines() or ["no message"]
        raise NativeUnavailableError(f"g++ failed: {plain(errors[0], 200)}")
    return done.stdout.strip()


@contextmanager
def _locked(path: Path) -> Iterator[Any]:
    """Hold a lock that ends with the process at the latest."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
