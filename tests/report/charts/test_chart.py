"""The chart stays inside its frame, escapes what it is given and picks round numbers."""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.report.charts.figure import draw
from remnant.report.charts.label_layout import overlap, spread
from remnant.report.charts.scale import Scale, lag_scale_kind, round_numbers
from remnant.report.charts.shapes import Bars, Chart, Dot, Dots, Flag, Line, Rule

SHARES = st.floats(0, 1) | st.none()


def _draw(chart: Chart, **changes) -> ElementTree.Element:
    size = {"ident": "x", "width": 600, "height": 300, "direct_labels": True} | changes
    return ElementTree.fromstring(str(draw(chart, **size)))


def _chart(lines: tuple[Line, ...], **changes) -> Chart:
    words = {"title": "T", "description": "D", "x_label": "lag", "y_label": "success"}
    return Chart(**(words | {"lines": lines} | changes))


def _by_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in svg.iter() if name in (part.get("class") or "").split()]


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(["linear", "symlog"]), shares=st.booleans())
def test_lines_and_bands_lie_inside_the_plot(data, kind, shares):
    x = sorted(data.draw(st.sets(st.integers(0, 100_000), min_size=1, max_size=12)))
    columns = [tuple(data.draw(SHARES) for _ in x) for _ in range(3)]
    line = Line("a", "main", tuple(map(float, x)), *columns)
    svg = _draw(_chart((line,), mark=(0.0, "planted"), shares=shares, x_kind=kind))
    (plot,) = _by_class(svg, "plot")
    left, top, width, height = (float(plot.get(k)) for k in ("x", "y", "width", "height"))
    for path in [*_by_class(svg, "line"), *_by_class(svg, "band")]:
        for place in re.findall(r"[-\d.]+ [-\d.]+", path.get("d") or ""):
            px, py = map(float, place.split())
            assert left - 0.1 <= px <= left + width + 0.1
            assert top - 0.1 <= py <= top + height + 0.1


@settings(max_examples=40)
@given(
    places=st.lists(
        st.tuples(st.sampled_from([0, 1, 4, 16, 1000]), st.floats(0, 30)), min_size=1, max_size=40
    )
)
def test_dots_lie_inside_the_plot_and_stand_by_their_tick(places):
    dots = Dots("a", "main", tuple(Dot(float(x), y, "tip") for x, y in places))
    ticks = tuple(sorted({float(x) for x, _ in places}))
    for width in (880, 350):
        svg = _draw(
            _chart((), dots=(dots,), x_kind="apart", x_ticks=ticks),
            width=width,
            direct_labels=False,
        )
        (plot,) = _by_class(svg, "plot")
        left, top, wide, height = (float(plot.get(k)) for k in ("x", "y", "width", "height"))
        spots = _by_class(svg, "spot")
        assert len(spots) == len(places)
        for spot in spots:
            x, y, r = (float(spot.get(k)) for k in ("cx", "cy", "r"))
            assert left - 0.1 <= x - r
            assert x + r <= left + wide + 0.1
            assert top - 0.1 <= y - r
            assert y + r <= top + height + 0.1


def test_flags_raise_the_chart_and_keep_the_plot():
    bars = Bars("refs", "control", (0.0, 1.0, 2.0), (3.0, 5.0))
    near = tuple(Flag(1.0 + i / 100, f"canary {i}", "main", "tip") for i in range(6))
    plain, crowded = (
        _draw(_chart((), bars=bars, flags=flags, y_label="n"), width=400, direct_labels=False)
        for flags in ((), near)
    )
    assert float(crowded.get("height")) == float(plain.get("height")) + 6 * 15
    heights = [_by_class(svg, "plot")[0].get("height") for svg in (plain, crowded)]
    assert heights[0] == heights[1]
    for text in _by_class(crowded, "label"):
        assert float(text.get("x")) + len(text.text) * 6.6 <= 400


def test_means_are_dashes_over_the_dots():
    line = Line("mean", "main", (1.0, 4.0), (2.0, 3.0), places="dashes")
    dots = Dots("one", "main", (Dot(1.0, 2.0, "tip"),))
    svg = _draw(_chart((line,), dots=(dots,), x_kind="apart", x_word="planted"))
    classes = [(part.get("class") or "").split()[:1] for part in svg]
    assert classes.index(["line"]) < classes.index(["spot"]) < classes.index(["dash"])
    assert _by_class(svg, "dot") == []
    assert _by_class(svg, "dash")[1][0].text == "mean, planted 4: 3.000"


def test_a_thin_line_has_no_band_and_its_interval_takes_no_room():
    line = Line("a", "main", (0.0, 1.0), (0.4, 0.5), (-9.0, -9.0), (9.0, 9.0), stroke="dashed")
    svg = _draw(_chart((line,)))
    assert _by_class(svg, "band") == []
    assert [part.get("class") for part in _by_class(svg, "line")] == ["line tone-main dashed"]
    assert [part.get("class") for part in _by_class(svg, "dot")] == ["dot tone-main dashed"] * 2
    assert _by_class(svg, "dot")[0][0].text == "a, lag 0: 0.400 (−9.000 to 9.000)"
    assert all(0 < float(part.text) < 1 for part in _by_class(svg, "end"))


def test_a_plain_line_has_no_marks():
    svg = _draw(_chart((Line("a", "main", (0.0, 1.0), (0.1, 0.2), places="none"),)))
    assert _by_class(svg, "dot") == []


def test_the_axis_is_broken_only_between_zero_and_one():
    def breaks(*xs: float) -> int:
        dots = Dots("a", "main", tuple(Dot(x, 1.0, "tip") for x in xs))
        return len(_by_class(_draw(_chart((), dots=(dots,), x_kind="apart")), "divider"))

    assert (breaks(0.0, 1.0, 4.0), breaks(1.0, 4.0), breaks(0.0)) == (1, 0, 0)


def test_gaps_break_the_line_and_the_band():
    line = Line("a", "main", (0, 1, 2, 3, 4), (0.1, 0.2, None, 0.4, 0.5), (0,) * 5, (1,) * 5)
    svg = _draw(_chart((line,)))
    assert _by_class(svg, "line")[0].get("d").count("M") == 2
    assert len(_by_class(svg, "dot")) == 4


def test_it_names_itself_and_every_line_for_a_screen_reader():
    lines = tuple(Line(n, "main", (0.0, 1.0), (0.1, 0.2)) for n in ("first", "second"))
    svg = _draw(_chart(lines, rules=(Rule("Chance 50 %", "chance", 0.5),)), ident="one")
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == "one-title one-desc"
    assert [part.text for part in svg[:2]] == ["T", "D"]
    assert {part.text for part in _by_class(svg, "label")} == {"first", "second", "Chance 50 %"}


def test_text_is_escaped():
    hostile = '<script>alert("x")</script>'
    chart = _chart((Line(hostile, "main", (0.0, 1.0), (0.1, 0.2)),), title=hostile)
    assert "<script" not in str(draw(chart, ident="x", width=300, height=200, direct_labels=True))


def test_a_dot_tells_its_value_and_interval():
    line = Line("Twins", "main", (10.0, 20.0), (0.5, 0.6), (0.4, 0.5), (0.6, 0.7))
    dot = _by_class(_draw(_chart((line,), shares=True)), "dot")[0]
    assert dot[0].text.replace("\u202f", " ") == "Twins, lag 10: 50.0 % (40.0 % to 60.0 %)"


def test_many_points_have_no_dots():
    line = Line("a", "main", tuple(map(float, range(200))), (0.5,) * 200)
    assert _by_class(_draw(_chart((line,))), "dot") == []


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_round_numbers_are_inside_rising_and_not_too_many(low, width, count):
    ticks = round_numbers(low, low + width, count)
    assert ticks == sorted(set(ticks))
    assert len(ticks) <= count + 1
    slack = width * 1e-2
    assert all(low - slack <= tick <= low + width + slack for tick in ticks)


@given(
    st.sets(st.floats(-1e5, 1e5), min_size=3, max_size=10),
    st.sampled_from(["linear", "symlog", "apart"]),
)
def test_a_scale_keeps_order_and_ends(values, kind):
    ordered = sorted(values)
    scale = Scale(ordered[0], ordered[-1], 10.0, 500.0, kind)
    places = [scale(value) for value in ordered]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (pytest.approx(10.0), pytest.approx(500.0))


@pytest.mark.parametrize("kind", ["linear", "symlog", "apart"])
@pytest.mark.parametrize(
    "ends", [(0.0, 5e-132), (99999.99999999999, 1e5), (-1e5, -99999.99999999999)]
)
def test_ends_that_nearly_meet_are_still_apart(kind, ends):
    scale = Scale(*ends, 10.0, 500.0, kind)
    assert [scale(end) for end in ends] == [pytest.approx(10.0), pytest.approx(500.0)]


def test_symlog_ticks_are_decades_from_zero():
    assert Scale(0, 400, 0, 1, "symlog").ticks(9) == [0, 1, 3, 10, 30, 100, 300]
    assert Scale(0, 400, 0, 1, "symlog").ticks(4) == [0, 1, 10, 100]
    assert len(Scale(0, 1e6, 0, 1, "symlog").ticks(4)) <= 5


def test_on_an_apart_scale_zero_stands_apart_and_doublings_are_equal_steps():
    scale = Scale(0, 64, 0, 100, "apart")
    steps = [scale(2.0 ** (i + 1)) - scale(2.0**i) for i in range(6)]
    assert steps == pytest.approx([steps[0]] * 6)
    assert scale(1) - scale(0) > steps[0]
    assert scale.ticks(9) == [0, 1, 3, 10, 30]


def test_the_axis_is_logarithmic_only_where_lags_crowd_at_the_start():
    assert lag_scale_kind([0, 1, 2, 5, 10, 20, 50, 100, 400]) == "symlog"
    assert lag_scale_kind([0, 100, 200, 300, 400]) == "linear"
    assert lag_scale_kind([0]) == "linear"


@given(st.lists(st.floats(0, 300), min_size=1, max_size=8))
def test_labels_do_not_overlap(places):
    moved = spread(sorted(places), low=0, high=300)
    gaps = [b - a for a, b in pairwise(moved)]
    assert all(gap >= 15 - 1e-9 for gap in gaps)
    assert all(0 <= place <= 300 + 1e-9 for place in moved)
    assert all(math.isfinite(place) for place in moved)


@pytest.mark.parametrize(
    ("form", "xs", "ticks"),
    [
        ("share", (0.0, 1.0), ["0 %", "25 %", "50 %", "75 %", "100 %"]),
        ("number", (0.0, 1.0), ["0", "0.25", "0.5", "0.75", "1"]),
        ("number", (-10.0, 5000.0), ["0", "2 000", "4 000"]),
        ("steps", (0.0, 1000.0), ["0", "250", "500", "750", "1 000"]),
    ],
)
def test_the_horizontal_axis_prints_what_it_measures(form, xs, ticks):
    line = Line("a", "main", xs, (0.1, 0.2))
    svg = _draw(_chart((line,), x_form=form), width=350, direct_labels=False)
    found = [part for part in _by_class(svg, "tick") if "middle" in part.get("class")]
    assert [part.text.replace("\u202f", " ") for part in found] == ticks


@given(low=st.floats(0.01, 5), factor=st.floats(2, 1000))
def test_ticks_lie_within_the_scale(low, factor):
    for kind in ("linear", "symlog"):
        scale = Scale(low, low * factor, 0.0, 100.0, kind, threshold=low)
        assert all(low * 0.999 <= tick <= low * factor * 1.001 for tick in scale.ticks(6))


@pytest.mark.parametrize("width", [350, 430, 880])
def test_labels_of_any_length_leave_room_for_the_plot(width):
    long = "label " * 40
    chart = Chart(
        title="t",
        description="d",
        x_label=long,
        y_label=long,
        lines=(Line(long, "main", (0.0, 1.0), (0.2, 1e90)),),
        rules=(Rule(long, "limit", 0.5),),
        flags=(Flag(0.5, long, "main", "tip"),),
        shares=False,
    )
    drawn = str(draw(chart, ident="x", width=width, height=300, direct_labels=True))
    plot = re.search(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)
    assert plot is not None
    assert float(plot[2]) >= 0.1 * width
    assert float(plot[1]) + float(plot[2]) <= width
    for shown in re.findall(r"<text[^>]*>([^<]*)</text>", drawn):
        assert len(shown) * 6.6 <= width
    assert "…" in drawn


def test_dots_are_numbered_and_those_that_lie_together_share_a_text():
    planned = Dots("a", "main", (Dot(1.0, 9.0, "tip", mark=1),))
    others = tuple(
        Dot(x, y, "tip", mark=mark)
        for x, y, mark in ((1.001, 9.0, 2), (1.0, 9.01, 3), (2.0, 2.0, 4), (3.0, 5.0, 0))
    )
    chart = _chart((), dots=(planned, Dots("b", "control", others)), x_form="number")
    texts = [node for node in _draw(chart).iter() if "note" in node.get("class", "")]
    assert sorted(node.text for node in texts) == ["1–3", "4"]
    assert all(0 < float(node.get("x")) < 600 for node in texts)


def test_numbered_dots_at_one_place_are_moved_apart_and_their_numbers_do_not_meet():
    dots = tuple(
        Dot(x, y, "tip", mark=mark)
        for mark, (x, y) in enumerate(
            ((1.0, 9.0), (1.0, 9.0), (1.03, 9.0), (1.06, 8.9), (1.03, 8.2), (3.0, 1.0)), start=1
        )
    )
    drawn = _draw(_chart((), dots=(Dots("a", "main", dots),), x_form="number"))
    circles = [node for node in drawn.iter() if "spot" in node.get("class", "")]
    places = [(float(node.get("cx")), float(node.get("cy"))) for node in circles]
    assert len(places) == 6
    for (x, y), (across, down) in combinations(places, 2):
        assert math.hypot(x - across, y - down) >= 2 * 3.6
    boxes = []
    for node in drawn.iter():
        if "note" in node.get("class", ""):
            x, y, width = float(node.get("x")), float(node.get("y")), 6.6 * len(node.text)
            left = x - width if "end" in node.get("class") else x
            boxes.append((left, y - 11, left + width, y + 1))
    assert len(boxes) > 1
    assert not any(overlap(*pair) for pair in combinations(boxes, 2))
