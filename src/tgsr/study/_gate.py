"""The gate check of a finished run: its recipe is followed to the adapted state again, and neurons are damped there.

It takes seconds to a minute a run, so what was found is kept in the study's folder (`probes/<run>.json`, derived).
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tgsr._errors import StorageError
from tgsr.storage import RunDirectory, read_sealed, write_sealed
from tgsr.storage._atomic import present, storage_error
from tgsr.study._kept import made_from
from tgsr.study._probes import COLUMNS, Probes
from tgsr.study._record import Record

FORMAT = 1
PROBES = 30  # of a run, as the paper has them


def probed(folder: Path, record: Record) -> Probes | None:
    """The probes of a run of method tgsr; None of any other."""
    run = folder / record.run
    if record.method != "tgsr" or not record.ok or not record.run or not present(run / "result.json"):
        return None
    file = folder / "probes" / f"{run.name}.json"
    made = {"format": FORMAT, "made_from": made_from(run)}
    if present(file):
        try:
            kept = read_sealed(file)
            if {key: kept.get(key) for key in made} == made:
                return Probes(record.task, record.arm, record.seed, np.array(kept["rows"], dtype=float))
        except (StorageError, KeyError, ValueError):
            pass  # derived: what cannot be read is made anew
    rows = computed(folder, run)
    try:
        os.makedirs(file.parent, exist_ok=True)
    except OSError as error:
        raise storage_error(error, file.parent) from error
    write_sealed(file, {**made, "rows": rows.tolist()})
    return Probes(record.task, record.arm, record.seed, rows)


def computed(folder: Path, run: Path) -> np.ndarray:
    """The columns of `COLUMNS`, one row per probed neuron."""
    from tgsr._jax import computing
    from tgsr._random import stream
    from tgsr.loss import build_objective
    from tgsr.methods import Setting, Tgsr, gate_check, resolved_budget
    from tgsr.network._manifest import read_network
    from tgsr.study._trial import Problems, read_trial
    from tgsr.training import Keeper

    trial, source = read_trial(RunDirectory.open(run))
    request = Problems(folder).request(trial, None if source is None else read_network(folder / source))
    assert isinstance(request.method, Tgsr)  # asked by the caller
    with computing():
        own = build_objective(request.problem, request.network, request.training.points)
        fresh = own.surrogate.initial(stream(request.seed, "init"))
        whole = resolved_budget(own, request.training, request.budget)
        setting = Setting(own, fresh, request.source, request.seed, whole.training, whole.main_epochs, Keeper(None))
        found = gate_check(setting, request.method.options, probes=PROBES)
    columns = (
        found.layer, found.neuron, found.score, found.loss_change, found.predicted_loss_change, found.gradient_change,
        found.predicted_gradient_change,
    )  # fmt: skip
    assert len(columns) == len(COLUMNS)
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
