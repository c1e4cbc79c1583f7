"""One directory per run is the truth: what was asked, how far it came, and, last of all, the result.

    spec.json  env.json  problem.py  data.npz  log.jsonl  lock  checkpoint/  ...  result.json

The id is the run's content: <name>-<12 hex of SHA-256 of spec, data bytes, problem source and seed>.
Creating the same run again is therefore harmless, and a half-created one is completed. `spec.json` is written
last of the inputs, `result.json` last of all; each holds the SHA-256 of what came before it.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from tgsr._errors import InputError, StorageError
from tgsr.storage import _checkpoint, _lock, _log
from tgsr.storage._arrays import Arrays
from tgsr.storage._atomic import (
    digest_of,
    file_digest,
    files_below,
    present,
    read_bytes,
    storage_error,
    sweep,
    write_bytes,
)
from tgsr.storage._identity import checked_name, fingerprint, read_inputs, resolved, run_id
from tgsr.storage._json import read_sealed, write_sealed

SPEC, DATA, PROBLEM, ENVIRONMENT = "spec.json", "data.npz", "problem.py", "env.json"
RESULT, FAILURE, LOG, CHECKPOINT = "result.json", "failure.json", "log.jsonl", "checkpoint"
_NOT_SEALED = {RESULT, FAILURE, LOG, _lock.LOCK}

State = Literal["new", "running", "interrupted", "failed", "finished", "damaged"]


@dataclass(frozen=True)
class Status:
    """Where a run stands, with a short reason for people."""

    state: State
    reason: str


@dataclass(frozen=True)
class RunDirectory:
    """A run on disk. The constructor only names the folder; `create` and `open` also verify it.

    Whoever writes does so inside `with run.lock():`.
    """

    path: Path

    @classmethod
    def create(
        cls,
        root: str | PathLike[str],
        name: str,
        spec: Mapping[str, object],
        data: bytes,
        source: bytes,
        seed: int,
    ) -> RunDirectory:
        """The directory of this run under `root`: made now, or the existing one once its inputs verify."""
        inputs: dict[str, object] = {"data": digest_of(data), "source": digest_of(source)}
        inputs |= {"spec": dict(spec), "seed": operator.index(seed)}
        identity = run_id(name, inputs)
        path = resolved(root) / identity
        run = cls(path)
        if resolved(path) != path:
            raise InputError("a run directory must not be a link", file=path, remedy="Remove the link")
        if present(path / SPEC):
            if fingerprint(cls.open(path)._inputs) != fingerprint(inputs):
                raise StorageError("holds another run whose id begins alike", file=path, remedy="Change the name")
            return run
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise storage_error(error, path) from error
        write_bytes(path / DATA, data)
        write_bytes(path / PROBLEM, source)
        write_sealed(path / SPEC, {"format": 1, "id": identity, "name": name, **inputs})
        return run

    @classmethod
    def open(cls, path: str | PathLike[str]) -> RunDirectory:
        """The run directory at `path`, its spec, data and problem file verified."""
        run = cls(resolved(path))
        if problems := run._input_problems():
            raise StorageError(
                problems[0],
                file=run.path,
                remedy="Restore it from a copy, or delete it and run again",
            )
        return run

    @cached_property
    def _inputs(self) -> dict[str, Any]:
        return read_inputs(self.path / SPEC)

    @property
    def id(self) -> str:
        """`<name>-<12 hex>`: what was asked, in short. A renamed folder keeps it."""
        return self._inputs["id"]

    @property
    def name(self) -> str:
        """The name that the user gave."""
        return self._inputs["name"]

    @property
    def seed(self) -> int:
        """The seed of the run's random streams."""
        return self._inputs["seed"]

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved specification."""
        return self._inputs["spec"]

    def data(self) -> bytes:
        """The bytes of data.npz, verified."""
        return read_bytes(self.path / DATA, digest=self._inputs["data"])

    def source(self) -> bytes:
        """The bytes of problem.py, verified."""
        return read_bytes(self.path / PROBLEM, digest=self._inputs["source"])

    def file(self, relative: str) -> Path:
        """The path of a file in this directory, such as "stages/score.npz"; its folder is made."""
        path = self.path.joinpath(*(checked_name(part) for part in relative.split("/")))
        try:
            os.makedirs(path.parent, exist_ok=True)
        except OSError as error:
            raise storage_error(error, path) from error
        return path

    def write_environment(self, environment: Mapping[str, object]) -> None:
        """Record what the run computes with: versions, engine, threads, instruction set, device, dtype."""
        write_sealed(self.path / ENVIRONMENT, environment)

    def environment(self) -> dict[str, Any] | None:
        """What `write_environment` recorded last."""
        return read_sealed(self.path / ENVIRONMENT) if present(self.path / ENVIRONMENT) else None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the one process that writes here; a lock whose process is gone is taken over."""
        with _lock.hold(self.path):
            yield

    def log(self, event: str, **fields: object) -> None:
        """Append one line to log.jsonl."""
        _log.append(self.path / LOG, event, fields)

    def read_log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl; a torn one reads `{"event": "unreadable", "line": number}`."""
        return _log.read(self.path / LOG)

    def save_checkpoint(self, arrays: Arrays, meta: Mapping[str, object]) -> None:
        """Save all that the run needs to go on. Killed at any instant, the old or the new state loads."""
        _checkpoint.save(self.path / CHECKPOINT, self.id, arrays, meta)

    def load_checkpoint(self) -> _checkpoint.Checkpoint | None:
        """The newest state that verifies; None if none was ever saved; StorageError if all are damaged."""
        return _checkpoint.load(self.path / CHECKPOINT, self.id)

    def commit(self, result: Mapping[str, object]) -> None:
        """Write result.json, the mark of a finished run, over the SHA-256 of every file here.

        Write everything that the result needs first. The checkpoint goes, after the mark is on disk: the
        optimiser's memory is a hundred times the network, nobody reads it in a finished run, and a longer
        training is another run with another id.
        """
        if present(self.path / RESULT) and not self.verify():
            raise StorageError("this run is finished already", file=self.path / RESULT)
        with _lock.guard(self.path):
            sweep(self.path)
        write_sealed(
            self.path / RESULT,
            {"format": 1, "id": self.id, "result": dict(result), "files": self._file_digests()},
        )
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path / FAILURE)
            _checkpoint.discard(self.path / CHECKPOINT)
        except OSError as error:
            raise storage_error(error, self.path) from error

    def result(self) -> dict[str, Any]:
        """What was committed. It is verified; `verify` also checks the files that it seals."""
        return self._committed()["result"]

    def record_failure(self, outcome: str, sentence: str, details: Mapping[str, object]) -> None:
        """Write failure.json. A failed run is counted like any other; a later commit replaces the record."""
        if present(self.path / RESULT):
            raise StorageError("this run is finished; it cannot fail any more", file=self.path / RESULT)
        write_sealed(self.path / FAILURE, {"outcome": outcome, "sentence": sentence, "details": dict(details)})

    def failure(self) -> dict[str, Any] | None:
        """`{"outcome", "sentence", "details"}`, if the last attempt failed."""
        return read_sealed(self.path / FAILURE) if present(self.path / FAILURE) else None

    def clear_failure(self) -> None:
        """Take the record of a failure away, so that the run counts as one to go on with."""
        try:
            with suppress(FileNotFoundError):
                os.unlink(self.path / FAILURE)
        except OSError as error:
            raise storage_error(error, self.path / FAILURE) from error

    def verify(self) -> list[str]:
        """Everything here that is not what was written, one sentence each; empty is good."""
        if problems := self._input_problems():
            return problems
        try:
            if not present(self.path / RESULT):
                checkpoint = self.load_checkpoint()
                return [checkpoint.note] if checkpoint is not None and checkpoint.note else []
            sealed, found = self._committed()["files"], self._file_digests()
        except StorageError as error:
            return [str(error)]
        return [
            f"{name} is missing" if name not in found else f"{name} was changed after the commit"
            for name, digest in sealed.items()
            if found.get(name) != digest
        ]

    def status(self) -> Status:
        """Where the run stands. Finished and interrupted ones are verified on the way."""
        try:
            committed = present(self.path / RESULT)
            problems = self.verify() if committed else self._input_problems()
            if committed and not problems:
                return Status("finished", "every file verifies")
            if (holder := _lock.live_holder(self.path)) is not None:
                return Status("running", f"process {holder.pid} on {holder.host}")
            if problems:
                return Status("damaged", problems[0])
            if (failure := self.failure()) is not None:
                return Status("failed", f"{failure['outcome']}: {failure['sentence']}")
            if (checkpoint := self.load_checkpoint()) is not None:
                return Status("interrupted", checkpoint.note or "a checkpoint is saved; resume the run")
        except StorageError as error:
            return Status("damaged", str(error))
        return Status("new", "nothing is saved yet")

    def _input_problems(self) -> list[str]:
        try:
            inputs = read_inputs(self.path / SPEC)
            digests = {DATA: inputs["data"], PROBLEM: inputs["source"]}
            wrong = [name for name, digest in digests.items() if file_digest(self.path / name) != digest]
        except StorageError as error:
            return [str(error)]
        return [f"{name} was changed after the run was created" for name in wrong]

    def _committed(self) -> dict[str, Any]:
        committed = read_sealed(self.path / RESULT)
        sound = committed.get("format") == 1 and committed.get("id") == self.id
        if not sound or not isinstance(committed.get("files"), dict) or "result" not in committed:
            raise StorageError("is not the result of this run", file=self.path / RESULT)
        return committed

    def _file_digests(self) -> dict[str, str]:
        return {
            name: file_digest(self.path / name)
            for name in sorted(files_below(self.path))
            if name not in _NOT_SEALED and not name.startswith(f"{CHECKPOINT}/")
        }
