"""What a number was computed with, so that it can be computed again."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def package_version(name: str = "tgsr") -> str:
    """The installed version of a package ('unknown' in an uninstalled source tree)."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def environment(dtype: str = "float64", engine: str = "jax", devices: int = 1, processes: int = 1) -> dict[str, Any]:
    """Versions, engine (as `tgsr.loss.engine_label` names it), threads, processor and precision of this process.

    `devices` is how many share the work in all, of so many `processes`.
    """
    import jax

    from tgsr._canary import cpu_name
    from tgsr._jax import thread_count

    return {
        "tgsr": package_version(),
        "jax": package_version("jax"),
        "jaxlib": package_version("jaxlib"),
        "numpy": package_version("numpy"),
        "scipy": package_version("scipy"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": cpu_name(),
        "device": device_name(jax.devices()[0]),
        "engine": engine,
        "threads": thread_count(),
        "devices": devices,
        "processes": processes,
        "dtype": dtype,
    }


def device_name(device: Any) -> str:
    """What computes: "cpu", whose model stands under `processor`, or an accelerator with its model."""
    return device.platform if device.platform == "cpu" else f"{device.platform} ({device.device_kind})"


# A resumed run must go on with these, or its bits would not be those of an undisturbed one.
SAME_BITS = ("jaxlib", "processor", "device", "engine", "threads", "devices", "dtype")


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What would change the bits of a run between two environments, in words."""
    return [
        f"{k} was {before[k]!r} and is {now.get(k)!r}" for k in SAME_BITS if k in before and before[k] != now.get(k)
    ]
