"""Figures of results: every number of coordinates, and what is missing is left out without a fuss."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import report_cases as cases

from tgsr._result import Estimate
from tgsr.problem import Gaussian, StudentT
from tgsr.report import draw_result
from tgsr.report._history_panels import comparison_panels
from tgsr.report._readings import readings_of
from tgsr.report._residual_panels import residual_panels
from tgsr.report._words import stated_noise


def titles(figure) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def png(figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=40)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("coordinates", "pictures"), [(("x",), 1), (("x", "t"), 1), (("x", "y", "t"), 3), (("x", "y", "t", "z"), 3)]
)
def test_fields_are_drawn_over_one_to_four_coordinates(coordinates: tuple[str, ...], pictures: int) -> None:
    figure = draw_result(cases.result(coordinates))
    assert len(titles(figure)) == 3 + pictures
    assert png(figure).startswith(b"\x89PNG")


def test_a_curve_goes_through_what_predict_says() -> None:
    result = cases.result(("x",))
    fit = next(line for line in draw_result(result).axes[-1].lines if line.get_label() == "fit")
    x, u = np.asarray(fit.get_xdata()), np.asarray(fit.get_ydata())
    assert (x[0], x[-1]) == cases.BOXES["x"]
    np.testing.assert_allclose(u, result.predict(x=x)["u"])


def test_an_image_has_the_first_coordinate_across_and_the_second_up() -> None:
    result = cases.result(("x", "t"))
    (image,) = (image for ax in draw_result(result).axes for image in ax.images)
    values = np.asarray(image.get_array())
    assert image.get_extent() == [*cases.BOXES["x"], *cases.BOXES["t"]]
    corner = result.predict(x=cases.BOXES["x"][1], t=cases.BOXES["t"][0])["u"]  # right, below
    assert image.origin == "lower"
    assert values[0, -1] == pytest.approx(float(corner))


def test_the_band_of_an_unknown_is_its_interval_and_an_open_one_has_none() -> None:
    figure = draw_result(cases.result())
    known, unknown = figure.axes[1], figure.axes[2]
    (band,) = known.patches
    heights = np.asarray(band.get_path().transformed(band.get_patch_transform()).vertices)[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.96, 1.04))
    assert not unknown.patches
    legend = unknown.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "not identifiable from this data"


def test_unknown_fields_without_data_without_history_without_unknowns() -> None:
    extra = {"q": (cases.network(("x",), "q"), True)}
    assert "q (recovered)" in titles(draw_result(cases.result(unknown_fields=extra)))
    png(draw_result(cases.result(readings=0)))
    png(draw_result(replace(cases.result(), inputs=None)))
    png(draw_result(cases.result(unknowns={}, history=cases.history((), steps=0))))


def test_a_loss_that_ended_in_nan_is_drawn() -> None:
    result = cases.result()
    result.history.columns["loss"][-5:] = math.nan
    result.history.columns["terms"][-5:] = math.nan
    bad = {"kappa": Estimate(math.nan, math.nan, (math.nan, math.nan), "", True, 1.0)}
    png(draw_result(replace(result, unknowns=bad)))


def test_residuals_are_reading_minus_fit_over_the_stated_noise() -> None:
    result = cases.result(readings=4000)
    (readings,) = readings_of(result)
    assert readings.sigma == 0.1
    assert readings.spread == pytest.approx(0.1, rel=0.05)
    assert [panel.title for panel in residual_panels(readings)] == [
        "u: residuals",
        "u: residuals against x",
        "u: residuals against t",
    ]
    assert "No trend" in residual_panels(readings)[1].words
    tilted = replace(readings, values=readings.values + 0.1 * readings.points["x"])
    assert "A trend" in residual_panels(tilted)[1].words


@pytest.mark.parametrize("noise", [Gaussian(0.0123), StudentT(4.5e-7), Gaussian(300.0)])
def test_the_noise_is_read_from_the_sentence_that_noise_models_write(noise: Gaussian | StudentT) -> None:
    result = cases.result(likelihood=(f"rod: {noise.sentence()} (as given, 60 readings)",))
    assert stated_noise(result, 0, "u") == pytest.approx(noise.scale)
    assert stated_noise(cases.result(likelihood=("other: nothing",)), 0, "u") is None


def test_closures_spent_before_the_main_training_move_its_curve() -> None:
    result = cases.result()
    (line,) = (line for line in draw_result(result).axes[0].lines if line.get_label() == "total")
    assert result.history.closures == 120
    assert np.asarray(line.get_xdata())[-1] == result.closures == 150


def test_a_comparison_has_one_line_per_result_and_tells_equal_methods_apart() -> None:
    panels = comparison_panels([cases.result(), cases.result(seed=1)])
    assert [panel.title for panel in panels] == ["Total loss", "kappa [m2/s]", "h"]
    assert "scratch, seed 0" in panels[1].words
    assert "scratch, seed 1" in panels[1].words


def test_hostile_text_is_text_in_a_picture() -> None:
    bad = Estimate(1.0, 0.1, (0.9, 1.1), cases.HOSTILE, True, 2.0)
    png(draw_result(cases.result(unknowns={"kappa": bad})))
