"""The tables of the studies that ship: every arm, every number of the paper, and what only the runs themselves know."""

from __future__ import annotations

import math

import numpy as np
import pytest
import study_cases
from scipy import stats

from tgsr.report._audits import audits_of, probes_of
from tgsr.report._numbers import printed
from tgsr.report._study_tables import study_tables
from tgsr.report._task_view import views
from tgsr.study._probes import Probes
from tgsr.study._shipped import shipped_specs
from tgsr.study.paper import tables_of_study


def errors(results, task, arm, error="parameter"):
    """By seed, straight from the records."""
    return {
        r.seed: r.errors[error] if r.ok else math.inf
        for r in results.records
        if r.role == "target" and r.task == task and r.arm == arm
    }


@pytest.mark.parametrize("name", list(shipped_specs()))
def test_every_shipped_study_has_its_table(name):
    case = study_cases.shipped(name)
    sections = study_tables(case)
    assert sections[0].key == name
    for view in views(case):
        table = next(t for t in sections[0].tables if t.key == f"ablation-{view.key}")
        assert tuple(row[0].text for row in table.rows) == view.arms
        for arm in view.arms:
            own = list(errors(case, view.task, arm).values())
            mean, sd = table.cell(arm, "parameter error, mean ± sd").value[:2]
            assert mean == pytest.approx(np.mean(own))
            assert sd == pytest.approx(np.std(own, ddof=1))
        for paper in tables_of_study(name):
            shown = [c for c in table.columns if c.paper]
            if paper.arms and paper.key != "cost" and paper.task in ("", view.task):
                assert set(paper.arms) <= set(view.arms)
                numbers = {c for c in paper.columns if c not in ("arm", "task") and not c.endswith(".sd")}
                assert len(shown) == len(numbers)
                assert any(paper.where in note for note in table.notes)
                for arm in paper.arms:
                    printed_here = " ".join(table.cell(arm, column.name).text for column in shown)
                    for column in numbers:
                        value = paper.row(arm, view.task)[column]
                        assert math.isnan(value) or printed(value) in printed_here


def test_paired_columns_of_an_ablation():
    case = study_cases.shipped("counterfactual")
    table = study_tables(case)[0].tables[0]
    ours = errors(case, "smooth-advection-diffusion", "tgsr")
    for arm in ("random-decay", "score-shuffled"):
        theirs = errors(case, "smooth-advection-diffusion", arm)
        assert table.cell(arm, "tgsr lower in").value == (sum(ours[s] < theirs[s] for s in ours), 10)
        increase = np.median([theirs[s] - ours[s] for s in ours])
        assert table.cell(arm, "median paired increase").value == pytest.approx(increase)
    assert table.cell("random-decay", "paper: lower in").text == "8 of 10"
    assert table.cell("random-decay", "paper: median paired increase").text == "1.065"


def test_switching_counts_the_recorded_layers():
    case = study_cases.shipped("switching")
    table = next(t for t in study_tables(case)[0].tables if t.key == "ablation-switching")
    audits = audits_of(case)
    assert len(audits) == 2 * 5 * (4 + 6 + 8)
    for row in table.rows:
        factor, setting = row[0].text, row[1].value
        if factor == "hidden layers":
            expected = sum(a.opens() for a in audits if a.layers == setting)
        else:
            at = {"threshold": setting} if factor == "BIC threshold" else {"cap": setting}
            expected = sum(a.opens(**at) for a in audits)
        assert row[2].value[0] == expected
    assert [row[4].text for row in table.rows][:3] == ["2 of 8", "3 of 12", "6 of 16"]
    at_40 = next(row for row in table.rows if row[1].value == 40)
    assert at_40[5].text == "84.65"


def test_sparsity_compares_like_with_like():
    case = study_cases.shipped("data-sparsity")
    sections = study_tables(case)
    table = next(t for t in sections[0].tables if t.key.endswith("-readings"))
    assert [row[0].text for row in table.rows] == ["scratch", "full", "tgsr"]
    own = {t.key: t for t in sections[1].tables}
    assert [r[0].text for r in own["smooth-advection-diffusion-pairs-parameter"].rows] == ["scratch", "full"]
    fewer = own["smooth-advection-diffusion-pairs-parameter-50"]
    assert [r[0].text for r in fewer.rows] == ["scratch, 50 readings", "full, 50 readings"]
    assert [r[0].text for r in own["smooth-advection-diffusion-events"].rows] == [
        "full", "full, 50 readings", "tgsr", "tgsr, 50 readings",
    ]  # fmt: skip


def test_protection_and_branches_read_the_runs():
    case = study_cases.shipped("protection", 3)
    table = study_tables(case)[0].tables[0]
    decay = [np.mean([a.decay for a in audits_of(case) if a.arm == "none" and a.seed == seed]) for seed in range(3)]
    assert table.cell("none", "mean of 1 - gamma").value[0] == pytest.approx(np.mean(decay))
    assert table.cell("none", "paper: mean of 1 - gamma").text == "0.101 ± 0.040"
    case = study_cases.shipped("branch-cross-pde", 4)
    table = next(t for t in study_tables(case)[0].tables if t.key == "ablation-branches")
    assert table.cell("gmm+rank", "paper: layers").text == "34 of 120"
    assert table.cell("gmm+rank", "layers decided by the mixture").value[1] == 24


def test_gate_check_pools_the_probes():
    case = study_cases.shipped("gate-check")
    table = next(t for t in study_tables(case)[0].tables if t.key == "ablation-gate-check")
    pooled = Probes.pooled(probes_of(case))
    assert table.rows[-1][1].value == 60
    assert table.rows[-1][2].value == pytest.approx(stats.spearmanr(pooled["score"], pooled["loss"]).statistic)
    assert [c.text for c in table.rows[-1][4:]] == ["0.7466", "0.9921"]
