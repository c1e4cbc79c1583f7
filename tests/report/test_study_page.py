"""The page of a study: it answers first, shows every run, escapes everything, and is one self-contained file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import study_cases as cases
from pages import LOADING, Page

from tgsr import InputError
from tgsr._random import stream
from tgsr.report import _study_page
from tgsr.report._arms import arm_styles
from tgsr.report._page import style_sheet, template_text
from tgsr.report._panel import Panel
from tgsr.report._study_figure import StudyFigure
from tgsr.report._study_page import compose, study_page, write_study_report
from tgsr.report._study_ranking import ranking
from tgsr.report._study_runs import scatter_data
from tgsr.report._svg import panel_svg
from tgsr.report._table import Cell, Column, Finding, Section, Table
from tgsr.study._record import Record
from tgsr.study._results import StudyResults

SMALL = cases.TASKS[:2]


@pytest.fixture(scope="module")
def small() -> StudyResults:
    """Two tasks, fourteen arms, six seeds, with accidents."""
    return cases.study(SMALL, seeds=6)


@pytest.fixture(scope="module")
def page_text(small: StudyResults) -> str:
    """A page with every section; its pictures are empty frames."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_study_page, "panel_svg", _frame)
        return study_page(small)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, for tests of what else is on them."""
    monkeypatch.setattr(_study_page, "panel_svg", _frame)


def _frame(panel: Panel, identity: str, letters: set[str] | None = None) -> str:
    named = f'aria-labelledby="{identity}-title" aria-describedby="{identity}-words"'
    return f'<svg viewBox="0 0 1 1" role="img" {named}><title id="{identity}-title">a picture</title></svg>'


def test_the_first_line_states_profile_and_budget(page_text: str) -> None:
    first = Page(page_text).text.removeprefix("Skip to the answers ")
    assert first.startswith("Profile laptop, budget matched : 6 hidden layers of 12 tanh neurons")
    assert "<title>Transfer methods side by side (Profile laptop, budget matched)</title>" in page_text


def test_the_first_screen_answers_for_every_task_before_anything_else(page_text: str) -> None:
    words = Page(page_text).text
    answers = words[: words.index("Explore the runs With scripts")]
    assert "No: 2 of" in answers  # runs are missing, and it says so
    for question in ("recovers the parameters best", "transfer hurt", "limit", "data contribute", "cost", "solver"):
        assert len(re.findall(question, answers)) >= len(SMALL), question
    for task in SMALL:
        assert f"{task} tgsr 0." in answers or re.search(rf"{task} \S+ [\d.]+ %", answers)


def test_the_page_nests_and_its_ids_are_unique_and_found(page_text: str) -> None:
    page = Page(page_text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    wanted = [a["href"][1:] for _, a in page.tags if a.get("href", "").startswith("#")]
    wanted += [w for _, a in page.tags for k in ("aria-labelledby", "aria-describedby") if k in a for w in a[k].split()]
    assert len(wanted) > 50
    assert set(wanted) <= set(ids)


def test_the_page_loads_nothing_and_has_one_script(page_text: str) -> None:
    page = Page(page_text)
    assert not {"link", "iframe", "object", "embed", "base", "form", "img"} & {tag for tag, _ in page.tags}
    assert [a.get("type", "") for tag, a in page.tags if tag == "script"] == ["application/json", ""]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in LOADING & set(attributes):
            assert attributes[name].startswith(("#", "data:image/png;base64,", "https://doi.org/10."))
    for part in re.findall(r"<(?:style|script)>.*?</(?:style|script)>", page_text, re.DOTALL):
        bare = part.replace("http://www.w3.org/2000/svg", "")  # a name, which is never fetched
        assert not re.search(r"https?:|@import|url\(", bare)


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(page_text: str) -> None:
    policy = next(a["content"] for _, a in Page(page_text).tags if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    (style,) = re.findall(r"<style>(.*?)</style>", page_text, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", page_text, re.DOTALL)
    assert rules == {
        "default-src": "'none'", "style-src": _hash(style), "script-src": _hash(script), "img-src": "data:",
        "base-uri": "'none'", "form-action": "'none'",
    }  # fmt: skip


def test_headings_landmarks_captions_and_scopes(page_text: str) -> None:
    page = Page(page_text)
    tags = [tag for tag, _ in page.tags]
    assert set(tags) >= {"header", "nav", "main", "footer", "noscript"}
    assert tags.count("h1") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert tags.count("table") == tags.count("caption")
    assert all(a.get("scope") for tag, a in page.tags if tag == "th")
    pictures = [a for tag, a in page.tags if tag == "svg" and a.get("class") != "axis"]  # an axis is hidden as a whole
    assert all(a.get("aria-label") or a.get("aria-labelledby") for a in pictures)


def test_hostile_text_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def some(panel: Panel, identity: str, letters: set[str] | None = None) -> str:
        drawn.append(identity)
        return panel_svg(panel, identity, letters) if len(drawn) <= 4 else _frame(panel, identity)

    monkeypatch.setattr(_study_page, "panel_svg", some)
    text = study_page(cases.hostile())
    page = Page(text)
    assert text.count("<script") == 2
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not {"img"} & {tag for tag, _ in page.tags}
    assert not [name for _, a in page.tags for name in a if name.startswith("on")]
    assert page.text.count("<script>alert(1)</script>") > 20
    assert json.loads(_data(text))["tasks"][0]["name"].startswith("<script>alert(1)</script>")


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("which", ["nothing", "one_run", "failed_everywhere", "users_study"])
def test_every_kind_of_study_has_a_page(which: str) -> None:
    results = getattr(cases, which)()
    page = Page(study_page(results))
    rows = [a for tag, a in page.tags if tag == "tbody" and a.get("id", "").startswith("run-")]
    assert len(rows) == len(results.records)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["mechanism", "data-sparsity", "switching"])
def test_shipped_studies_have_a_page(name: str) -> None:
    results = cases.shipped(name, seeds=2)
    assert results.title in Page(study_page(results)).text


def test_every_run_is_listed_with_all_that_is_known_of_it(page_text: str, small: StudyResults) -> None:
    listed = page_text[page_text.index('<section id="runs"') :]
    for i, record in enumerate(small.records):
        own = listed[listed.index(f'<tbody id="run-{i}"') :]
        words = " ".join(re.sub(r"<[^>]*>", " ", own[: own.index("</tbody>")]).split())
        assert words.startswith(f"{record.arm} {record.seed} {record.outcome}")
        assert f"{record.closures:,}" in words
        assert not record.run or record.run in words
        if not record.ok:
            assert record.sentence.split(".")[0] in words


@pytest.mark.usefixtures("no_pictures")
def test_links_go_to_the_pages_that_exist_and_nowhere_else(tmp_path: Path) -> None:
    runs = [cases.target("boundary-layer", "tgsr", "tgsr", seed) for seed in range(3)]
    runs[2] = replace(runs[2], run="../elsewhere")
    for run in (runs[0], runs[2]):
        (tmp_path / "s" / run.run).mkdir(parents=True)
        (tmp_path / "s" / run.run / "report.html").write_text("a page")
    results = StudyResults("s", "", "", "smoke", "matched", "", tuple(runs), folder=tmp_path / "s", seeds=(0, 1, 2))
    for at, before in ((tmp_path / "s" / "report.html", ""), (tmp_path / "other" / "page.html", "../s/")):
        page = Page(write_study_report(results, at).read_text())
        links = [a["href"] for tag, a in page.tags if tag == "a" and not a["href"].startswith("#")]
        assert links == [f"{before}{runs[0].run}/report.html"]
        assert (at.parent / links[0]).is_file()


def test_tables_mark_the_papers_numbers_the_best_and_what_cells_remark() -> None:
    rows = (
        (Cell("tgsr", "tgsr"), Cell("0.1", 0.1, best=True), Cell("0.2", (0.2, 0.1)), Cell("a" * 60, "a", note="Look.")),
        (Cell("full", "full"), Cell("∞", math.inf), Cell("0.3", (0.3, 0.1)), Cell("b", "b", note="Look.")),
    )
    columns = (
        Column("method", align="left"),
        Column("error", "%"),
        Column("paper", paper=True, parts=("mean", "sd")),
        Column("w", "", "left"),
    )
    section = Section("x", "Numbers", "", (Table("t", "A table", "How to read it.", columns, rows, ("Beware.",)),))
    text = compose(cases.one_run(), (), (section,), ())
    assert '<th scope="col" class="number paper">paper</th>' in text
    assert '<td class="number best" data-v="0.1">0.1<span class="unseen"> (bold)</span></td>' in text
    assert '<td class="number" data-v="Infinity">∞</td><td class="number paper" data-v="0.3">0.3</td>' in text
    assert f'<td class="text">{"a" * 60}<sup>1</sup></td>' in text
    assert "1 Look. Beware." in Page(text).text


def test_pictures_stand_in_their_section_and_share_their_letters() -> None:
    def figure(key: str, section: str) -> StudyFigure:
        panel = Panel(f"Panel {key}", f"Words of {key}.", lambda ax: ax.plot([0, 1], [0, 1]))
        return StudyFigure(key, section, f"Figure {key}", f"What {key} shows.", (panel, panel), 2)

    sections = [Section(key, f"Part {key}", "", ()) for key in ("one", "two")]
    text = compose(cases.one_run(), (), sections, [figure("a", "two"), figure("b", "nowhere"), figure("c", "one")])
    words = Page(text).text
    order = ["Part one", "What c shows", "Part two", "What a shows", "More pictures", "What b shows"]
    places = [words.rindex(word) for word in order]
    assert places == sorted(places)
    ids = re.findall(r'id="([^"]+)"', text)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)
    assert sum(identity.startswith("l-") for identity in ids) < 20


def test_the_ranking_shows_every_run_and_the_best_first(small: StudyResults) -> None:
    task = SMALL[0]
    found = ranking(small.records, task, arm_styles(small))
    assert found is not None
    shown = [float(row.median) for row in found.rows if row.median != "∞"]
    assert shown == sorted(shown)
    assert {row.arm for row in found.without} == {f"{m}, no readings" for m in cases.WITHOUT}
    for row in (*found.rows, *found.without):
        count = sum(r.arm == row.arm and r.task == task and r.role == "target" for r in small.records)
        assert len(row.dots) + row.beyond + row.failed == count
        assert all(0 < x < 100 for x in row.dots)
    assert found.limit is not None
    assert next(row for row in found.rows if row.arm == "lightweight").failed == 1


def test_the_ranking_of_a_few_runs_and_of_none() -> None:
    one = ranking(cases.one_run().records, "boundary-layer", arm_styles(cases.one_run()))
    assert one is not None
    assert len(one.rows[0].dots) == 1
    assert one.ticks
    for results in (cases.failed_everywhere(), cases.users_study()):
        assert ranking(results.records, results.records[0].task, arm_styles(results)) is None


def test_the_scripts_numbers_are_those_of_the_records(page_text: str, small: StudyResults) -> None:
    data = json.loads(_data(page_text))
    assert data == json.loads(json.dumps(scatter_data(small, arm_styles(small))))
    for task in data["tasks"]:
        names = [m["key"] for m in task["measures"]]
        for i, arm, seed, outcome, ok, *values in task["runs"]:
            record = small.records[i]
            assert (data["arms"][arm][0], seed, outcome, bool(ok)) == (
                record.arm,
                record.seed,
                record.outcome,
                record.ok,
            )
            shown = values[names.index("error:parameter")]
            assert shown == (pytest.approx(record.errors["parameter"], rel=1e-3) if record.ok else None)
    assert data["tasks"][0]["measures"][0]["limit"] == pytest.approx(0.28, rel=0.1)


def test_numbers_of_any_size_and_text_of_any_length_fit() -> None:
    rng = stream(0, "init")
    wild = [
        replace(cases.target("boundary-layer", arm, arm, seed), errors={"parameter": 10.0 ** rng.uniform(-250, 250)},
                sentence="A" * 10**5, warnings=("B" * 10**5,) * 100, run="")
        for arm in ("scratch", "tgsr") for seed in range(4)
    ]  # fmt: skip
    results = StudyResults("wild", "W" * 10**5, "V" * 10**5, "smoke", "matched", "", tuple(wild))
    found = [Finding("boundary-layer", "Q" * 10**4, "A" * 10**4, "D" * 10**5, "unheard of")]
    assert len(compose(results, found, (), ())) < 300_000


@pytest.mark.usefixtures("no_pictures")
def test_the_same_study_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [write_study_report(cases.one_run(), tmp_path / name / "report.html") for name in ("a", "b")]
    assert paths[0] == tmp_path / "a" / "report.html"
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.usefixtures("no_pictures")
def test_a_page_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_study_page, "LIMIT", 10_000)
    with pytest.raises(InputError, match=r"more than 10,000"):
        write_study_report(cases.one_run(), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_what_it_stands_on(scheme: str) -> None:
    """Contrast of 4.5 : 1 for text (WCAG 2.2 AA)."""
    blocks = re.findall(r":root \{([^}]*)\}", style_sheet("page.css", "study.css"))
    colours: dict[str, str] = {}
    for i, block in enumerate(blocks):
        if scheme == "dark" or i % 2 == 0:
            colours |= dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block))
    for ink in ("ink", "faint", "link", "good", "bad"):
        for paper in ("page", "card", "soft", "warn"):
            assert _contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)


def test_the_script_is_short_and_uses_nothing_from_elsewhere() -> None:
    script = template_text("study.js")
    assert len(script.splitlines()) < 400
    assert not re.search(r"\beval\b|innerHTML|document\.write|import\(|fetch\(|XMLHttpRequest|new Function", script)


def test_records_survive_json_so_that_the_page_needs_nothing_else(small: StudyResults) -> None:
    again = tuple(Record.from_json(json.loads(json.dumps(r.as_json()))) for r in small.records[:20])
    assert compose(replace_records(small, again), (), (), ()) == compose(
        replace_records(small, small.records[:20]), (), (), ()
    )


def replace_records(results: StudyResults, records: tuple[Record, ...]) -> StudyResults:
    """The study with other records."""
    return StudyResults(
        results.name, results.title, results.about, results.profile, results.budget, results.preset, records
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(text: str) -> str:
    return re.findall(r'<script type="application/json" id="study-data">(.*?)</script>', text, re.DOTALL)[0]


def _contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    a, b = sorted((light(one), light(other)))
    return (b + 0.05) / (a + 0.05)
