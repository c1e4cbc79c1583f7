"""What the tables of an ablation need of the runs themselves: recorded layers, and probed neurons."""

from __future__ import annotations

from functools import lru_cache

from tgsr._errors import TgsrError
from tgsr.study._layers import LayerAudit, layer_audits
from tgsr.study._probes import Probes
from tgsr.study._results import StudyResults

CORRECTION = "correction"


@lru_cache(maxsize=2)
def audits_of(results: StudyResults) -> tuple[LayerAudit, ...]:
    """Every recorded layer of the runs that scored neurons; of a run that cannot be read there is none."""
    found: list[LayerAudit] = []
    for record in results.records:
        if record.role == "target":
            try:
                run = results.result(record)
            except TgsrError:
                continue  # damaged since its record was made: `tgsr study verify` names it
            if run is not None and CORRECTION in run.stages:
                found += layer_audits(record.task, record.arm, record.seed, run.stages[CORRECTION])
    return tuple(found)


@lru_cache(maxsize=2)
def probes_of(results: StudyResults) -> tuple[Probes, ...]:
    """The gate check of every run that can make one; none where only records were kept."""
    found: list[Probes] = []
    for record in results.records:
        if record.role == "target":
            try:
                one = results.probes(record)
            except TgsrError:
                continue  # its problem's file has changed, or it is damaged
            found += [one] if one is not None else []
    return tuple(found)
