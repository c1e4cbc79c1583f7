"""Results on disk: a run directory holds everything that a result is, `result.json` last."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from tgsr._errors import InputError
from tgsr._outcomes import Outcome
from tgsr._result import Estimate, Result
from tgsr.network._manifest import read_network, write_network
from tgsr.storage import RunDirectory, read_arrays, write_arrays
from tgsr.training._history import History


def write_result(result: Result, root: str | Path) -> Path:
    """Write `result` under `root` as the run it is; returns the run directory."""
    if result.inputs is None:
        raise InputError("this result was loaded without what identifies its run", remedy="Copy its run directory")
    spec, data, source = result.inputs
    run = RunDirectory.create(root, result.name, spec, data, source, result.seed)
    if run.status().state != "finished":
        with run.lock():
            run.write_environment(result.provenance)
            fill(run, result)
    return run.path


def fill(run: RunDirectory, result: Result) -> None:
    """Write a result's files and commit it, or record its failure. The caller holds the lock."""
    write_network(run.file("network.safetensors").parent, result.network)
    for name, (network, _) in result.unknown_fields.items():
        folder = run.file(f"fields/{name}/network.safetensors").parent
        write_network(folder, network)
    write_arrays(run.file("history.npz"), result.history.arrays())
    for stage, arrays in result.stages.items():
        write_arrays(run.file(f"stages/{stage}.npz"), arrays)
    summary = as_json(result)
    if result.outcome.ok:
        run.commit(summary)
    else:
        run.record_failure(result.outcome.label, result.sentence, summary)


def as_json(result: Result) -> dict[str, Any]:
    """The numbers and words of a result, as stored and as `--json` prints."""
    return {
        "name": result.name,
        "method": result.method,
        "seed": result.seed,
        "outcome": result.outcome.label,
        "sentence": result.sentence,
        "unknowns": {
            name: {
                "value": e.value,
                "se": e.se,
                "interval": list(e.interval),
                "unit": e.unit,
                "identifiable": e.identifiable,
                "guess": e.guess,
            }
            for name, e in result.unknowns.items()
        },
        "correlation": np.asarray(result.correlation).tolist(),
        "likelihood": list(result.likelihood),
        "warnings": list(result.warnings),
        "closures": result.closures,
        "seconds": result.seconds,
        "stages": sorted(result.stages),
        "unknown_fields": {name: {"positive": positive} for name, (_, positive) in result.unknown_fields.items()},
        "weights_sha256": result.fingerprint,
        "provenance": result.provenance,
    }


def load(path: str | Path) -> Result:
    """The result of a finished (or failed) run directory."""
    run = RunDirectory.open(Path(path))
    status = run.status()
    if status.state == "finished":
        summary = run.result()
    elif status.state == "failed" and (failure := run.failure()) is not None:
        summary = failure["details"]
        if not summary:  # it raised, or its process ended: a sentence is all there is
            raise InputError(
                f"the run failed and left no result ({failure['outcome']}: {failure['sentence']})",
                file=path,
                remedy="Run it again; in a study: tgsr study resume",
            )
    else:
        remedy = {"interrupted": "Resume it: give the same command again", "running": "Wait for it"}
        raise InputError(
            f"the run is {status.state} ({status.reason})",
            file=path,
            remedy=remedy.get(status.state, "Only finished and failed runs have a result"),
        )
    return from_run(run, summary)


def from_run(run: RunDirectory, summary: dict[str, Any]) -> Result:
    """A result from its run directory and summary."""
    unknown_fields = {
        name: (read_network(run.path / "fields" / name), bool(about["positive"]))
        for name, about in summary["unknown_fields"].items()
    }
    estimates = {
        name: Estimate(
            float(e["value"]),
            float(e["se"]),
            (float(e["interval"][0]), float(e["interval"][1])),
            e["unit"],
            bool(e["identifiable"]),
            float(e.get("guess", math.nan)),
        )
        for name, e in summary["unknowns"].items()
    }
    return Result(
        name=summary["name"],
        unknowns=estimates,
        outcome=Outcome.of(summary["outcome"]),
        sentence=summary["sentence"],
        history=History.from_arrays(read_arrays(run.path / "history.npz")),
        network=read_network(run.path),
        unknown_fields=unknown_fields,
        correlation=np.array(summary["correlation"], dtype=float),
        likelihood=tuple(summary["likelihood"]),
        warnings=tuple(summary["warnings"]),
        stages={s: read_arrays(run.path / "stages" / f"{s}.npz") for s in summary["stages"]},
        method=summary["method"],
        closures=int(summary["closures"]),
        seconds=float(summary["seconds"]),
        seed=int(summary["seed"]),
        provenance=summary["provenance"],
        inputs=(run.spec, run.data(), run.source()),
        path=run.path,
    )
