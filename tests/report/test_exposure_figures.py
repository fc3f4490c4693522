"""The charts of an exposure report show what the record holds."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from scipy import stats

from remnant.records import Record
from remnant.report import read_view
from remnant.report.exposure_figures import density, exposure_figures, repeats_figure
from remnant.report.exposure_view import SkewNormalFit


def _svg(markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def _by_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in svg.iter() if name in (part.get("class") or "").split()]


def _texts(svg: ElementTree.Element, name: str) -> list[str]:
    return [(part.text or "").replace("\u202f", " ") for part in _by_class(svg, name)]


@pytest.fixture
def view(make_exposure):
    return read_view(Record.open(make_exposure()))


def test_every_canary_is_a_dot_over_its_repeats(view):
    svg = _svg(exposure_figures(view)["exposure"].wide)
    assert len(_by_class(svg, "spot")) == 24 + 16
    tips = [part[0].text.replace("\u202f", " ") for part in _by_class(svg, "spot")]
    assert "canary 10, planted 64 times: 19.93 bits, rank 1" in tips
    assert sum("never planted" in tip for tip in tips) == 16
    assert [tick for tick in _texts(svg, "tick") if tick in ("never", "1", "4", "16", "64")] == [
        *("never", "1", "4", "16", "64")
    ]


def test_chance_ceiling_limit_and_both_means_are_named(view):
    figure = exposure_figures(view)["exposure"]
    named = {"Chance 1.44", "Ceiling 19.93", "Limit 10", "Planted, mean", "Twin, mean"}
    assert set(_texts(_svg(figure.wide), "label")) == named
    assert {key.label for key in figure.keys} == named | {
        *("One canary", "One control", "Controls, mean")
    }


def test_the_controls_stand_left_of_the_axis_break(view):
    svg = _svg(exposure_figures(view)["exposure"].wide)
    (divider,) = _by_class(svg, "divider")
    middle = float(divider.get("x1"))
    for spot in _by_class(svg, "spot"):
        left = float(spot.get("cx")) < middle
        assert left == ("tone-control" in spot.get("class"))


def test_a_sampled_canary_has_whiskers_and_a_saturated_one_is_hollow(make_exposure):
    rows = [
        {
            "name": f"canary {i}", "trial": 0, "repeats": 4, "uses": 4, "bits": 5.0 + 3 * i,
            "low": 3.0 + 3 * i, "high": None if i else 7.0, "rank": None, "cost": 1.0,
            "saturated": bool(i), "skew_normal_bits": None, "twin_bits": None,
        }
        for i in range(2)
    ]  # fmt: skip
    change = {"exposure": {"canaries": rows, "controls": [], "method": "sampled"}}
    found = read_view(Record.open(make_exposure(change=change))).exposure
    figure = repeats_figure(found, ())
    svg = _svg(figure.wide)
    assert (len(_by_class(svg, "spot")), len(_by_class(svg, "ring"))) == (1, 1)
    (plot,) = _by_class(svg, "plot")
    tops = sorted(float(part.get("y1")) for part in _by_class(svg, "whisker"))
    assert tops[0] == float(plot.get("y"))
    assert tops[1] > tops[0]
    assert "One canary, at least" in {key.label for key in figure.keys}


def test_every_reference_is_in_a_bar_and_every_canary_has_a_flag(view):
    figure = exposure_figures(view)["costs"]
    svg = _svg(figure.wide)
    assert len(_by_class(svg, "bar")) == 40
    (plot,) = _by_class(svg, "plot")
    floor = float(plot.get("y")) + float(plot.get("height"))
    for bar in _by_class(svg, "bar"):
        assert float(bar.get("y")) + float(bar.get("height")) == pytest.approx(floor, abs=0.11)
    assert sorted(_texts(svg, "label")) == sorted(
        f"{one.name}, {one.repeats}×" for one in view.costs.marked
    )
    assert {(key.label, key.kind) for key in figure.keys} == {
        ("References", "bars"),
        ("A canary, and how often it was planted", "flag"),
        ("Skew-normal law", "line"),
    }


def test_without_a_fit_there_is_no_curve_over_the_bars(make_exposure):
    folder = make_exposure(change={"costs": {"skew_normal": None, "marked": []}})
    svg = _svg(exposure_figures(read_view(Record.open(folder)))["costs"].wide)
    assert _by_class(svg, "line") == []
    assert _by_class(svg, "flag") == []


def test_a_long_name_is_cut_so_that_the_chart_keeps_its_room(make_exposure):
    marked = [{"name": "n" * 80, "repeats": 4, "cost": 27.0, "bits": 3.0}]
    folder = make_exposure(change={"costs": {"marked": marked}})
    svg = _svg(exposure_figures(read_view(Record.open(folder)))["costs"].narrow)
    assert _texts(svg, "label") == [f"{'n' * 15}…, 4×"]
    (plot,) = _by_class(svg, "plot")
    assert float(plot.get("width")) > 100


@pytest.mark.parametrize("shape", [-3.0, 0.0, 2.0])
def test_the_density_is_the_skew_normal_one_in_references_a_bin(shape):
    law = SkewNormalFit(shape, 20.0, 2.5)
    edges = (10.0, 12.0, 14.0, 20.0, 30.0)
    x, y = density(law, edges, 1000)
    widths = [2.0] * 8 + [6.0] * 4 + [10.0] * 4
    pdf = stats.skewnorm.pdf(x, shape, loc=20.0, scale=2.5)
    assert y == pytest.approx([1000 * w * p for w, p in zip(widths, pdf, strict=True)])


def test_what_was_not_measured_is_not_drawn(make_exposure):
    names = ("exposure", "costs")
    assert exposure_figures(read_view(Record.open(make_exposure(without=names)))) == {
        "exposure": None,
        "costs": None,
    }
