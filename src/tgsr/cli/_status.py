"""How a run stands, whatever its state: read from its directory alone, without JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tgsr._errors import InputError, TgsrError
from tgsr.storage import Checkpoint, RunDirectory, find_runs


def runs_at(given: str) -> tuple[RunDirectory | None, list[RunDirectory]]:
    """The run at a path, or else the runs in that folder (newest first)."""
    path = Path(given)
    try:
        if not path.is_dir():
            kind = "is not a folder" if path.exists() else "does not exist"
            raise InputError(kind, file=given, remedy="Give the folder of a run, or the folder that holds the runs")
        if (path / "spec.json").exists():
            return RunDirectory(path.resolve()), []
        runs = find_runs(path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", file=given, remedy="Check the path") from None
    if not runs:
        raise InputError("holds no run", file=given, remedy="Give the folder of a run, such as runs/rod-0123456789ab")
    return None, sorted(runs, key=lambda run: -run.path.stat().st_mtime)


def run_at(given: str) -> RunDirectory:
    """The one run at a path."""
    run, others = runs_at(given)
    if run is None:
        names = ", ".join(other.path.name for other in others[:3])
        raise InputError("is a folder of runs, not a run", file=given, remedy=f"Give one of them, such as {names}")
    return run


def standing(run: RunDirectory) -> dict[str, Any]:
    """State, reason, what was asked, and the unknowns as far as they are known."""
    status = run.status()
    about: dict[str, Any] = {"run": str(run.path), "state": status.state, "reason": status.reason}
    try:
        about |= {"name": run.name, "seed": run.seed, "method": run.spec["method"]["name"]}
    except (TgsrError, KeyError, TypeError):
        return about  # damaged: what it says about itself cannot be believed
    if status.state == "finished":
        about |= _of_summary(run.result())
    elif status.state == "failed":
        about |= _of_summary((run.failure() or {}).get("details", {}))
    elif status.state != "damaged":
        about |= _of_checkpoint(run)
    return about


def _of_summary(summary: dict[str, Any]) -> dict[str, Any]:
    unknowns = {name: estimate["value"] for name, estimate in summary.get("unknowns", {}).items()}
    return {"unknowns": unknowns, "closures": summary.get("closures"), "seconds": summary.get("seconds")}


def _of_checkpoint(run: RunDirectory) -> dict[str, Any]:
    """The last saved step. A run at work may move its checkpoint while we look: then none is shown."""
    try:
        saved = run.load_checkpoint()
    except TgsrError:
        return {}
    return {} if saved is None else _last_step(saved, [u["name"] for u in run.spec["problem"]["unknowns"]])


def _last_step(saved: Checkpoint, names: list[str]) -> dict[str, Any]:
    columns = {key: saved.arrays.get(f"history.{key}") for key in ("values", "loss", "closures", "seconds")}
    if any(column is None or not len(column) for column in columns.values()):
        return {}
    last = {key: column[-1] for key, column in columns.items() if column is not None}
    return {
        "stage": saved.meta.get("stage"),
        "phase": (saved.meta.get("phases") or [None])[-1],
        "epoch": saved.meta.get("cursor", {}).get("epoch"),
        "closures": int(last["closures"]),
        "seconds": float(last["seconds"]),
        "loss": float(last["loss"]),
        "unknowns": dict(zip(names, map(float, last["values"]), strict=True)),
    }
