"""The tables of a study: every number against its own computation, the paper's as printed, and nothing left out."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import study_cases
from scipy import stats

from tgsr.report._citations import CATALOGUE, bibtex, citations
from tgsr.report._numbers import num, printed, signed
from tgsr.report._study_tables import study_tables
from tgsr.report._study_tables_pairs import leaks
from tgsr.report._table import Cell, Column, Table, slug
from tgsr.report._task_view import views
from tgsr.study._limits import Limit
from tgsr.study.paper import paper_tables, results_table, wilcoxon_table

LAYER, PULSE = "boundary-layer", "advected-pulse"


@pytest.fixture(scope="module")
def results():
    return study_cases.study()


@pytest.fixture(scope="module")
def tables(results):
    return {table.key: table for section in study_tables(results) for table in section.tables}


def errors(results, task, arm, error="parameter"):
    """By seed, straight from the records."""
    return {
        r.seed: r.errors[error] if r.ok else math.inf
        for r in results.records
        if r.role == "target" and r.task == task and r.arm == arm
    }


def fed(results, task):
    runs = [r for r in results.records if r.role == "target" and r.task == task and r.observations]
    return list(dict.fromkeys(r.arm for r in runs))


@pytest.mark.parametrize("task", study_cases.TASKS)
@pytest.mark.parametrize("error", ["parameter", "field"])
def test_means_and_medians_are_those_of_the_records(results, tables, task, error):
    table = tables[f"{task}-results"]
    assert [row[0].text for row in table.rows] == fed(results, task)
    for arm in fed(results, task):
        values = np.array(list(errors(results, task, arm, error).values()))
        finite = values[np.isfinite(values)]
        mean, sd, failed, others, others_sd = table.cell(arm, f"{error} error, mean ± sd").value
        assert failed == len(values) - len(finite)
        assert others == pytest.approx(finite.mean(), rel=1e-12)
        assert others_sd == pytest.approx(finite.std(ddof=1), rel=1e-12)
        assert (mean, sd) == ((others, others_sd) if not failed else (math.inf, math.inf))
        if error == "parameter":
            assert table.cell(arm, "parameter error, median [95 %]").value[0] == pytest.approx(np.median(values))
            assert table.cell(arm, "runs").value == len(values)


def test_a_failure_is_in_plain_sight(tables):
    table = tables[f"{LAYER}-results"]
    text = table.cell("scratch", "parameter error, mean ± sd").text
    assert text.startswith("∞ (1 failed; the other 9: 0.276 ± ")
    assert table.cell("scratch", "failed").text == "1"
    assert table.cell("tgsr", "parameter error, mean ± sd").best
    assert sum(cell.best for cell in table.column("parameter error, mean ± sd")) == 1
    assert any("random-decay (8)" in note for note in table.notes)
    assert any("full, no readings" in note for note in table.notes)


@pytest.mark.parametrize("task", study_cases.TASKS[:4])
def test_the_papers_columns_are_its_table(results, tables, task):
    table, paper = tables[f"{task}-results"], results_table(task)
    assert paper is not None
    for arm in fed(results, task):
        for error in ("parameter", "field"):
            cell, theirs = table.cell(arm, f"paper: {error} error"), paper.quoted(arm, error)
            assert cell.paper
            if theirs.known:
                assert cell.text == f"{printed(theirs.value)} ± {printed(theirs.sd)}"
                assert cell.value == (theirs.value, theirs.sd)
            else:
                assert cell.text == "\N{EN DASH}"
    known = [cell.text for cell in table.column("paper: parameter error") if cell.text != "\N{EN DASH}"]
    assert len(known) == len(paper.arms if task != "smooth-advection-diffusion" else paper.rows)
    assert all(column.paper == column.name.startswith("paper: ") for column in table.columns)


def test_a_task_of_our_own_has_no_column_of_the_paper(tables):
    assert not any(column.paper for column in tables[f"{PULSE}-results"].columns)
    assert not any(column.paper for column in tables[f"{PULSE}-pairs-parameter"].columns)


@pytest.mark.parametrize("task", study_cases.TASKS)
@pytest.mark.parametrize("error", ["parameter", "field"])
def test_paired_statistics_against_scipy(results, tables, task, error):
    table = tables[f"{task}-pairs-{error}"]
    ours, found = errors(results, task, "tgsr", error), {}
    for row in table.rows:
        theirs = errors(results, task, row[0].text, error)
        both = sorted(set(ours) & set(theirs))
        a, b = (np.array([side[seed] for seed in both]) for side in (ours, theirs))
        n, wins, ties, losses = (row[i].value for i in (1, 2, 3, 4))
        assert (n, wins, ties, losses) == (len(both), np.sum(a < b), np.sum(a == b), np.sum(a > b))
        assert wins + ties + losses == n
        far = np.where(np.isinf(a - b), np.sign(a - b) * 1e9, a - b)
        assert row[5].value == pytest.approx(stats.wilcoxon(far, method="exact").pvalue, rel=1e-12)
        assert row[5].best == (row[5].value < 0.05)
        assert row[8].value[0] == pytest.approx(np.median(a - b), rel=1e-9)
        assert row[8].value[1] <= row[8].value[0] <= row[8].value[2]
        found[row[0].text] = row[5].value
    order = sorted(found.values())
    for row in table.rows:
        at = order.index(row[5].value)
        expected = max(min(1.0, (len(order) - i) * order[i]) for i in range(at + 1))
        assert row[6].value == pytest.approx(expected)


@pytest.mark.parametrize("task", study_cases.TASKS[:3])
def test_the_papers_tests_stand_beside_ours(tables, task):
    table, paper = tables[f"{task}-pairs-parameter"], wilcoxon_table(task)
    assert paper is not None
    for arm in paper.arms:
        row = paper.row(arm, task)
        assert table.cell(arm, "paper: wins").text == f"{row['parameter.wins']} of 10"
        assert table.cell(arm, "paper: p").text == row["parameter.p"].printed
    assert table.cell("adapt-only", "paper: wins").text == "\N{EN DASH}"


def test_seeds_without_a_partner_are_named(tables):
    table = tables[f"{LAYER}-pairs-parameter"]
    assert table.cell("random-decay", "pairs").value == 8
    assert "Left out of the pairs: only tgsr has seed 8, 9." in table.notes


@pytest.mark.parametrize("task", study_cases.TASKS)
def test_events_wins_and_ties_are_the_pairs(results, tables, task):
    table, base = tables[f"{task}-events"], errors(results, task, "scratch")
    fields = errors(results, task, "scratch", "field")
    assert len(table.rows) == len(fed(results, task)) - 1
    for row in table.rows:
        n, events, masked, wins, ties = (row[i].value for i in range(1, 6))
        assert events + wins + ties == n
        ours, own = errors(results, task, row[0].text), errors(results, task, row[0].text, "field")
        assert events == sum(ours[s] > base[s] for s in ours)
        assert masked == sum(ours[s] > base[s] and own[s] <= fields[s] for s in ours)
    if task == LAYER:
        assert table.cell("bitfit", "ties").value == 1  # both failed at the same seed
        paper = paper_tables()["negative_transfer_frequency"].row("full", task)
        assert table.cell("full", "paper: events").value == paper["events"] == 7


@pytest.mark.parametrize("task", study_cases.TASKS)
def test_error_over_bound(results, tables, task):
    for row in tables[f"{task}-limits"].rows:
        arm, unknown = row[0].text, row[1].text
        runs = [r for r in results.records if (r.role, r.task, r.arm) == ("target", task, arm)]
        ratios = [r.errors[unknown] / r.bounds[unknown] for r in runs]
        assert row[5].value == pytest.approx(np.median(ratios))
        assert row[4].value == pytest.approx(np.median([r.errors[unknown] for r in runs]))
        if row[5].value > 3:
            assert "optimiser" in row[6].text


@pytest.mark.parametrize("task", study_cases.TASKS)
def test_what_the_readings_contributed(results, tables, task):
    table = tables[f"{task}-controls"]
    assert [row[0].text for row in table.rows] == list(study_cases.WITHOUT)
    for row in table.rows:
        with_, without = (errors(results, task, arm) for arm in (row[0].text, f"{row[0].text}, no readings"))
        assert row[4].value == pytest.approx(np.median(list(without.values())) / np.median(list(with_.values())))
        assert row[5].value == (sum(with_[s] < without[s] for s in with_), len(with_))
    if task == PULSE:
        assert "smaller" in table.cell("tgsr", "what it says").text
    if task == "smooth-advection-diffusion":
        assert "larger" in table.cell("tgsr", "what it says").text


def test_nothing_is_left_out_of_a_picture_unsaid(results, tables):
    table = tables[f"{LAYER}-exclusions"]
    for row in table.rows:
        shown, n = row[3].value
        outside = [part for part in re.split("[,;] ", row[4].value) if part]
        assert shown + len(outside) == n
        values = list(errors(results, LAYER, row[0].text, row[1].text).values())
        assert shown == sum(v <= row[2].value * (1 + 1e-9) for v in values)
    assert table.cell("sfp", "paper: excluded").text == "2 of 10: 100.000 to 421745.589"


def test_local_metrics(results, tables):
    table, paper = tables[f"{LAYER}-local"], paper_tables()["pe_local_metrics"]
    for arm in paper.arms:
        for name in ("layer", "gradient"):
            assert table.cell(arm, f"paper: {name} error").text == paper.row(arm)[name].printed
            values = list(errors(results, LAYER, arm, name).values())
            assert table.cell(arm, f"{name} error, mean ± sd").value[0] == pytest.approx(np.mean(values))
    assert next(c for c in table.columns if c.name.startswith("gradient")).unit == ""


def test_every_unknown_and_the_papers_best_alpha(results, tables):
    table = tables["smooth-advection-diffusion-unknowns"]
    for arm in ("full", "tgsr"):
        best = min(errors(results, "smooth-advection-diffusion", arm, "alpha").values())
        assert table.cell(arm, "alpha, best").value == best
    assert table.cell("tgsr", "paper: alpha, best").text == "0.38"


def test_cost(results, tables):
    table = tables["cost-methods"]
    row = next(r for r in table.rows if (r[0].text, r[1].text) == ("tgsr", "smooth-advection-diffusion"))
    runs = [r for r in results.records if (r.arm, r.task) == ("tgsr", "smooth-advection-diffusion")]
    full = [r.seconds for r in results.records if (r.arm, r.task) == ("full", "smooth-advection-diffusion")]
    assert row[3].value == (np.median([r.closures for r in runs]), *(f(r.closures for r in runs) for f in (min, max)))
    assert row[4].value == 1000
    assert row[6].value == pytest.approx(100 * (np.median([r.seconds for r in runs]) / np.median(full) - 1))
    assert (row[7].text, row[8].text) == ("266", "13.0")
    stage = next(r for r in tables["cost-stages"].rows if [c.text for c in r[:3]] == ["tgsr", runs[0].task, "scoring"])
    assert stage[3].value == pytest.approx(np.median([r.stages["scoring"]["seconds"] for r in runs]))
    assert [c.text for c in stage[6:]] == ["3", "470"]
    assert sum(r[2].value for r in tables["cost-sources"].rows) == 35


def test_every_failure_has_its_sentence(results, tables):
    failed = [r for r in results.records if not r.ok]
    rows = tables["failures-runs"].rows
    assert [(row[0].text, row[3].value, row[5].text) for row in rows] == [(r.arm, r.seed, r.sentence) for r in failed]
    assert [row[4].text for row in rows] == ["diverged", "crashed", "timeout", "diverged"] or len(rows) == 4
    waiting = tables["failures-pending"].rows
    assert [row[4].text for row in waiting] == [p.reason for p in results.pending]
    assert sum(row[5].value for row in waiting) == len(results.pending)


def test_a_run_that_ended_well_with_an_infinite_error_counts_as_failed():
    case = study_cases.one_run()
    run = replace(case.records[0], errors={"parameter": math.nan, "field": 1.0})
    tables = {t.key: t for s in study_tables(replace_records(case, [run])) for t in s.tables}
    assert "parameter" in tables["failures-runs"].rows[0][5].text
    assert tables[f"{LAYER}-results"].cell("tgsr", "failed").value == 1


def test_differences_between_environments_are_flagged(results, tables):
    table = tables["provenance-environment"]
    odd = [row for row in table.rows if row[3].text]
    assert {row[0].text for row in odd} == {"processor"}
    assert sum(row[2].value for row in odd) == len(results.records)
    assert any("Runs differ in processor" in note for note in table.notes)
    facts = {row[0].text: row[1].text for row in tables["provenance-study"].rows}
    assert facts["profile"] == "laptop"
    assert facts["runs"] == "488 of targets, 35 of sources"


def test_only_contradictions_that_concern_the_report(results):
    def told(case):
        keys = {t.key: t for s in study_tables(case) for t in s.tables}
        return [row[1].text for row in keys["paper-contradictions"].rows] if "paper-contradictions" in keys else []

    assert any("0, 3 and 1 events" in text for text in told(results))
    assert not any("gamma" in text or "intensity-matched" in text for text in told(results))
    assert told(study_cases.study((PULSE,), 2)) == []
    assert told(study_cases.shipped("protection", 2))[-1].startswith("The intensity-matched control")


def test_only_references_that_were_used(results):
    def keys(case):
        return {r.key for r in citations(case, views(case))}

    assert {"benzaken2022", "li2018l2sp", "he2018sfp", "levenberg1944", "cole1951"} <= keys(results)
    assert not {"hu2022lora", "liu1989", "kingma2015"} & keys(results)
    single = keys(study_cases.one_run())
    assert {"tgsr-pinn", "raissi2019", "jax2018"} <= single
    assert not {"wilcoxon1945", "wang2019negative", "cole1951", "benzaken2022"} & single
    entries = bibtex(CATALOGUE.values())
    assert entries.count("{") == entries.count("}")
    assert entries.isascii()
    assert len(re.findall(r"^@\w+\{[a-z0-9-]+,$", entries, re.MULTILINE)) == len(CATALOGUE)


@pytest.mark.parametrize("make", ["one_run", "nothing", "failed_everywhere", "users_study", "hostile", "study"])
def test_every_study_has_a_report(make):
    case = getattr(study_cases, make)()
    sections = study_tables(case)
    tables = [table for section in sections for table in section.tables]
    assert {"failures", "provenance", "citations"} <= {section.key for section in sections}
    keys = [table.key for table in tables]
    assert len(set(keys)) == len(keys)
    for table in tables:
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", table.key)
        names = [column.heading for column in table.columns]
        assert len(set(names)) == len(names)
        for row in table.rows:
            for cell in row:
                assert "\n" not in cell.text
                assert cell.text.isprintable()
                assert "nan" not in cell.text.split()


def test_a_single_run_compares_nothing():
    tables = {t.key: t for s in study_tables(study_cases.one_run()) for t in s.tables}
    row = tables[f"{LAYER}-results"].rows
    assert len(row) == 1
    assert not any(cell.best for cell in row[0] if not cell.paper)
    assert f"{LAYER}-pairs-parameter" not in tables
    assert f"{LAYER}-events" not in tables
    assert f"{LAYER}-controls" not in tables


def test_without_a_truth_there_are_estimates_and_no_errors():
    case = study_cases.users_study()
    tables = {t.key: t for s in study_tables(case) for t in s.tables}
    assert not any("error" in c.name and "standard" not in c.name for c in tables["rod-estimates"].columns)
    row = next(r for r in tables["rod-estimates"].rows if (r[0].text, r[1].text) == ("tgsr", "kappa"))
    values = [r.unknowns["kappa"].value for r in case.records if r.arm == "tgsr"]
    assert row[4].value == pytest.approx(np.median(values))
    assert row[5].value == (min(values), max(values))
    assert row[6].value == pytest.approx(np.std(values, ddof=1))
    assert row[8].text == "m2/s"
    lost = next(r for r in tables["rod-estimates"].rows if r[1].text == "h")
    assert lost[7].text == "not identifiable"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.086, "0.0860"), (0.1259, "0.126"), (5348.6681, "5349"), (42184.8503, "42185"), (4.976e12, "4.98e12"),
        (1e-5, "1.00e-5"), (0.99999, "1.00"), (-3.2, "\N{MINUS SIGN}3.20"), (0.0, "0"), (10.0, "10"), (math.inf, "∞"),
        (-math.inf, "\N{MINUS SIGN}∞"), (math.nan, "\N{EN DASH}"), (999.96, "1000"), (12.345, "12.3"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert num(value) == text


def test_differences_carry_their_sign():
    assert signed(0.5) == "+0.500"
    assert signed(-0.5) == "\N{MINUS SIGN}0.500"
    assert signed(0.0) == "0"


def test_a_leak_is_only_claimed_beyond_luck():
    one = Limit("t", "a", "k", 1.0, 0.2, 0.2, 1)
    assert not leaks(one)  # one draw of |N(0, 1)| is below 0.2 in 16 of 100
    assert leaks(replace(one, n=10))
    assert leaks(replace(one, ratio=0.01))
    assert not leaks(replace(one, ratio=0.35, n=1000))


def test_a_table_checks_its_own_shape():
    column = (Column("a"), Column("b", parts=("x", "y")))
    Table("k", "t", "", column, ((Cell("1", 1), Cell("2", (1, 2))),))
    with pytest.raises(ValueError, match="1 cells for 2"):
        Table("k", "t", "", column, ((Cell("1", 1),),))
    with pytest.raises(ValueError, match="exports"):
        Table("k", "t", "", column, ((Cell("1", 1), Cell("2", 2)),))


def test_slugs_are_safe_and_never_empty():
    assert slug(study_cases.HOSTILE) == "script-alert-1-script-1-2-a-frac-1-31m"
    assert slug("../../etc") == "etc"
    assert slug("<>") == "x"
    assert len(slug("a" * 500)) == 40


def replace_records(case, records):
    return type(case)(**{**vars(case), "records": tuple(records)})
