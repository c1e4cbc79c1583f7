"""The processes that share one training: how this one joins them, and what they do in turn.

Rank 0 alone writes into the run's directory. Nothing listens on an address that was not asked for: the coordinator on
the one that is named, the exchange of numbers on the one by which this machine reaches it.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError, TgsrError
from tgsr._provenance import SAME_BITS

if TYPE_CHECKING:
    from tgsr.loss import Spread

LOST = 75  # the exit code of a rank that lost another one: start them all again
HEARTBEAT = 30  # seconds after which a silent rank on another machine counts as lost
PATIENCE = 120  # seconds in which all ranks have to appear

_rank, _ranks = 0, 1


class LostRankError(TgsrError):
    """Another process of this training is gone."""

    exit_code = LOST


def leads() -> bool:
    """Whether this process is the one that writes and shows."""
    return _rank == 0


def ranks() -> int:
    """How many processes train together."""
    return _ranks


@contextmanager
def joined(coordinator: str, rank: int, count: int) -> Iterator[None]:
    """Be one of `count` ranks that meet at `coordinator` (HOST:PORT, where rank 0 listens). Once per process."""
    import jax

    _join(coordinator, rank, count)
    _keep_standard_output()
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        _leave_at_once(LOST)
        raise LostRankError(
            f"another process of this training was lost ({type(error).__name__})",
            remedy="Start all of them again: the run goes on from its last checkpoint",
        ) from error
    except BaseException as error:
        _leave_at_once(130 if isinstance(error, KeyboardInterrupt) else getattr(error, "exit_code", 1))
        raise


def _join(coordinator: str, rank: int, count: int) -> None:
    import jax
    from jax._src import distributed, xla_bridge  # no public way to say where gloo listens
    from jax._src.lib import _jax  # pyright: ignore[reportPrivateImportUsage]

    global _rank, _ranks
    own = _address_towards(coordinator)
    try:
        jax.distributed.initialize(
            coordinator, count, rank,
            cluster_detection_method="deactivate",
            initialization_timeout=PATIENCE,
            heartbeat_timeout_seconds=HEARTBEAT,
            coordinator_bind_address=coordinator,
        )  # fmt: skip
    except RuntimeError as error:
        raise LostRankError(
            f"the {count} processes did not meet at {coordinator} ({type(error).__name__})",
            remedy="Start one process for every rank from 0, all with the same coordinator and number of ranks",
        ) from error
    gloo = _jax.make_gloo_tcp_collectives(distributed_client=distributed.global_state.client, hostname=own)
    client = partial(xla_bridge.make_cpu_client, collectives=gloo)
    xla_bridge.register_backend_factory("cpu", client, priority=0, fail_quietly=False)
    _rank, _ranks = rank, count


def _keep_standard_output() -> None:
    """Gloo writes on the standard output, which belongs to the result: what is not Python's goes to standard error."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors="backslashreplace", closefd=False)
    os.dup2(2, 1)
    sys.stdout = own


def _address_towards(coordinator: str) -> str:
    """This machine's address on the way to the coordinator."""
    host, _, port = coordinator.rpartition(":")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # of a datagram socket: nothing is sent
            return probe.getsockname()[0]
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"{coordinator!r} is no address ({error})", field="coordinator", remedy="Write HOST:PORT"
        ) from None


def _leave_at_once(code: int) -> None:
    """At the end of the program do not wait for the others, who may be waiting for this one."""

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    atexit.register(leave)  # the last one registered is the first one called


def spread_over(devices: int) -> Spread | None:
    """The first `devices` devices of every rank; None where that is a single one."""
    import jax

    from tgsr.loss import Spread

    processes = range(_ranks) if _ranks > 1 else [jax.process_index()]
    chosen: list[Any] = []
    for process in processes:
        own = [device for device in jax.devices() if device.process_index == process]
        if len(own) < devices:
            raise InputError(
                f"{devices} devices are asked for, and JAX sees {len(own)}",
                field="devices",
                remedy="For parts of a processor start Python with the environment variable "
                f"XLA_FLAGS=--xla_force_host_platform_device_count={devices}",
            )
        chosen += own[:devices]
    return Spread(tuple(chosen)) if len(chosen) > 1 else None


@contextmanager
def first_rank_first() -> Iterator[None]:
    """Rank 0 does what is inside before the others do it."""
    if not leads():
        meet("rank 0 is ready")
    yield
    if leads():
        meet("rank 0 is ready")


def meet(where: str) -> None:
    """Wait for all ranks."""
    if _ranks > 1:
        from jax.experimental.multihost_utils import sync_global_devices

        from tgsr._jax import computing

        with computing():
            sync_global_devices(where)


def check_alike(spread: Spread | None, here: Mapping[str, Any]) -> None:
    """Refuse ranks whose bits would differ: they would drift apart, and wait for one another for ever."""
    if spread is None or spread.processes == 1:
        return
    text = json.dumps([here[name] for name in SAME_BITS])
    if len(spread.from_each(zlib.crc32(text.encode()) >> 1)) > 1:
        raise InputError(
            f"the processes of this training run in different environments; here: {text}",
            field="ranks",
            remedy=f"Let {', '.join(SAME_BITS)} be the same everywhere",
        )
