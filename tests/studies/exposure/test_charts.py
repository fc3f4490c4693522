"""The charts of an exposure page show what the result holds."""

from __future__ import annotations

import pytest
from scipy import stats

from remnant.studies.exposure.charts import costs_chart, density, exposure_chart
from remnant.studies.exposure.result import SkewNormalLaw


def _plain(text: str) -> str:
    return text.replace("\u202f", " ")


def _exposure_chart(result, limit=None):
    return exposure_chart(result.exposure, result.repeats.levels, limit=limit)


def test_every_canary_is_a_dot_over_its_repeats(changed):
    chart = _exposure_chart(changed())
    canaries, controls = chart.dots
    assert [dot.x for dot in canaries.dots] == [1.0, 40.0]
    assert [dot.x for dot in controls.dots] == [0.0] * 4
    assert _plain(canaries.dots[1].tip) == "canary 2, planted 40 times: 9.97 bits, rank 1"
    assert all("never planted" in dot.tip for dot in controls.dots)
    assert chart.x_ticks == (0.0, 1.0, 40.0)


def test_chance_ceiling_limit_and_the_means_are_named(changed):
    chart = _exposure_chart(changed(), limit=9.0)
    assert [rule.label for rule in chart.rules] == ["Chance 1.44", "Ceiling 9.97", "Limit 9"]
    assert [line.label for line in chart.lines] == ["Planted, mean", "Twin, mean", "Controls, mean"]
    assert [line.x for line in chart.lines] == [(1.0, 40.0), (1.0, 40.0), (0.0,)]


def test_a_sampled_canary_has_an_interval_and_a_saturated_one_is_open(changed):
    rows = [
        {
            "name": f"canary {i}", "trial": 0, "repeats": 4, "uses": 4, "bits": 5.0 + 3 * i,
            "low": 3.0 + 3 * i, "high": None if i else 7.0, "rank": None, "cost": 1.0,
            "saturated": bool(i), "skew_normal_bits": None, "twin_bits": None,
        }
        for i in range(2)
    ]  # fmt: skip
    result = changed(exposure={"canaries": rows, "controls": [], "method": "sampled"})
    (dots,) = exposure_chart(result.exposure, (), limit=None).dots
    closed, opened = dots.dots
    assert (closed.y, closed.low, closed.high, closed.open_end) == (5.0, 3.0, 7.0, False)
    assert (opened.y, opened.low, opened.high, opened.open_end) == (6.0, 6.0, None, True)
    assert _plain(opened.tip) == "canary 1, planted 4 times: at least 6.00 bits (from 6.00)"


def test_every_reference_is_in_a_bar_and_every_canary_has_a_flag(changed):
    costs = changed().costs
    chart = costs_chart(costs)
    assert sum(chart.bars.heights) == 300
    assert sorted(flag.label for flag in chart.flags) == ["canary 1, 1×", "canary 2, 40×"]
    assert chart.description.startswith("300 references cost between ")
    assert [line.label for line in chart.lines] == ["Skew-normal law"]


def test_without_a_fit_there_is_no_line_over_the_bars(changed):
    chart = costs_chart(changed(costs={"skew_normal": None, "marked": []}).costs)
    assert (chart.lines, chart.flags) == ((), ())


def test_a_long_name_is_cut_so_that_the_chart_keeps_its_room(changed):
    marked = [{"name": "n" * 80, "repeats": 4, "cost": 27.0, "bits": 3.0}]
    (flag,) = costs_chart(changed(costs={"marked": marked}).costs).flags
    assert flag.label == f"{'n' * 15}…, 4×"
    assert "n" * 80 in flag.tip


@pytest.mark.parametrize("shape", [-3.0, 0.0, 2.0])
def test_the_density_is_the_skew_normal_one_in_references_a_bin(shape):
    law = SkewNormalLaw(shape=shape, location=20.0, scale=2.5)
    edges = (10.0, 12.0, 14.0, 20.0, 30.0)
    x, y = density(law, edges, 1000)
    widths = [2.0] * 8 + [6.0] * 4 + [10.0] * 4
    pdf = stats.skewnorm.pdf(x, shape, loc=20.0, scale=2.5)
    assert y == pytest.approx([1000 * w * p for w, p in zip(widths, pdf, strict=True)])
