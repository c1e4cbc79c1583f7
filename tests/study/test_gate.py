"""The gate check of a finished run: the same probes as before training, kept, and never a reason to fail."""

from __future__ import annotations

import numpy as np
import pytest

from tgsr.study import StudyFolder, read_study, results_of, run_study
from tgsr.study._gate import probed
from tgsr.study._probes import COLUMNS
from tgsr.study._results import StudyResults

STUDY = """
name = "gate-check"
tasks = ["boundary-layer"]
methods = ["full", "tgsr"]
seeds = 1
profile = "smoke"
"""


@pytest.mark.slow
def test_a_runs_probes_are_computed_once_and_kept(tmp_path):
    (tmp_path / "gate.toml").write_text(STUDY, encoding="utf-8")
    results = run_study(read_study(tmp_path / "gate.toml"), jobs=1, out=tmp_path / "studies")
    assert results.folder is not None
    full, run = (next(r for r in results.records if r.arm == arm) for arm in ("full", "tgsr"))
    assert results.probes(full) is None
    found = results.probes(run)
    assert found is not None
    assert found.rows.shape == (16, len(COLUMNS))  # two layers of eight
    stage = results.result(run).stages["correction"]  # type: ignore[union-attr]
    scores = {(layer, j + 1): s for layer in (1, 2) for j, s in enumerate(stage[f"layer{layer}.score"])}
    for layer, neuron, score in found.rows[:, :3]:
        assert score == scores[layer, neuron]  # the adapted state came out to the same bits
    assert np.all(np.abs(found["gradient_predicted"] - found["gradient"]) < 0.5 * found["gradient"].max())

    kept = tmp_path / "studies" / "gate-check" / "probes" / f"{run.run.partition('/')[2]}.json"
    before = kept.read_bytes()
    again = results_of(StudyFolder.open(results.folder)).probes(run)
    assert again is not None
    assert np.array_equal(again.rows, found.rows)
    kept.write_bytes(before[:-20])  # derived: a damaged one is made anew
    assert np.array_equal(probed(results.folder, run).rows, found.rows)  # type: ignore[union-attr]
    assert kept.read_bytes() == before


def test_without_a_folder_there_are_no_probes():
    assert StudyResults("s", "", "", "", "", "", ()).probes(None) is None  # type: ignore[arg-type]
