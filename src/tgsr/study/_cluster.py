"""A Dask cluster as a place for runs: safe addresses only, workers that see the study's folder and compute alike."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import secrets
import socket
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError, StorageError, plain
from tgsr._provenance import package_version
from tgsr.storage import read_json
from tgsr.study._child import SAVE_PATIENCE, locked
from tgsr.study._schedule import AHEAD
from tgsr.study._slot import close_idle, stop_runs

if TYPE_CHECKING:
    from distributed import Client

FAILURES = 1000  # workers that may die under a task before Dask gives it up; the study counts for itself
FILE_PATIENCE = 60.0  # seconds to wait for a scheduler's file: it is often started by the same script
ANSWER_PATIENCE = 20.0  # seconds that a scheduler may take to answer
_LOOK_EVERY = 2.0
_TLS = ("ca-file", "client.cert", "client.key")


@contextmanager
def cluster(
    client: Client | None,
    scheduler: str | None,
    scheduler_file: str | os.PathLike[str] | None,
    *,
    insecure: bool,
    folder: str | os.PathLike[str] | None,
    task: Callable[..., str],
) -> Iterator[DaskWorkers]:
    """The workers of a Dask cluster: of a client that the user has, or of the scheduler at an address or in a file."""
    try:
        import distributed
    except ImportError as error:
        raise InputError(
            "the package distributed is not installed, and a cluster needs it",
            remedy="Install it here and on the workers: pip install 'tgsr[cluster]'",
        ) from error
    if client is not None:
        if not isinstance(client, distributed.Client) or client.asynchronous:
            raise InputError(
                f"{plain(client, 60)!r} is no client",
                field="client",
                remedy="Give a dask.distributed.Client that is not asynchronous",
            )
        _safe(str(client.scheduler.address) if client.scheduler else "", insecure)
        yield from _served(client, folder, task)
        return
    address = (scheduler or "") if scheduler_file is None else _in_file(Path(scheduler_file))
    with _connected(_safe(address, insecure)) as own:
        yield from _served(own, folder, task)


def _served(client: Client, folder: str | os.PathLike[str] | None, task: Callable[..., str]) -> Iterator[DaskWorkers]:
    there = DaskWorkers(client, task, folder)
    try:
        yield there
    finally:
        there.tell(close_idle)


def _in_file(path: Path) -> str:
    """The address in a scheduler's file, once it is there and whole."""
    end = time.monotonic() + FILE_PATIENCE
    while True:
        with suppress(StorageError):
            found = read_json(path, limit=2**20)
            if isinstance(found, dict) and isinstance(found.get("address"), str):
                return found["address"]
        if time.monotonic() > end:
            raise InputError(
                "is not there, or is no scheduler's file",
                file=path,
                remedy="Start the scheduler with it: dask scheduler --scheduler-file FILE",
            )
        time.sleep(0.2)


def _safe(address: str, insecure: bool) -> str:
    """`address` with its protocol. Whoever reaches a plain scheduler can run code on every worker."""
    protocol, _, place = address.rpartition("://")
    protocol = protocol or "tcp"
    if not place:
        raise InputError(f"{plain(address, 60)!r} is no address", field="scheduler", remedy="Write tls://HOST:PORT")
    if protocol not in ("tls", "inproc") and not insecure and not _loopback(place):
        raise InputError(
            f"{plain(address, 80)} is neither encrypted nor on this machine: whoever reaches it can run programs there",
            field="scheduler",
            remedy="Use tls:// (docs/cluster.md shows how), or --insecure in a network that you trust",
        )
    return f"{protocol}://{place}"


def _loopback(place: str) -> bool:
    host = place.split("/")[0]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    import dask.config
    from distributed import Client
    from distributed.security import Security

    missing = [key for key in _TLS if not dask.config.get(f"distributed.comm.tls.{key}", default=None)]
    if address.startswith("tls://") and missing:
        raise InputError(
            f"Dask was not told which certificates to use ({', '.join(missing)})",
            field="scheduler",
            remedy="Set distributed.comm.tls in ~/.config/dask/tls.yaml, as docs/cluster.md shows",
        )
    try:
        client = Client(address, security=Security(), set_as_default=False, timeout=ANSWER_PATIENCE)
    except (OSError, TimeoutError, TypeError, RuntimeError) as error:
        raise InputError(
            f"no scheduler answers at {plain(address, 80)} ({type(error).__name__}: {plain(error, 200)})",
            field="scheduler",
            remedy="Check that it runs, and that the certificates are those of the cluster",
        ) from error
    try:
        yield client
    finally:
        with suppress(OSError, TimeoutError, CancelledError):
            client.close(timeout=5)


class DaskWorkers:
    """The workers of a Dask scheduler; more may come, and some may go."""

    def __init__(self, client: Client, task: Callable[..., str], folder: str | os.PathLike[str] | None) -> None:
        self.client, self.task = client, task
        self.folder = None if folder is None else os.path.abspath(folder)
        self.here = look_around(self.folder)
        self.threads: dict[str, int] = {}
        self.known: set[str] = set()
        self.warned: set[str] = set()
        self.looked = -_LOOK_EVERY
        client.run_on_scheduler(allow_failures)
        if not client.nthreads():
            warnings.warn("No worker has joined the cluster yet; the study begins when one does.", stacklevel=2)

    def slots(self) -> int:
        """A few for each thread that is there now."""
        if time.monotonic() - self.looked >= _LOOK_EVERY:
            self._look()
            self.looked = time.monotonic()
        return AHEAD * sum(self.threads.values())

    def submit(self, path: str, *, time_limit: float | None, attempts: int) -> Any:
        """Queue a run; its arguments are a string and numbers."""
        key = f"run-{os.path.basename(path)}-{secrets.token_hex(4)}"
        return self.client.submit(self.task, path, time_limit=time_limit, attempts=attempts, key=key, pure=False)

    def release(self, future: Any) -> None:
        """Let the scheduler forget it, lest it be computed again when the worker that holds its result is lost."""
        future.release()

    def excuses(self, error: Exception) -> bool:
        """Dask gave a task up because its workers died: the study's own count decides."""
        from distributed import KilledWorker

        if isinstance(error, CancelledError):
            raise self._gone() from error
        return isinstance(error, KilledWorker)

    def stop(self, paths: Collection[str], futures: Collection[Any]) -> None:
        """Let the children save a checkpoint; end those that do not."""
        left, end = set(map(os.path.abspath, paths)), time.monotonic() + SAVE_PATIENCE
        try:
            while time.monotonic() < end:
                time.sleep(0.2)  # for the news that what is queued is cancelled: it travels by another way
                # each only once, as a second signal would not let it save; again for what had begun meanwhile
                for found in self.tell(stop_runs, list(left)).values():
                    left -= found
                if not locked(paths):
                    break
        finally:  # also at a second Ctrl-C
            self.tell(stop_runs, list(paths), kill=True)

    def tell(self, function: Callable[..., object], *given: Any, **more: Any) -> dict[str, Any]:
        """Call a function on every worker that can be reached; what they answer."""
        if self.client.status == "running":
            with suppress(OSError, TimeoutError, CancelledError, AttributeError):  # the last: it was lost just now
                answers: Any = self.client.run(function, *given, on_error="ignore", **more)
                return answers
        return {}

    def _gone(self) -> InputError:
        return InputError(
            "the connection to the cluster's scheduler is lost",
            remedy="Finished runs are kept; run the study again once the scheduler is back",
        )

    def _look(self) -> None:
        """See who is there, and look at the new ones before they get work."""
        if self.client.status not in ("running", "connecting"):
            raise self._gone()
        with suppress(OSError, TimeoutError):  # it may come back; futures tell if it does not
            threads: Any = self.client.nthreads()
            there: dict[str, int] = dict(threads)
            new = [address for address in there if address not in self.known]
            if new:
                found: Any = self.client.run(look_around, self.folder, workers=new, on_error="return")
                for address, seen in found.items():
                    if isinstance(seen, OSError):  # gone again
                        there.pop(address, None)
                    else:
                        self._compare(address, seen)
                        self.known.add(address)
            self.threads = there

    def _compare(self, address: str, seen: Any) -> None:
        if isinstance(seen, Exception):
            raise InputError(
                f"the worker at {plain(address, 80)} cannot use tgsr ({type(seen).__name__}: {plain(seen, 200)})",
                remedy="Install the same release of tgsr there",
            ) from seen
        if seen["study"] != self.here["study"] or not seen["writable"]:
            what = "cannot write to" if seen["study"] == self.here["study"] else "does not see"
            raise InputError(
                f"the worker at {plain(address, 80)} ({plain(seen['host'], 80)}) {what} the study's folder",
                file=self.folder,
                remedy="Put the study on a disk that all machines mount under the same path",
            )
        for name, value in self.here["alike"].items():
            other = seen["alike"].get(name)
            if other != value and f"{name} {other}" not in self.warned:
                self.warned.add(f"{name} {other}")
                warnings.warn(
                    f"{plain(seen['host'], 80)} has another {name} ({plain(other, 80)}) than this machine "
                    f"({plain(value, 80)}): the last digits of results may depend on where a run was computed.",
                    stacklevel=2,
                )


def look_around(folder: str | None) -> dict[str, Any]:
    """What a worker sees and computes with. Runs on the worker."""
    import platform

    from tgsr._canary import cpu_name

    packages = {name: package_version(name) for name in ("tgsr", "jax", "jaxlib", "numpy", "scipy")}
    study = ""
    if folder is not None:
        with suppress(OSError):
            study = hashlib.sha256(Path(folder, "study.toml").read_bytes()).hexdigest()
    return {
        "host": socket.gethostname(),
        "study": study,
        "writable": folder is None or os.access(folder, os.W_OK),
        "alike": {**packages, "Python": platform.python_version(), "processor": cpu_name()},
    }


def allow_failures(dask_scheduler: Any = None) -> None:
    """Runs on the scheduler: workers may die as often as the study allows, not as often as Dask does."""
    dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, FAILURES)
