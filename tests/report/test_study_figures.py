"""Figures of studies: what is drawn is what the statistics say, nothing is lost in silence, nothing empty is drawn."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import study_cases as cases
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tgsr._errors import InputError
from tgsr.methods import TgsrOptions
from tgsr.report._arms import arm_styles, in_groups, main_arms, reference_arm
from tgsr.report._figures_fields import _slope, error_maps
from tgsr.report._figures_history import _band
from tgsr.report._marks import mark, read_mark
from tgsr.report._panel import Panel
from tgsr.report._study_curves import Curve, Runs, truth_of
from tgsr.report._study_figure import Scene, StudyFigure
from tgsr.report._study_figures import draw_figure, figure_bytes, save_figures, study_figures
from tgsr.report._study_variants import DEFAULTS
from tgsr.report._style import house_style
from tgsr.report._svg import panel_svg
from tgsr.report._task_view import views
from tgsr.study._limits import common_range, exclusions
from tgsr.study._pairs import compare_arms, errors_of
from tgsr.study._results import StudyResults
from tgsr.study._shipped import shipped_specs
from tgsr.study.paper import results_table

BL, RD = "boundary-layer", "reaction-diffusion"


@cache
def big() -> StudyResults:
    return cases.study((BL,))


@cache
def figures() -> dict[str, StudyFigure]:
    return {figure.key: figure for figure in study_figures(big())}


def drawn(panel: Panel) -> Axes:
    with house_style():
        ax = Figure(figsize=panel.size, layout="constrained").add_subplot()
        panel.draw(ax)
    return ax


def marks(ax: Axes) -> dict[str, tuple[float, float]]:
    """Where every marked point with words stands."""
    found = {}
    for line in ax.lines:
        known = read_mark(line.get_gid() or "")
        if known and known[1]:
            found[known[1]] = float(np.asarray(line.get_xdata())[-1]), float(np.asarray(line.get_ydata())[-1])
    return found


def scene(results: StudyResults, task: str = BL) -> Scene:
    view = next(view for view in views(results) if view.task == task)
    return Scene(results, view, arm_styles(results), Runs(results))


def test_a_big_study_has_every_figure_of_its_task() -> None:
    kinds = "errors joint pairs harm bound control convergence stages exact maps profiles cost layers".split()
    assert {f"{BL}-{kind}" for kind in kinds} | {"overhead"} == set(figures())
    for figure in figures().values():
        assert re.fullmatch(r"[a-z0-9.-]+", figure.key)
        assert figure.section in (BL, "cost")
        assert figure.title
        assert len(figure.words) > 40
        assert figure.panels
        assert 1 <= figure.columns <= len(figure.panels)
        assert all(panel.words and len(panel.words) < 1200 for panel in figure.panels)


def test_every_run_of_the_error_figure_is_a_point_an_arrow_or_a_cross_and_the_shown_ones_are_counted() -> None:
    ax = drawn(figures()[f"{BL}-errors"].panels[0])
    places, right = marks(ax), ax.get_xlim()[1]
    samples = {arm: errors_of(big().records, BL, arm) for arm in main_arms(big(), BL)}
    upper = common_range({arm: list(sample.values()) for arm, sample in samples.items()})
    counts = {
        out.arm: f"{out.retained}/{out.n}" for out in exclusions({a: s.values() for a, s in samples.items()}, upper)
    }
    assert {text.get_text() for text in ax.texts} >= set(counts.values())
    for arm, sample in samples.items():
        for seed, value in sample.items():
            words = f"{arm}, seed {seed}: " + (f"{value:.4g} %" if math.isfinite(value) else "failed")
            assert places[words][0] == pytest.approx(value if value <= right else right)
    assert "sfp 2 of 10" in figures()[f"{BL}-errors"].panels[0].words
    assert "1 failed" in figures()[f"{BL}-errors"].panels[0].words


def test_the_papers_mean_stands_where_the_paper_has_it_and_only_for_its_methods() -> None:
    table = results_table(BL)
    assert table is not None
    quoted = {
        words: at for words, at in marks(drawn(figures()[f"{BL}-errors"].panels[0])).items() if "the paper" in words
    }
    assert set(quoted) == {f"{arm}, the paper: {table.quoted(arm, 'parameter').value:.4g}" for arm in cases.METHODS}
    assert quoted["tgsr, the paper: 0.126"][0] == pytest.approx(0.126)


def test_pairs_are_the_differences_that_the_statistics_test() -> None:
    panel = figures()[f"{BL}-pairs"].panels[0]
    places = [x for words, (x, _) in marks(drawn(panel)).items() if words.startswith("full, seed")]
    pair = compare_arms(big().records, BL, "tgsr", "full")
    expected = [ours - theirs for ours, theirs in zip(pair.ours, pair.theirs, strict=True)]
    np.testing.assert_allclose(sorted(places), sorted(expected))
    assert f"full {pair.tally.wins} of {pair.n} (p = {pair.test.p:.3f})" in panel.words


def test_a_detail_of_the_scatter_changes_the_limits_and_nothing_else() -> None:
    whole, *details = figures()[f"{BL}-joint"].panels
    everywhere = marks(drawn(whole))
    assert len(details) == 2
    for detail in details:
        ax = drawn(detail)
        assert {words: everywhere[words] for words in marks(ax)} == marks(ax)
        assert np.ptp(ax.get_xlim()) < np.ptp(drawn(whole).get_xlim())


@pytest.mark.parametrize("name", sorted(shipped_specs()))
def test_every_shipped_study_has_its_figure_in_its_own_section(name: str) -> None:
    own = [figure for figure in study_figures(cases.shipped(name, seeds=3)) if figure.section == name]
    figure = next(figure for figure in own if figure.key.endswith(name.removesuffix("-cross-pde")))
    drawn(figure.panels[-1])


def test_the_defaults_that_variants_are_told_by_are_the_methods() -> None:
    options = TgsrOptions()
    assert {name: getattr(options, name) for name in DEFAULTS} == DEFAULTS


def test_a_sweep_shows_means_and_the_papers_numbers_at_their_values() -> None:
    results = cases.shipped("alpha-s")
    figure = next(figure for figure in study_figures(results) if figure.key.endswith("alpha-s"))
    ax = drawn(figure.panels[0])
    sample = list(errors_of(results.records, "smooth-advection-diffusion", "alpha_s = 0.8", "alpha").values())
    (mean,) = [at for words, at in marks(ax).items() if words.startswith("alpha_s = 0.8: mean")]
    assert mean == pytest.approx((0.8, float(np.mean(sample))))
    assert [float(line.get_ydata()[0]) for line in ax.lines if line.get_marker() == "D"] == [  # type: ignore[index]
        17.9, 14.4, 29.2, 15.9, 17.4, 13.8, 16.2, 15.2, 13.2, 18.1, 14.6,
    ]  # fmt: skip


def test_nothing_is_drawn_where_nothing_is_known() -> None:
    assert study_figures(cases.nothing()) == ()
    kinds = {figure.key for figure in study_figures(replace(cases.failed_everywhere(), folder=None))}
    assert kinds <= {f"{BL}-exact", f"{BL}-harm"}
    (only,) = study_figures(cases.users_study())
    assert only.key == "rod-estimates"
    assert len([w for w in marks(drawn(only.panels[0])) if w.startswith("tgsr, seed")]) == 4


def test_a_single_run_and_a_hostile_study_are_drawn() -> None:
    for results in (cases.one_run(), cases.hostile()):
        for figure in study_figures(results):
            assert "<script>alert" not in panel_svg(figure.panels[-1], "p")


def test_marks_survive_in_svg_as_titles_and_letters_are_written_once() -> None:
    letters: set[str] = set()
    panels = figures()[f"{BL}-errors"].panels[:2]
    pictures = [panel_svg(panel, f"p{i}", letters) for i, panel in enumerate(panels)]
    page = ElementTree.fromstring(f"<body>{''.join(pictures)}</body>")
    ids = [node.get("id") for node in page.iter() if node.get("id")]
    assert len(ids) == len(set(ids))
    referred = [node.get("href", "")[1:] for node in page.iter() if node.get("href", "").startswith("#")]
    referred += re.findall(r"url\(#([^)]+)\)", "".join(pictures))
    assert set(referred) <= set(ids)
    seeds = [node for node in page.iter("g") if (t := node.find("title")) is not None and "tgsr, seed 3" in str(t.text)]
    number = str(arm_styles(big())["tgsr"].number)
    assert [node.get("data-arm") for node in seeds] == [number, number]
    assert len(pictures[1]) < 0.8 * len(panel_svg(panels[1], "p1"))


@pytest.mark.parametrize("words", ["", "a: b", "tgsr, seed 3: 0.1 %", "<x>&\"'"])
def test_a_mark_is_read_back(words: str) -> None:
    ax = Figure().add_subplot()
    (line,) = ax.plot([0.0], [1.0])
    mark(line, 7, words)
    assert read_mark(line.get_gid() or "") == ("7", words)
    assert read_mark("axes_1") is None


@pytest.mark.parametrize("count", [1, 2, 5, 6, 10, 11, 23])
def test_groups_hold_every_arm_once_and_the_leading_one_in_each(count: int) -> None:
    arms = [f"arm {i}" for i in range(count)]
    groups = in_groups(arms, "arm 0")
    assert all(len(group) <= 6 and group[-1] == "arm 0" for group in groups)
    others = [arm for group in groups for arm in group if arm != "arm 0"]
    assert others == arms[1:]


def test_arms_look_different_and_keep_their_look() -> None:
    styles = arm_styles(big())
    looks = [(style.colour, style.dash) for arm, style in styles.items() if "no readings" not in arm]
    assert len(set(looks)) == len(looks)
    assert styles["tgsr"].stands_out
    assert styles["tgsr, no readings"].colour == styles["tgsr"].colour
    other = arm_styles(cases.shipped("mechanism"))
    assert other["adapt-only"].colour == styles["adapt-only"].colour
    assert reference_arm(cases.shipped("protection"), "smooth-advection-diffusion") == "depth"


def test_a_curve_starts_at_the_first_guess_and_ends_at_the_error_of_the_record() -> None:
    runs = Runs(big())
    for record in (r for r in big().records if r.role == "target" and r.arm in ("tgsr", "full") and r.seed == 1):
        curve = runs.curve(record)
        assert curve is not None
        assert np.all(np.diff(curve.closures) >= 0)
        assert curve.at(0.0) == pytest.approx(200.0)  # guessed 3 times the truth
        assert curve.at(1e9) == pytest.approx(record.errors["parameter"])
        assert (curve.adapted is None) == (record.arm == "full")


def test_a_failed_run_widens_the_band_and_never_narrows_it() -> None:
    def flat(value: float) -> Curve:
        return Curve(np.zeros(1), np.array([value]), None)

    grid = np.zeros(1)
    low, middle, high = (float(end[0]) for end in _band([flat(v) for v in (1.0, 2.0, 3.0, 4.0, 5.0)], grid))
    assert (low, middle, high) == (2.0, 3.0, 4.0)
    _, middle, high = (float(end[0]) for end in _band([*(flat(v) for v in (1.0, 2.0, 3.0)), None, None], grid))
    assert middle == 3.0
    assert high == math.inf


def test_a_map_is_the_mean_absolute_error_of_the_runs_that_ended() -> None:
    own = scene(big())
    points = {"x": np.linspace(0, 1, 5)[None, :], "y": np.linspace(0, 1, 4)[:, None]}
    found = {one.arm: one for one in error_maps(own, points)}
    truth = truth_of(BL)
    assert truth is not None
    x, y = np.broadcast_arrays(points["x"], points["y"])
    runs = [run for run in own.view.runs("scratch").values() if run.ok]
    results = [big().result(run) for run in runs]
    expected = np.mean([np.abs(r.predict(x=x, y=y)["u"] - truth.field(x, y)) for r in results if r is not None], axis=0)
    np.testing.assert_allclose(found["scratch"].values, expected)
    assert (found["scratch"].used, found["scratch"].runs) == (9, 10)


@pytest.mark.parametrize(("role", "peclet"), [("target", 100.0), ("source", 5.0)])
def test_the_slope_of_the_exact_layer_is_its_derivative(role: str, peclet: float) -> None:
    truth = truth_of(BL, role)
    assert truth is not None
    x, y = np.linspace(0.0, 1.0, 11), np.full(11, 0.7)
    expected = 0.7 * peclet * np.exp(peclet * (x - 1.0)) / (1.0 - np.exp(-peclet))
    np.testing.assert_allclose(_slope(truth, {"x": x, "y": y}), expected, rtol=1e-12)


def test_all_maps_of_a_task_have_one_scale() -> None:
    def limits(panels: Sequence[Panel]) -> set[tuple[float, float]]:
        return {ax.images[0].get_clim() for ax in (drawn(panel) for panel in panels)}

    assert len(limits(figures()[f"{BL}-maps"].panels[:4])) == 1
    found = next(figure for figure in study_figures(cases.study((RD,), 2)) if figure.key == f"{RD}-maps")
    assert len(limits(found.panels[1:4])) == 1
    ((low, _),) = limits(found.panels[1:2])
    assert low == 0.0


def test_files_for_a_paper_are_the_same_every_time_and_carry_their_fonts(tmp_path) -> None:
    results = cases.users_study()
    first, again = (save_figures(results, tmp_path / name) for name in ("a", "b"))
    assert [path.name for path in first] == [f"rod-estimates.{name}" for name in ("pdf", "png", "svg")]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    pdf = first[0].read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"/CreationDate" not in pdf
    with pytest.raises(InputError, match="cannot be written as 'docx'"):
        save_figures(results, tmp_path, formats=("docx",))


def test_a_figure_on_paper_is_no_wider_than_two_columns() -> None:
    for key in (f"{BL}-exact", f"{BL}-pairs", f"{BL}-control"):
        figure = draw_figure(figures()[key])
        assert figure.get_figwidth() <= 7.4
        assert figure.get_figheight() <= 9.5
    assert figure_bytes(draw_figure(figures()[f"{BL}-control"]), "png").startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_pictures_of_a_task_with_138_runs_take_about_a_megabyte() -> None:
    letters: set[str] = set()
    sizes = [len(panel_svg(p, f"{f.key}-{i}", letters)) for f in figures().values() for i, p in enumerate(f.panels)]
    assert len([r for r in big().records if r.role == "target"]) == 138
    assert sum(sizes) < 1.15e6
