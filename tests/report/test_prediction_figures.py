"""The charts of a prediction report show what the record holds."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from remnant.records import Record
from remnant.report import read_view
from remnant.report.prediction_figures import prediction_figures, stroke_of, tone_of
from remnant.report.prediction_view import PREDICTORS

NAMES = ("roc", "loss", "by_time", "by_layer", "by_threshold", "scatter")


def _svg(markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def _by_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in svg.iter() if name in (part.get("class") or "").split()]


def _plain(text: str | None) -> str:
    return (text or "").replace("\u202f", " ")


@pytest.fixture
def draw(make_prediction):
    """The charts of a prediction run with changes, and its view."""

    def make(**options):
        view = read_view(Record.open(make_prediction(**options)))
        return prediction_figures(view), view

    return make


def test_every_chart_has_its_words_and_is_named_in_the_svg(draw):
    figures, _ = draw()
    assert tuple(figures) == NAMES
    assert figures["by_layer"] is None, "three layers are told by the table"
    for name, figure in figures.items():
        if figure is None:
            continue
        for markup in (figure.wide, figure.narrow):
            svg = _svg(markup)
            title, description = svg[0], svg[1]
            assert svg.get("role") == "img"
            assert svg.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
            assert title.text == figure.title
            assert len(description.text or "") > 30, name


def test_a_predictor_has_one_colour_and_what_comes_late_is_dashed(draw):
    assert len({tone_of(name) for name in PREDICTORS}) == len(PREDICTORS)
    assert [stroke_of(name) for name in PREDICTORS] == [*["full"] * 4, "dashed", "dashed"]
    figures, _ = draw()
    keys = [(key.label, key.tone, key.kind) for key in figures["roc"].keys]
    assert keys[:4] == [
        ("PSMI ≤ 0", "ceiling", "dots"),
        ("PSMI", "main", "line"),
        ("Loss", "second", "line"),
        ("Logit gap", "third", "line"),
    ]
    assert ("LT-IQR", "fifth", "line dashed") in keys
    assert ("Guessing", "chance", "line dotted") in keys
    assert [_plain(label) for label, _, _ in keys][-1] == "TPR 75 %"


def test_the_operating_points_are_drawn_and_psmi_lies_on_top(draw):
    figures, view = draw()
    svg = _svg(figures["roc"].wide)
    lines = [part.get("class") for part in _by_class(svg, "line")]
    assert lines[-1] == "line tone-main"
    assert len(lines) == 7
    path = _by_class(svg, "line")[-1].get("d")
    roc = view.prediction.quality[0].roc
    assert len(re.findall("[ML]", path)) == len(roc.fpr)
    ticks = [_plain(part.text) for part in _by_class(svg, "tick") if "middle" in part.get("class")]
    assert (ticks[0], ticks[-1]) == ("0 %", "100 %")


def test_the_default_threshold_is_a_dot_on_the_line(draw):
    figures, view = draw()
    svg = _svg(figures["roc"].wide)
    (spot,) = _by_class(svg, "spot")
    row = view.prediction.quality[0]
    tip = _plain(spot[0].text)
    assert tip.startswith(f"PSMI ≤ 0: TPR {100 * row.default_tpr.value:.1f} % (")
    assert f"; FPR {100 * row.default_fpr.value:.1f} % (" in tip
    path = _by_class(svg, "line")[-1].get("d")
    places = [tuple(map(float, p.split())) for p in re.findall(r"[\d.]+ [\d.]+", path)]
    cx, cy = float(spot.get("cx")), float(spot.get("cy"))
    assert min(abs(x - cx) + abs(y - cy) for x, y in places) < 8
    (whisker,) = _by_class(svg, "whisker")
    assert float(whisker.get("y1")) < cy < float(whisker.get("y2"))


def test_a_predictor_without_a_threshold_has_no_dot(draw, predicted):
    rows = predicted["prediction"]["quality"]
    rows[0] |= {"default_tpr": None, "default_fpr": None}
    figures, _ = draw(change={"prediction": {"quality": rows}})
    assert _by_class(_svg(figures["roc"].wide), "spot") == []
    rows = [row | {"curve": None} for row in rows]
    figures, _ = draw(name="two", change={"prediction": {"quality": rows}})
    assert figures["roc"] is None


@pytest.mark.parametrize("name", ["loss", "by_time"])
def test_the_stop_is_marked(draw, name):
    figures, _ = draw()
    for markup in (figures[name].wide, figures[name].narrow):
        svg = _svg(markup)
        (mark,) = _by_class(svg, "mark")
        (word,) = _by_class(svg, "note")
        assert word.text == "stop, 6"
        dots = [part for part in _by_class(svg, "dot") if "epoch 6:" in _plain(part[0].text)]
        assert {part.get("cx") for part in dots} == {mark.get("x1")}


def test_the_loss_falls_to_its_aim(draw, predicted):
    figures, _ = draw()
    svg = _svg(figures["loss"].wide)
    (rule,) = _by_class(svg, "rule")
    assert _plain(rule[0].text) == "95 % lower"
    tips = [_plain(part[0].text) for part in _by_class(svg, "dot")]
    assert len(tips) == 16
    first = predicted["prediction"]["stop"]["median_loss"][0]
    assert tips[0] == f"Median training loss, epoch 0: {first:.3f}"
    assert tips[1].startswith("Median training loss, epoch 0.214: ")


def test_every_moment_and_its_interval_are_drawn(draw):
    figures, view = draw()
    svg = _svg(figures["by_time"].wide)
    assert len(_by_class(svg, "band")) == 4
    tips = {_plain(part[0].text) for part in _by_class(svg, "dot")}
    assert len(tips) == 60
    row = view.prediction.by_time[10]
    auc = row.auc
    assert f"PSMI, epoch 8: {auc.value:.3f} ({auc.low:.3f} to {auc.high:.3f})" in tips
    assert {part.text for part in _by_class(svg, "label")} == {
        *("PSMI", "Loss", "Logit gap", "Mahalanobis", "Guessing 0.5")
    }
    # The scale begins with the first moment; no tick may stand before it.
    (plot,) = _by_class(svg, "plot")
    ticks = [float(p.get("x")) for p in _by_class(svg, "tick") if "middle" in p.get("class")]
    assert min(ticks) >= float(plot.get("x"))


def test_many_layers_are_drawn_in_their_order(draw, predicted):
    row = predicted["prediction"]["by_layer"][0]
    names = ("embedding", "block 1", "block 2", "last")
    rows = [row | {"layer": layer, "predictor": p} for layer in names for p in PREDICTORS[:1]]
    figures, _ = draw(change={"prediction": {"by_layer": rows}})
    svg = _svg(figures["by_layer"].wide)
    ticks = [p.text for p in _by_class(svg, "tick") if "middle" in p.get("class")]
    assert ticks == ["1", "2", "3", "4"]
    assert "at embedding" in figures["by_layer"].wide
    assert "(1 is embedding)" in figures["by_layer"].wide


def test_thresholds_are_drawn_with_how_many_are_memorised(draw):
    figures, view = draw()
    svg = _svg(figures["by_threshold"].wide)
    ticks = [p.text for p in _by_class(svg, "tick") if "middle" in p.get("class")]
    assert ticks == ["0", "2", "4", "6", "8"]
    last = view.prediction.by_threshold[-1]
    assert f"at threshold 8, {last.n_memorised} memorised" in svg[1].text


def test_every_scattered_sample_is_a_dot(draw):
    figures, view = draw()
    svg = _svg(figures["scatter"].wide)
    spots = _by_class(svg, "spot")
    assert len(spots) == len(view.truth.lira) == 400
    # Samples of one rate lie on one height, whatever stands beside them.
    heights = {float(spot.get("cy")) for spot in spots}
    assert len(heights) == len(set(view.truth.lira))
    xs = sorted(float(spot.get("cx")) for spot in spots)
    low, high = min(view.truth.counterfactual), max(view.truth.counterfactual)
    share = (sorted(view.truth.counterfactual)[200] - low) / (high - low)
    assert xs[200] == pytest.approx(xs[0] + share * (xs[-1] - xs[0]), abs=0.2)


def test_what_was_not_measured_is_not_drawn(draw):
    figures, _ = draw(without=("prediction", "truth", "protect"))
    assert figures == dict.fromkeys(NAMES)
    empty = {"quality": [], "by_time": [], "by_layer": [], "by_threshold": []}
    scatter = {"lira": [], "counterfactual": []}
    figures, _ = draw(name="two", change={"prediction": empty, "truth": {"scatter": scatter}})
    assert [name for name, figure in figures.items() if figure] == ["loss"]


def test_one_threshold_and_one_moment_are_enough(draw, predicted):
    rows = predicted["prediction"]
    change = {"by_threshold": rows["by_threshold"][:3], "by_time": rows["by_time"][:1]}
    figures, _ = draw(change={"prediction": change})
    assert figures["by_threshold"] is None
    assert len(_by_class(_svg(figures["by_time"].narrow), "dot")) == 1
