"""`tgsr doctor`: can this installation be trusted to compute correctly, and with what does it compute?"""

from __future__ import annotations

import os
import shutil
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from tgsr import __version__
from tgsr._errors import TgsrError, plain
from tgsr.cli._options import json_option
from tgsr.cli._write import say, say_json

_CORE = (
    "jax",
    "jaxlib",
    "optax",
    "numpy",
    "scipy",
    "safetensors",
    "rich",
    "click",
    "matplotlib",
    "threadpoolctl",
)
_EXTRAS = {"data": ("pyarrow", "h5py", "h5netcdf"), "cluster": ("distributed",), "torch": ("torch",)}
_SETS = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512vl", "amx_tile", "asimd", "sve")


@click.command(name="doctor", short_help="Check that this installation computes correctly.")
@json_option
def command(as_json: bool) -> int:
    """Check this installation: known answers are computed for real, and what it computes with is listed.

    The exit code is 3 when it must not be used.
    """
    found = diagnosis()
    if as_json:
        say_json(found)
    else:
        _write(found)
    return 3 if found["problems"] else 0


def diagnosis() -> dict[str, Any]:
    """All about this installation, and `problems`: sentences with what to do, none when it is sound."""
    from tgsr._canary import cache_folder, cpu_name
    from tgsr._jax import BROKEN, TESTED

    versions = {"tgsr": __version__, **{name: _version(name) for name in _CORE}}
    problems = [f"{name} is not installed. Install tgsr again." for name, found in versions.items() if found is None]
    jaxlib = versions["jaxlib"]
    rule = "tested" if jaxlib in TESTED else f"not tested (tested: {', '.join(TESTED)})"
    cache = cache_folder()
    return {
        "versions": versions,
        "jax_rule": f"refused: {BROKEN[jaxlib]}" if jaxlib in BROKEN else rule,
        **_computed(problems),
        "processor": cpu_name(),
        "instructions": _instructions(),
        "cores": {"machine": os.cpu_count(), "usable": len(os.sched_getaffinity(0))},
        "cache": {"folder": str(cache), "writable": os.access(_existing(cache), os.W_OK)},
        "extras": {extra: {name: _version(name) for name in names} for extra, names in _EXTRAS.items()},
        "free_disk_bytes": shutil.disk_usage(Path.cwd()).free,
        "problems": problems,
    }


def _computed(problems: list[str]) -> dict[str, Any]:
    """What only a running JAX can tell; what is wrong with it joins `problems`."""
    from tgsr import _canary
    from tgsr._jax import computing

    about: dict[str, Any] = {"canary": "not run", "engine": None}
    if problems:
        return about
    try:
        with computing():
            began = time.perf_counter()
            wrong = _canary.failures()
            about["canary"] = (
                f"failed: {'; '.join(wrong)}" if wrong else f"passed in {time.perf_counter() - began:.2f} s"
            )
            if wrong:  # a verdict from better days must not let the next run through
                (_canary.cache_folder() / "canary.json").unlink(missing_ok=True)
                problems.append("JAX computes wrong numbers here. Install a tested version: pip install 'jax==0.10.1'.")
            from tgsr._provenance import environment
            from tgsr.loss import engine_label, reason_against

            why = reason_against()
            here = environment(engine=engine_label("jax" if why else "native"))
            about |= {key: here[key] for key in ("engine", "device", "threads", "dtype")}
            about["engine_why"] = (
                f"compiled by XLA; the native engine cannot run: {why}"
                if why
                else "built with g++ and gives JAX's numbers; for tanh networks and long closures, XLA for the rest"
            )
    except (TgsrError, ImportError, OSError) as error:
        about["canary"] = "not run"
        problems.append(plain(error, 1000))
    return about


def _write(found: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {number or 'MISSING'}" for name, number in found["versions"].items())
    cores, cache = found["cores"], found["cache"]
    lines = {
        "versions": versions,
        "JAX rule": f"jaxlib {found['versions']['jaxlib']}: {found['jax_rule']}",
        "start-up check": found["canary"],
        "engine": f"{found['engine']} ({found['engine_why']})" if found["engine"] else "not known",
        "threads": found.get("threads", "not known"),
        "precision": found.get("dtype", "not known"),
        "processor": f"{found['processor']}, {cores['usable']} of {cores['machine']} cores usable",
        "instructions": " ".join(found["instructions"]) or "not known",
        "cache": f"{cache['folder']} ({'writable' if cache['writable'] else 'not writable'})",
        "free disk": f"{found['free_disk_bytes'] / 2**30:.1f} GiB in this folder",
    }
    for extra, names in found["extras"].items():
        lines[f"extra {extra}"] = ", ".join(f"{name} {number or 'not installed'}" for name, number in names.items())
    for what, text in lines.items():
        say(f"{what:<15} {text}")
    for problem in found["problems"]:
        say(f"BROKEN: {problem}")
    if not found["problems"]:
        say("All is well.")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _instructions() -> list[str]:
    """The instruction sets that matter for speed, as the kernel names them."""
    try:
        words = set(Path("/proc/cpuinfo").read_text(errors="replace").split())
    except OSError:
        return []
    return [name for name in _SETS if name in words]


def _existing(folder: Path) -> Path:
    """`folder`, or the first one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
