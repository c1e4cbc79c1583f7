"""The paper's numbers: typed as printed, complete, and contradictory only where we say so."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tgsr.methods import methods
from tgsr.study._signed_rank import permutation_p
from tgsr.study.paper import (
    contradictions,
    fact,
    facts,
    paper_tables,
    results_table,
    tables_of_study,
    wilcoxon_table,
)
from tgsr.tasks import names

MAIN = ("boundary-layer", "allen-cahn-burgers", "reaction-diffusion", "smooth-advection-diffusion")


def attainable(n: int, losses: int) -> dict[float, None]:
    """Every p that n untied pairs with so many losses can give, by going through all sets of ranks."""
    ranks = np.arange(1, n + 1)
    sums = {
        sum(r for r, bit in zip(ranks, f"{sign:0{n}b}", strict=True) if bit == "1")
        for sign in range(2**n)
        if f"{sign:0{n}b}".count("1") == losses
    }
    total = int(ranks.sum())
    return {round(permutation_p(ranks, min(s, total - s)), 5): None for s in sums}


@pytest.mark.parametrize("task", MAIN)
def test_every_task_of_the_paper_has_all_nine_methods_or_seven(task):
    table = results_table(task)
    assert table is not None
    assert len(table.arms) == (7 if task == "smooth-advection-diffusion" else 9)
    assert set(table.arms) <= set(methods())
    for arm in table.arms:
        for error in ("field", "parameter"):
            number = table.quoted(arm, error)
            assert number.known
            assert number.value > 0
            assert number.sd > 0


def test_the_task_of_our_own_has_no_number_of_the_paper():
    assert "advected-pulse" in names()
    assert results_table("advected-pulse") is None
    assert wilcoxon_table("advected-pulse") is None


def test_numbers_are_as_typed():
    layer = paper_tables()["pe_results"]
    assert layer.quoted("tgsr", "parameter").value == 0.1260
    assert layer.quoted("tgsr", "parameter").value.printed == "0.1260"
    assert layer.quoted("sfp", "parameter").value == 42180.0
    assert layer.quoted("scratch", "field").sd == 1.574e12
    assert paper_tables()["cross_results"].row("bitfit")["parameter.sd"] == 14431.0975
    assert paper_tables()["alpha_s"].row("alpha_s = 0.8")["parameter"] == 4.4
    assert fact("gate-check", "gradient") == 0.9921
    assert not layer.quoted("adapt-only", "field").known
    assert math.isnan(paper_tables()["batch_ablation"].quoted("K = 1", "field").sd)


def test_tables_stand_in_the_papers_order_and_mean_a_place_in_it():
    numbers = [table.number for table in paper_tables().values()]
    assert numbers == sorted(set(numbers))
    for table in paper_tables().values():
        assert table.where == f"Table {table.number}"
        assert table.task in (*names(), "")


def test_the_mean_of_a_diverged_sample_follows_from_the_exclusions():
    """Scratch: one run of 10 diverged, so the mean is a tenth of it; sfp: two runs make nearly all of its mean."""
    shown, out = paper_tables()["pe_results"], paper_tables()["pe_failed_runs"]
    for error in ("field", "parameter"):
        diverged = out.row("scratch")[f"{error}.low"]
        rest = 9 * facts()["scratch-without-the-diverged-run"].values[error]
        assert shown.quoted("scratch", error).value == pytest.approx((diverged + rest) / 10, rel=1e-3)
    low, high = (out.row("sfp")[f"field.{end}"] for end in ("low", "high"))
    left = (10 * shown.quoted("sfp", "field").value - low - high) / 8
    assert 0.05 < left < 0.2


def test_local_metrics_repeat_the_main_table():
    main, local = paper_tables()["pe_results"], paper_tables()["pe_local_metrics"]
    for arm in local.arms:
        assert local.quoted(arm, "field").value == main.quoted(arm, "field").value
        assert local.quoted(arm, "parameter").value == pytest.approx(main.quoted(arm, "parameter").value, rel=1.2e-4)


@pytest.mark.parametrize("key", ["pe_wilcoxon", "secondary_task_wilcoxon", "ablation_counterfactual"])
def test_every_p_belongs_to_its_wins(key):
    """A wrong digit in a p-value or in a count of wins would hardly ever be attainable."""
    table = paper_tables()[key]
    places = 5 if key != "ablation_counterfactual" else 3
    for cells in table.rows:
        row = dict(zip(table.columns, cells, strict=True))
        for error in ("parameter", "field"):
            if math.isnan(row.get(f"{error}.p", math.nan)):
                continue
            known = {round(p, places) for p in attainable(table.n, table.n - row[f"{error}.wins"])}
            assert round(row[f"{error}.p"], places) in known, (key, row)


def test_the_contradictions_are_there():
    told = {c.key: c for c in contradictions()}
    assert {table for c in told.values() for table in c.tables} <= set(paper_tables())
    events = paper_tables()["negative_transfer_frequency"]
    losses = {task: 10 - wilcoxon_table(task).row("scratch", task)["parameter.wins"] for task in MAIN[:3]}
    assert losses == {"boundary-layer": 1, "allen-cahn-burgers": 2, "reaction-diffusion": 4}
    assert [events.row("tgsr", task)["events"] for task in MAIN[:3]] == [0, 3, 1]
    assert "events-and-losses" in told
    ranks = np.arange(1, 6)
    five = {round(permutation_p(ranks, w), 3) for w in range(8)}
    assert paper_tables()["gmm_ablation"].row("rank")["parameter.p"] not in five
    assert "unattainable-p" in told
    smooth, cost = paper_tables()["smooth_pe_results"], paper_tables()["cost"]
    assert cost.row("total")["seconds"] == 50
    assert smooth.row("tgsr")["seconds"] - smooth.row("full")["seconds"] == 31
    assert "overhead-twice" in told
    assert paper_tables()["cross_results"].quoted("tgsr", "parameter").value == 0.3071
    assert paper_tables()["gmm_cross_ablation"].quoted("gmm+rank", "parameter").value == 1.4383


def test_alpha_dominates_the_parameter_error_of_the_smooth_task():
    """The mean of three errors, two of them tiny: alpha's over three. Catches swapped columns."""
    for key in ("ablation_counterfactual", "gmm_ablation", "layer_ablation", "map_ablation", "alpha_s"):
        table = paper_tables()[key]
        for arm in table.arms:
            alpha, mean = table.quoted(arm, "alpha").value, table.quoted(arm, "parameter").value
            assert mean == pytest.approx(alpha / 3, rel=0.03), (key, arm)


def test_switching_adds_up():
    rows = paper_tables()["gmm_switch_sensitivity"].rows
    assert {row[3] for row in rows if row[0] != "depth"} == {228}
    open_now, at_40 = (next(r[2] for r in rows if r[:2] == ("bic_threshold", v)) for v in (10, 40))
    assert 1 - (open_now - at_40) / 228 == pytest.approx(fact("switching-agreement", "agreement"), abs=5e-5)


def test_a_study_finds_its_tables():
    assert [t.key for t in tables_of_study("mapping")] == ["map_ablation"]
    assert tables_of_study("") == ()
    assert tables_of_study("mine") == ()
