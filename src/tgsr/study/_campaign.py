"""From a study's trials to jobs: each gets its run directory once its source is there, unless it has ended already."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tgsr._errors import InputError, StorageError, TgsrError
from tgsr._request import Request
from tgsr.network._manifest import read_network, write_network
from tgsr.network._saved import SavedNetwork
from tgsr.storage import RunDirectory, canonical_json, parse_json
from tgsr.storage._atomic import present, storage_error
from tgsr.study._attempts import forgive
from tgsr.study._folder import ENDED, StudyFolder
from tgsr.study._grid import Trial
from tgsr.study._schedule import Job
from tgsr.study._trial import Problems, identity, write_trial

NETWORKS = 16  # are kept in memory


def _same_but_for_words(path: Path, request: Request) -> bool:
    """Whether the run at `path` is the request's, but for comments and the like in the file of its problem."""
    spec, data, source = request.inputs
    try:
        run = RunDirectory.open(path)
        same = run.seed == request.seed and run.spec == parse_json(canonical_json(spec).encode()) and run.data() == data
        return same and _program(run.source()) == _program(source)
    except (TgsrError, SyntaxError, ValueError):
        return False


def _program(text: bytes) -> str:
    """Python text without comments, layout and documentation."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]  # type: ignore[attr-defined]
    return ast.dump(tree)


class Campaign:
    """The work that a study has left, for one process that coordinates it."""

    def __init__(self, folder: StudyFolder, problems: Problems, again: bool = False) -> None:
        self.folder, self.problems, self.again = folder, problems, again
        self.claimed: dict[Path, str] = {}  # run directory -> the trial that is to make it
        self.networks: dict[str, tuple[SavedNetwork, str]] = {}
        self.forgiven: set[Path] = set()
        self.failed: set[str] = set()  # sources that failed earlier: recorded, not to be forgotten

    def jobs(self, time_limit: float | None = None) -> Iterator[Job]:
        """One job for every trial, in the order of the grid."""
        twins = self._twins()
        for key, trial in self.folder.by_key.items():
            needs = [need for need in (trial.source, twins.get(key)) if need is not None]
            yield Job(key, tuple(needs), partial(self.directory, trial), time_limit)

    def directory(self, trial: Trial) -> Path | None:
        """The run directory of a trial, ready to be carried out; None where the run has ended."""
        try:
            return self._directory(trial)
        except TgsrError:
            if trial.key not in self.failed:
                self.folder.forget(trial)  # what it was before is not what is asked for now
            raise

    def _directory(self, trial: Trial) -> Path | None:
        source = self._source(trial)
        network, where = source or (None, None)
        request = self.problems.request(trial, network)
        root = self.folder.path / ("sources" if trial.role == "source" else "runs")
        path = root / identity(request)
        kept = self.folder.place(trial)
        if kept not in (None, path) and _same_but_for_words(kept, request) and self._ended(trial, kept):
            return None
        if self.claimed.setdefault(path, trial.key) != trial.key:
            self.folder.put(trial, path)  # another arm asks for the very same run
            return None
        if self._ended(trial, path):
            self.folder.put(trial, path)
            return None
        run = request.directory(root)
        write_trial(run, trial, where)
        self.folder.put(trial, run.path)
        return run.path

    def _ended(self, trial: Trial, path: Path) -> bool:
        """Whether the run at `path` needs no work. A damaged one is set aside; a source that failed is an error."""
        if not present(path):
            return False
        run = RunDirectory(path)
        status = run.status()
        if status.state == "damaged":
            self.folder.set_aside(path)
            return False
        if status.state == "failed":
            if self.again and path not in self.forgiven:
                self.forgiven.add(path)
                if forgive(path):
                    return False
            if trial.role == "source":
                self.failed.add(trial.key)
                self.folder.put(trial, path)
                raise InputError(f"The source run failed: {status.reason}", file=path)
        return status.state in ENDED

    def _source(self, trial: Trial) -> tuple[SavedNetwork, str] | None:
        """The source network of a trial, and where in the study's folder it lies."""
        name = trial.source or trial.given
        if name is None:
            return None
        if name not in self.networks:
            if len(self.networks) > NETWORKS:
                self.networks.clear()
            self.networks[name] = self._made_by(name) if trial.source is not None else self._copied(name)
        return self.networks[name]

    def _made_by(self, key: str) -> tuple[SavedNetwork, str]:
        place = self.folder.place(self.folder.by_key[key])
        if place is None:
            raise StorageError("the source run has no directory", file=self.folder.path, remedy="Run the study again")
        return read_network(place), place.relative_to(self.folder.path).as_posix()

    def _copied(self, given: str) -> tuple[SavedNetwork, str]:
        """A finished run's network, copied so that the study needs nothing outside its folder."""
        network = read_network(self.folder.path / given)
        where = f"sources/network.{network.fingerprint()[:12]}"
        target = self.folder.path / where
        if not present(target / "network.json"):
            try:
                os.makedirs(target, exist_ok=True)
            except OSError as error:
                raise storage_error(error, target) from error
            write_network(target, network)
        return network, where

    def _twins(self) -> dict[str, str]:
        """Source trials whose run is that of an earlier one, though they are asked for in other words."""
        groups: dict[tuple[str, str | None, int], list[Trial]] = {}
        for trial in self.folder.by_key.values():
            if trial.role == "source":
                groups.setdefault((trial.task, trial.file, trial.seed), []).append(trial)
        twins: dict[str, str] = {}
        for group in groups.values():
            first: dict[str, str] = {}
            for trial in group if len(group) > 1 else ():
                earlier = first.setdefault(identity(self.problems.request(trial, None)), trial.key)
                if earlier != trial.key:
                    twins[trial.key] = earlier
        return twins
