"""The page of a study in a real browser: fits every width, keeps its own rules, answers to mouse and keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import study_cases as cases
from devtools import Tab, chromium

from tgsr.report import _study_page
from tgsr.report._panel import Panel
from tgsr.report._study_page import write_study_report
from tgsr.report._svg import panel_svg

pytestmark = pytest.mark.browser

WIDTHS = (360, 768, 1440)
TOO_WIDE = """[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll, pre, svg, .skip, .unseen")
  && e.getClientRects().length && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.tagName + "." + e.className)"""
RUNS = 300


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page of two tasks. The second half of its pictures is left out: they are like the first."""
    count = 0

    def some(panel: Panel, identity: str, letters: set[str] | None = None) -> str:
        nonlocal count
        count += 1
        return panel_svg(panel, identity, letters) if count <= 12 else "<svg/>"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_study_page, "panel_svg", some)
        path = tmp_path_factory.mktemp("study") / "report.html"
        return write_study_report(cases.study(cases.TASKS[:2], seeds=6), path).as_uri()


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Tab]:
    """An empty tab."""
    with chromium(tmp_path / "profile") as one:
        yield one


def opened(tab: Tab, address: str, width: int = 1440, height: int = 900) -> None:
    """The page in a window of that size."""
    tab.size(width, height)
    tab.open(address)


def focus(tab: Tab, selector: str) -> None:
    """Put the keyboard there."""
    tab.value(f"document.querySelector({json.dumps(selector)}).focus()")


def focused(tab: Tab, what: str) -> Any:
    """A property of the element that has the keyboard."""
    return tab.value(f"document.activeElement.{what}")


def rows(tab: Tab, selector: str) -> list[str]:
    """The headings of a table's rows, as they stand."""
    return tab.value(
        f"[...document.querySelectorAll({json.dumps(selector + ' tbody th')})].map(e => e.firstChild.data)"
    )


def test_it_fits_phone_and_desk_in_light_and_dark_and_breaks_no_rule_of_its_own(tab: Tab, page: str) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        tab.media(prefers_color_scheme=scheme)
        for width in WIDTHS:
            opened(tab, page, width)
            tab.value("document.querySelectorAll('details').forEach((d, i) => { if (i < 30) d.open = true; })")
            tab.value("document.querySelectorAll('.shown').forEach(e => { e.style.contentVisibility = 'visible'; })")
            assert tab.value(TOO_WIDE) == []
            assert tab.value("document.documentElement.scrollWidth") == width
            assert tab.value("getComputedStyle(document.body).marginTop") == "0px", "the style sheet was refused"
        grounds.add(tab.value("getComputedStyle(document.body).backgroundColor"))
        inks = "new Set([...document.querySelectorAll('figure path')].map(e => getComputedStyle(e).stroke)).size"
        assert tab.value(inks) > 4, "the colours of the pictures were refused"
    assert len(grounds) == 2
    assert tab.complaints == []
    assert set(tab.asked) == {page}


def test_hostile_names_run_nothing_and_widen_nothing(tab: Tab, tmp_path: Path) -> None:
    address = write_study_report(cases.hostile(), tmp_path / "report.html").as_uri()
    for width in (360, 1440):
        opened(tab, address, width)
        assert tab.value("document.documentElement.scrollWidth") == width
    focus(tab, "#plot [aria-label^='<script>']")
    assert tab.value("document.querySelector('#tip').innerText").startswith("<script>alert(1)</script>")
    assert tab.complaints == []
    assert set(tab.asked) == {address}


def test_without_scripts_every_answer_number_and_run_is_there(tab: Tab, page: str) -> None:
    tab.scripts(False)
    opened(tab, page, 360)
    tab.scripts(True)  # for the questions below; the page's own script was not run
    assert tab.value("[...document.querySelectorAll('.task')].every(e => e.getClientRects().length > 0)")
    assert tab.value("document.querySelector('#scatter').getClientRects().length") == 0
    assert tab.value("document.querySelector('noscript p').getClientRects().length") == 1
    assert tab.value("document.querySelectorAll('.sort').length") == 0
    assert tab.value("document.documentElement.scrollWidth") == 360
    tab.click("#runs-0 > summary")
    tab.click("#run-6 details > summary")
    assert tab.value("document.querySelector('#run-6 .more dl').getClientRects().length") == 1
    assert tab.value("document.querySelector('#run-7 .more dl').getClientRects().length") == 0
    assert tab.complaints == []


def test_a_method_switched_off_is_hidden_in_the_scatter_and_in_every_picture(tab: Tab, page: str) -> None:
    opened(tab, page)
    number = tab.value("[...document.querySelectorAll('#arms label')].findIndex(e => e.textContent === 'full')")
    points = "document.querySelectorAll('#plot .point').length"
    marks = f"[...document.querySelectorAll('figure [data-arm=\"{number}\"]')].map(e => getComputedStyle(e).visibility)"
    before, pictures = tab.value(points), tab.value(marks)
    assert set(pictures) == {"visible"}
    tab.click(f"#arms label[data-number='{number}'] input")
    assert tab.value(points) == before - 6
    assert (
        tab.value("[...document.querySelectorAll('#plot .point')].some(e => e.ariaLabel.startsWith('full, seed'))")
        is False
    )
    assert set(tab.value(marks)) == {"hidden"}
    focus(tab, f"#arms label[data-number='{number}'] input")
    tab.press(" ")
    assert tab.value(points) == before
    assert set(tab.value(marks)) == {"visible"}
    assert tab.complaints == []


def test_the_keyboard_reaches_every_run_and_tells_what_it_is(tab: Tab, page: str) -> None:
    opened(tab, page)
    focus(tab, "#whole")
    tab.press("Tab")
    first = focused(tab, "ariaLabel")
    assert "seed" in first
    assert tab.value("document.querySelector('#tip').hidden") is False
    tip = tab.value("document.querySelector('#tip').innerText")
    for part in (first.split(":")[0], "parameter error", "field error", "closures", "seconds", "outcome"):
        assert part in tip
    seen = {first}
    for _ in range(9):
        tab.press("ArrowRight")
        seen.add(focused(tab, "ariaLabel"))
    assert len(seen) == 10
    assert tab.value("document.querySelectorAll('#plot [tabindex=\"0\"]').length") == 1
    tab.press("Escape")
    assert tab.value("document.querySelector('#tip').hidden") is True
    tab.press("ArrowLeft")
    assert tab.value("document.querySelector('#tip').hidden") is False
    tab.press("Tab")  # into the tip
    assert focused(tab, "textContent") == "all about this run"
    tab.press("Tab")
    assert tab.value("document.querySelector('#tip').hidden") is True


def test_a_run_of_the_scatter_leads_to_all_about_it(tab: Tab, page: str) -> None:
    opened(tab, page)
    focus(tab, "#plot [tabindex='0']")
    told = focused(tab, "ariaLabel").split(":")[0]
    tab.press("Enter")
    row = tab.value("(e => e.querySelector('th').innerText + ', seed ' + e.querySelector('td').innerText)"
                    "(document.querySelector(location.hash))")  # fmt: skip
    assert row == told
    assert focused(tab, "id") == tab.value("location.hash.slice(1)")
    assert tab.value("document.querySelector(location.hash + ' .more').getClientRects().length") == 1
    box = tab.value("(b => [b.top, b.bottom])(document.querySelector(location.hash).getBoundingClientRect())")
    assert box[1] > 0
    assert box[0] < 900


def test_the_mouse_shows_the_nearest_run(tab: Tab, page: str) -> None:
    opened(tab, page)
    tab.value("document.querySelector('#plot').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y = tab.value(
        "(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector('#plot .point').getBoundingClientRect())"
    )
    tab.mouse("mouseMoved", x + 3, y + 2)
    assert tab.value("document.querySelector('#tip').hidden") is False
    same = tab.value("document.querySelectorAll('#plot .same').length")
    assert 5 < same < 20  # the runs of one seed
    tab.mouse("mouseMoved", 5, 5)
    assert tab.value("document.querySelector('#tip').hidden") is True


def test_axes_and_task_are_the_readers_choice(tab: Tab, page: str) -> None:
    opened(tab, page)
    choose = (
        "(e => {{ e.value = {1}; e.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
        "(document.querySelector('#{0}'))"
    )
    names = tab.value("[...document.querySelectorAll('#choose-x option')].map(e => e.text)")
    assert {"parameter error [%]", "field error [%]", "gradient error", "closures", "seconds [s]"} <= set(names)
    tab.value(choose.format("choose-x", names.index("closures")))
    assert "parameter error against closures" in tab.value("document.querySelector('#plot-words').textContent")
    ticks = "[...document.querySelectorAll('#plot text[text-anchor=middle]')].map(e => e.textContent)"
    before = tab.value(ticks)
    tab.click("#log-x")
    assert tab.value(ticks) != before or "1000" in before
    tab.value(choose.format("choose-task", 1))
    assert "runs of allen-cahn-burgers" in tab.value("document.querySelector('#plot-words').textContent")
    assert tab.value("document.querySelector('[role=tab][aria-selected=true]').textContent").startswith(
        "allen-cahn-burgers"
    )
    assert tab.complaints == []


def test_tasks_are_tabs_for_mouse_and_keyboard(tab: Tab, page: str) -> None:
    shown = "[...document.querySelectorAll('.task')].map(e => e.getClientRects().length > 0)"
    opened(tab, page)
    assert tab.value(shown) == [True, False]
    focus(tab, "[role=tab]")
    tab.press("ArrowRight")
    assert tab.value(shown) == [False, True]
    assert focused(tab, "getAttribute('aria-selected')") == "true"
    tab.press("Home")
    assert tab.value(shown) == [True, False]
    tab.click("[role=tab]:not([aria-selected=true])")
    assert tab.value(shown) == [False, True]
    assert tab.value("location.hash") == "#task-1"
    tab.open("about:blank")
    tab.open(page + "#task-1")
    assert tab.value(shown) == [False, True]
    tab.media("print")
    assert tab.value(shown) == [True, True]


def test_columns_are_sorted_by_their_numbers(tab: Tab, page: str) -> None:
    opened(tab, page)
    table = "#table-boundary-layer-results"
    at = tab.value(
        f"[...document.querySelectorAll('{table} th[scope=col]')].findIndex(e => e.textContent.includes('median')) + 1"
    )
    head = f"{table} th[scope=col]:nth-child({at})"
    before = rows(tab, table)
    tab.click(f"{head} button")
    up = rows(tab, table)
    focus(tab, f"{head} button")
    tab.press("Enter")
    assert sorted(up) == sorted(before)
    assert up != before
    assert rows(tab, table) == up[::-1]
    assert tab.value(f"document.querySelector('{head}').ariaSort") == "descending"
    values = tab.value(
        f"[...document.querySelectorAll('{table} tbody td:nth-child({at})')].map(e => Number(e.dataset.v))"
    )
    assert values == sorted(values, reverse=True)


def test_paper_shows_every_answer_and_no_control(tab: Tab, page: str, tmp_path: Path) -> None:
    opened(tab, page, 700)
    tab.media("print")
    for gone in ("nav", "#explore", "details.runs"):
        assert tab.value(f"document.querySelector('{gone}').getClientRects().length") == 0
    assert tab.value("document.documentElement.scrollWidth") <= 700
    tab.printed(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    hidden = "[...document.querySelectorAll('.answers details')].filter(e => !e.open).length"
    assert tab.value(hidden) == 0  # what was folded away is on the paper


@pytest.mark.timeout(900)  # nearly all of it is drawing the pictures
def test_a_report_of_three_hundred_runs_opens_in_under_two_seconds(tab: Tab, tmp_path: Path) -> None:
    results = cases.study(cases.TASKS[:2], seeds=11)
    assert len(results.records) >= RUNS
    path = write_study_report(results, tmp_path / "report.html")
    assert path.stat().st_size <= 5_000_000
    times = []
    for _ in range(3):
        tab.open("about:blank")
        before = tab.busy()
        opened(tab, path.as_uri())
        times.append(tab.busy() - before)
    assert sorted(times)[1] < 1.0  # half the bar: the rest is for starting and for reading the file
    assert tab.value("document.querySelectorAll('#plot .point').length") > 100
    assert tab.complaints == []
