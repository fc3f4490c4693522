"""The charts of a report on unique features show what the record holds."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from remnant.records import Record
from remnant.report import read_view
from remnant.report.features_figures import (
    NAMES,
    by_mean,
    correlation_sentence,
    features_figures,
    unit_of,
)
from remnant.report.prediction_view import Estimate


def _svg(markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(markup))


def _by_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [part for part in svg.iter() if name in (part.get("class") or "").split()]


def _plain(text: str | None) -> str:
    return (text or "").replace("\u202f", " ")


def _ticks(svg: ElementTree.Element) -> list[str]:
    return [_plain(p.text) for p in _by_class(svg, "tick") if "middle" in p.get("class")]


@pytest.fixture
def draw(make_features):
    """The charts of a run with changes, and its view."""

    def make(**options):
        view = read_view(Record.open(make_features(**options)))
        return features_figures(view), view

    return make


def test_every_chart_has_its_words_and_ids_of_its_own(draw):
    (plain, dropout), _ = draw()
    ids = []
    for figures in (plain, dropout):
        assert tuple(figures) == NAMES
        for name, figure in figures.items():
            for markup in (figure.wide, figure.narrow):
                svg = _svg(markup)
                assert svg.get("role") == "img"
                assert svg[0].text == figure.title
                assert len(svg[1].text or "") > 30, name
                ids.append(svg[0].get("id"))
    assert len(ids) == len(set(ids)) == 4 * len(NAMES)


def test_every_model_is_a_dot_beside_its_twin(draw):
    (figures, _), view = draw()
    found = view.features
    rows = by_mean(found.plain.canaries)
    assert [one.mean for one in rows] == sorted((one.mean for one in rows), reverse=True)
    svg = _svg(figures["by_canary"].wide)
    spots = _by_class(svg, "spot")
    tones = [next(t for t in spot.get("class").split() if "tone" in t) for spot in spots]
    significant = sum(p <= 0.05 for one in rows for p in one.p)
    assert 0 < significant < 30
    assert tones.count("tone-main") == significant
    assert tones.count("tone-second") == 30 - significant
    assert tones.count("tone-control") == 30
    assert _ticks(svg) == [str(i) for i in range(1, 11)]
    tips = {_plain(spot[0].text) for spot in spots}
    first = rows[0]
    assert any(
        tip.startswith(f"Example {first.example}, label {first.label}, seed 2: M 0.0")
        for tip in tips
    )
    assert [key.label for key in figures["by_canary"].keys][2:] == [
        "Twin of the same seed, nothing planted",
        "M = 0",
    ]
    assert "M (10⁻³ nats)" in [part.text for part in _by_class(svg, "name")]


def test_heights_are_in_order_of_m(draw):
    (figures, _), view = draw()
    spots = _by_class(_svg(figures["by_canary"].wide), "spot")
    tips = {_plain(spot[0].text): float(spot.get("cy")) for spot in spots}
    scores = []
    for one in view.features.plain.canaries:
        for seed, m in enumerate(one.m, start=1):
            (height,) = (
                y
                for tip, y in tips.items()
                if tip.startswith(f"Example {one.example}, ") and f"seed {seed}:" in tip
            )
            scores.append((m, height))
    heights = [height for _, height in sorted(scores)]
    assert heights == sorted(heights, reverse=True)


def test_training_is_drawn_with_bands(draw):
    (figures, _), _ = draw()
    svg = _svg(figures["through"].wide)
    assert len(_by_class(svg, "band")) == 2
    assert len(_by_class(svg, "dot")) == 14
    labels = {part.text for part in _by_class(svg, "label")}
    assert labels == {"Planted", "Nothing planted", "M = 0"}
    assert "after 0 epochs" in _plain(svg[1].text)
    assert "after 40 epochs" in _plain(svg[1].text)


def test_self_influence_has_a_log_scale_with_powers_of_ten(draw):
    (figures, _), view = draw()
    for name in ("influence", "changes"):
        svg = _svg(figures[name].wide)
        spots = _by_class(svg, "spot")
        assert len(spots) == 10
        assert {spot.get("class") for spot in spots} == {"spot tone-main", "spot tone-second"}
        assert any("10⁻" in tick for tick in _ticks(svg))
        assert figures[name].keys[0].label == "High self-influence"
    # Equal factors are equal ways, far from the smallest.
    svg = _svg(figures["changes"].wide)
    places = {
        round(float(spot.get("cx")), 1): math.log10(one.before)
        for one in view.features.plain.influence.changes
        for spot in _by_class(svg, "spot")
        if _plain(spot[0].text).startswith(f"Example {one.example}:")
    }
    (x1, a), *_, (x2, b) = sorted(places.items())[2:]
    slope = (x2 - x1) / (b - a)
    for x, power in sorted(places.items())[2:]:
        assert x == pytest.approx(x1 + slope * (power - a), abs=1.0)
    assert "Pearson 0.43 (0.10 to 0.68)" in _svg(figures["influence"].wide)[1].text


def test_influences_of_one_size_have_a_plain_scale_and_zeros_are_left_out(draw, featured):
    variant = featured["features"]["variants"][0]
    canaries = [one | {"influence": 5.0 + i} for i, one in enumerate(variant["by_canary"])]
    changes = [one | {"before": 0.0} for one in variant["influence"]["changes"]]
    influence = variant["influence"] | {"changes": changes}
    (figures, _), _ = draw(plain={"by_canary": canaries, "influence": influence})
    names = [part.text for part in _by_class(_svg(figures["influence"].wide), "name")]
    assert "Self-influence" in names
    assert figures["changes"] is None
    changes[0] |= {"before": 2.0, "after": 0.02, "high": None}
    (figures, _), _ = draw(name="two", plain={"influence": influence})
    svg = _svg(figures["changes"].wide)
    assert len(_by_class(svg, "spot")) == 1
    assert figures["changes"].keys[0].label == "One canary"
    assert "−2 to −2 powers of ten" in svg[1].text


def test_units_are_drawn_in_their_order(draw):
    (figures, _), _ = draw()
    svg = _svg(figures["activations"].wide)
    assert len(_by_class(svg, "line")) == 3
    assert _ticks(svg)[0] == "1"
    assert _ticks(svg)[-1] == "20"


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ({"by_canary": None}, {"through", "changes", "activations"}),
        ({"through": None}, {"by_canary", "influence", "changes", "activations"}),
        ({"influence": None}, {"by_canary", "through", "influence", "activations"}),
        ({"activations": None}, {"by_canary", "through", "influence", "changes"}),
    ],
)
def test_what_was_not_measured_is_not_drawn(draw, gone, left):
    (figures, _), _ = draw(plain=gone)
    assert {name for name, figure in figures.items() if figure} == left


def test_nothing_measured_draws_nothing(draw):
    assert draw(without=("features",))[0] == []
    empty = {"through": {"epoch": [], "planted": [], "unplanted": []}}
    empty["activations"] = {"units": 3, "letter": [], "random": [], "unplanted": []}
    (figures, _), _ = draw(name="two", plain=empty)
    assert figures["through"] is figures["activations"] is None


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-12, 1.0, 16.1, 1e9])
def test_scores_of_any_size_are_drawn(draw, featured, size):
    canaries = [
        one | {"m": [size, -size, 0.0], "influence": size}
        for one in featured["features"]["variants"][0]["by_canary"]
    ]
    (figures, _), _ = draw(plain={"by_canary": canaries})
    for name in ("by_canary", "influence"):
        for markup in (figures[name].wide, figures[name].narrow):
            assert "nan" not in markup
            assert "inf" not in str(markup).replace("influence", "")
            for spot in _by_class(_svg(markup), "spot"):
                assert math.isfinite(float(spot.get("cx")))
                assert math.isfinite(float(spot.get("cy")))


def test_one_canary_and_one_seed_are_enough(draw, featured):
    one = featured["features"]["variants"][0]["by_canary"][0]
    one |= {"m": [0.01], "p": [0.005], "twin_m": [], "high": None}
    (figures, _), _ = draw(plain={"by_canary": [one]})
    assert len(_by_class(_svg(figures["by_canary"].narrow), "spot")) == 1
    assert [key.kind for key in figures["by_canary"].keys] == ["dots", "rule"]
    assert "twins" not in _svg(figures["by_canary"].wide)[1].text


def test_the_unit_makes_small_scores_readable():
    assert unit_of([]) == (1.0, "nats")
    assert unit_of([-0.3]) == (1.0, "nats")
    assert unit_of([0.0]) == (1.0, "nats")
    factor, unit = unit_of([-4e-5, 1e-6])
    assert (round(factor * 4e-5, 6), unit) == (40, "10⁻⁶ nats")


def test_correlations_that_are_not_known_are_not_told():
    assert correlation_sentence(None, None) == ""
    assert correlation_sentence(None, Estimate(-0.001, -0.2, 0.2)) == (
        "Correlation of M and self-influence: Spearman 0.00 (−0.20 to 0.20)."
    )
