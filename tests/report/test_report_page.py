"""The page of a run: well-formed, self-contained, escaped, small, and true to its result."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
import report_cases as cases
from pages import LOADING, Page

from tgsr import Errors, InputError
from tgsr._outcomes import Outcome
from tgsr._result import Estimate
from tgsr.report import _page, write_run_report
from tgsr.report._page import LIMIT, run_page


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, for tests of what else is on them."""
    monkeypatch.setattr(_page, "panel_svg", lambda panel, identity: f'<svg id="{identity}-title"/>')


@pytest.fixture(scope="module")
def full_page() -> str:
    """A page with every section."""
    extra = {"q": (cases.network(("x",), "q"), True)}
    errors = Errors({"kappa": 0.3, "h": 50.0}, 25.15, {"u": 1.25})
    one = cases.result(unknown_fields=extra, warnings=("Look here.",))
    return run_page(one, comparisons=[cases.result(method="full")], truth_errors=[errors, None])


def test_the_first_screen_answers_the_questions(full_page: str) -> None:
    first = Page(full_page).text.split("Comparison Estimates")[0]
    for answer in (
        "kappa 1.003 ± 0.020 m2/s", "95 % interval 0.96 to 1.04", "Not identifiable from this data", "converged",
        "150 closures, 2.0 s", "standard deviation is 0.1", "Look here.",
        "off the truth by 0.3 %", "field error u 1.25 %",
    ):  # fmt: skip
        assert answer in first


def test_the_page_nests_and_its_ids_are_unique_and_found(full_page: str) -> None:
    page = Page(full_page)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    wanted = [a["href"][1:] for _, a in page.tags if a.get("href", "").startswith("#")]
    wanted += [w for _, a in page.tags for k in ("aria-labelledby", "aria-describedby") if k in a for w in a[k].split()]
    wanted += re.findall(r"url\(#([^)]+)\)", full_page)
    assert wanted
    assert set(wanted) <= set(ids)


def test_the_page_loads_nothing(full_page: str) -> None:
    page = Page(full_page)
    assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in LOADING & set(attributes):
            assert attributes[name].startswith(("#", "data:image/png;base64,"))
    assert "http://" not in full_page
    assert "https://" not in full_page
    assert "@import" not in full_page
    assert len(full_page.encode()) < LIMIT / 5


def test_the_policy_allows_the_style_sheet_of_the_page_and_nothing_else(full_page: str) -> None:
    page = Page(full_page)
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    (style,) = re.findall(r"<style>(.*?)</style>", full_page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{digest}'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_pictures_have_names_words_and_tables_have_headings(full_page: str) -> None:
    page = Page(full_page)
    pictures = [a for tag, a in page.tags if tag == "svg"]
    assert len(pictures) == len([1 for tag, _ in page.tags if tag == "figcaption"]) > 8
    assert all(a["role"] == "img" and a["aria-labelledby"] and a["aria-describedby"] for a in pictures)
    tables = [tag for tag, _ in page.tags if tag == "table"]
    assert len(tables) == len([tag for tag, _ in page.tags if tag == "caption"]) == 3
    assert {tag for tag, _ in page.tags} >= {"header", "nav", "main", "footer"}
    assert all("scope" in a for tag, a in page.tags if tag == "th")


def test_hostile_text_stays_text() -> None:
    bad = Estimate(1.0, 0.1, (0.9, 1.1), cases.HOSTILE, True, 2.0)
    spoilt = cases.result(
        unknowns={"kappa": bad},
        warnings=(cases.HOSTILE,),
        likelihood=(cases.HOSTILE,),
        sentence=cases.HOSTILE,
        provenance={cases.HOSTILE: cases.HOSTILE},
        method=cases.HOSTILE,
        name=cases.HOSTILE,
    )
    assert spoilt.inputs is not None
    spoilt.inputs[0]["problem"]["fields"][0]["unit"] = cases.HOSTILE
    spoilt.inputs[0]["problem"]["data"][0]["name"] = cases.HOSTILE
    text = run_page(spoilt, comparisons=[spoilt])
    page = Page(text)
    assert "<script" not in text
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    assert not [name for _, a in page.tags for name in a if name.startswith("on")]
    assert page.text.count("<script>alert(1)</script>") > 5


@pytest.mark.usefixtures("no_pictures")
def test_endless_text_and_control_characters_are_cut() -> None:
    text = run_page(
        cases.result(warnings=("A" * 10**7, "\x1b[2J\x07 bell"), likelihood=tuple("B" * 10**4 for _ in range(500)))
    )
    assert len(text) < LIMIT / 5
    assert "\x1b" not in text


def test_a_long_run_gives_a_small_page() -> None:
    big = cases.result(("x", "y", "t"), readings=50_000, history=cases.history(steps=30_000))
    assert len(run_page(big).encode()) < LIMIT / 2


@pytest.mark.parametrize(
    "changes",
    [
        {"readings": 0},
        {"coordinates": ("x",)},
        {"coordinates": ("x", "y", "t")},
        {"unknowns": {}, "history": cases.history((), steps=0)},
        {"outcome": Outcome.NON_FINITE, "sentence": Outcome.NON_FINITE.sentence},
        {"inputs": None},
        {"method": "full"},
    ],
)
@pytest.mark.usefixtures("no_pictures")
def test_every_kind_of_result_has_a_page(changes: dict) -> None:
    page = Page(run_page(cases.result(**changes)))
    assert "Reproduce" in page.text


@pytest.mark.usefixtures("no_pictures")
def test_reproducing_names_method_seed_and_settings() -> None:
    text = Page(run_page(cases.result(seed=7))).text
    assert "tgsr solve problem.py --seed 7" in text
    assert "training=tgsr.Training(points=tgsr.Points(interior=10, sampling='sobol'))" in text
    assert (
        "tgsr transfer SOURCE problem.py --method full --seed 7"
        in Page(run_page(cases.result(seed=7, method="full"))).text
    )


def test_the_same_result_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [write_run_report(cases.result(), tmp_path / name / "page.html") for name in ("a", "b")]
    assert paths[0] == tmp_path / "a" / "page.html"
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.usefixtures("no_pictures")
def test_truth_errors_must_match_the_results() -> None:
    with pytest.raises(InputError, match="2 entries for 1 results"):
        run_page(cases.result(), truth_errors=[None, None])


@pytest.mark.usefixtures("no_pictures")
def test_the_whole_page_survives_names_the_run_directory_and_not_where_it_lies() -> None:
    page = run_page(replace(cases.result(), path=Path("/home/somebody/runs/rod-0123456789ab")))
    assert "rod-0123456789ab" in page
    assert "somebody" not in page
