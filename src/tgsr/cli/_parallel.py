"""Threads, devices and processes of a command, settled before the first computation."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import click


def use(threads: int | None, devices: int) -> None:
    """Compute with so many threads and devices."""
    from tgsr._jax import use_devices, use_threads

    if threads is not None:
        use_threads(threads)
    if devices > 1:
        use_devices(devices)


def one_of_many(coordinator: str | None, rank: int | None, ranks: int | None) -> AbstractContextManager[None]:
    """Join the other processes of a training, if there are any."""
    if coordinator is None and rank is None and ranks is None:
        return nullcontext()
    if coordinator is None or rank is None or ranks is None:
        raise click.UsageError("--coordinator, --rank and --ranks belong together.")
    if rank >= ranks:
        raise click.UsageError(f"--rank {rank} is none of {ranks}: they count from 0.")
    from tgsr._ranks import joined

    return joined(coordinator, rank, ranks)
