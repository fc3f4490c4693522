"""The charts of unique features draw what was measured, whatever its size."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from remnant.records.typed import read_result
from remnant.report.charts.figure import figure_of
from remnant.studies.features.charts import (
    activations_chart,
    canary_chart,
    changes_chart,
    influence_chart,
    through_chart,
    unit_of,
)
from remnant.studies.features.result import Canary, FeaturesResult, Influence, InfluenceChange
from remnant.studies.features.sentences import (
    correlation_sentence,
    correlation_text,
    epochs_ends,
    estimate_text,
    nats_text,
    number_text,
    points_estimate,
    points_number,
)
from remnant.studies.shared.estimates import Estimate


def spaced(text):
    return text.replace("\u202f", " ")


@pytest.fixture
def plain(studied):
    return read_result(studied, FeaturesResult).features.plain


def with_canaries(variant, *rows):
    """The variant with canaries of these scores, p-values, twins' scores and self-influences."""
    canaries = tuple(
        Canary(example=7 + i, label=3, high=None, influence=influence, m=m, p=p, twin_m=twins)
        for i, (m, p, twins, influence) in enumerate(rows)
    )
    return replace(variant, by_canary=canaries)


def test_every_model_is_a_dot_beside_its_twin(plain):
    variant = with_canaries(
        plain,
        ((0.001, -0.002), (0.2, 0.05), (0.0, 0.0005), None),
        ((0.004, 0.002), (0.005, 0.9), (0.0, 0.0005), None),
    )
    chart = canary_chart(variant, significance=0.05)
    assert [(dots.tone, len(dots.dots)) for dots in chart.dots] == [
        ("main", 2),
        ("second", 2),
        ("control", 4),
    ]
    first = chart.dots[0].dots[0]
    assert spaced(first.tip) == "Example 8, label 3, seed 1: M 0.004, p 0.005"
    assert (first.x, first.y) == pytest.approx((1 - 0.17, 4.0))
    assert chart.y_label == "M (10⁻³ nats)"
    assert chart.x_ticks == (1.0, 2.0)
    assert spaced(chart.dots[0].label) == "Planted, reacts (p ≤ 5 %)"
    assert spaced(chart.description) == (
        "2 canaries, 4 planted models. The canaries’ mean M ranges from −5 × 10⁻⁴ to 0.003. M of "
        "the twins ranges from 0 to 5 × 10⁻⁴."
    )


def test_one_canary_and_one_seed_are_enough(plain):
    chart = canary_chart(with_canaries(plain, ((0.01,), (0.005,), (), None)), significance=0.05)
    assert [len(dots.dots) for dots in chart.dots] == [1]
    assert "twins" not in chart.description


def test_training_is_drawn_with_bands(plain):
    chart = through_chart(plain.through)
    assert [line.label for line in chart.lines] == ["Planted", "Nothing planted"]
    assert chart.lines[0].x == plain.through.epoch
    assert all(any(line.band) for line in chart.lines)
    assert "after 0 epochs" in spaced(chart.description)
    assert "after 3 epochs" in spaced(chart.description)


def test_self_influence_of_many_sizes_has_a_log_scale(plain):
    rows = [((0.01,), (0.5,), (), influence) for influence in (0.001, 1.0, 100.0)]
    chart = influence_chart(with_canaries(plain, *rows))
    assert (chart.x_kind, chart.x_label) == ("symlog", "Self-influence, log scale")
    assert [dot.x for dot in chart.dots[0].dots] == [0.001, 1.0, 100.0]
    assert chart.dots[0].label == "One canary"
    alike = [((0.01,), (0.5,), (), influence) for influence in (5.0, 6.0)]
    assert influence_chart(with_canaries(plain, *alike)).x_kind == "linear"
    assert influence_chart(with_canaries(plain, ((0.01,), (0.5,), (), None))) is None


def test_canaries_by_influence_are_two_groups(plain):
    chart = influence_chart(plain)
    assert [dots.label for dots in chart.dots] == ["High self-influence", "Low self-influence"]
    assert chart.description.startswith("10 canaries. Correlation of M and self-influence: Pearson")


def test_changes_are_in_powers_of_ten_and_zeros_are_left_out():
    zero = InfluenceChange(example=1, before=0.0, after=2.0, high=False)
    assert changes_chart((zero,)) is None
    chart = changes_chart((zero, replace(zero, example=2, before=2.0, after=0.02)))
    (dot,) = chart.dots[0].dots
    assert (dot.x, dot.y) == pytest.approx((2.0, -2.0))
    assert "−2 to −2 powers of ten" in chart.description


def test_units_are_drawn_in_their_order(plain):
    chart = activations_chart(plain.activations)
    assert [line.y for line in chart.lines] == [
        plain.activations.letter,
        plain.activations.random,
        plain.activations.unplanted,
    ]
    assert chart.x_ticks == tuple(float(i) for i in range(1, 17))
    assert chart.shares


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-12, 1.0, 16.1, 1e9])
def test_scores_of_any_size_are_drawn(plain, size):
    variant = with_canaries(
        plain, ((size, -size), (0.01, 0.5), (0.0, 0.0), size), ((0.0, 0.0), (1, 1), (0.0, 0.0), 0.0)
    )
    for chart in (canary_chart(variant, significance=0.05), influence_chart(variant)):
        assert all(math.isfinite(dot.y) for dots in chart.dots for dot in dots.dots)
        figure = figure_of(chart, "drawn")
        assert "nan" not in str(figure.wide) + str(figure.narrow)


def test_the_unit_makes_small_scores_readable():
    assert unit_of([]) == unit_of([-0.3]) == unit_of([0.0]) == (1.0, "nats")
    factor, unit = unit_of([-4e-5, 1e-6])
    assert (round(factor * 4e-5, 6), unit) == (40, "10⁻⁶ nats")


def test_correlations_that_are_not_known_are_left_out():
    none = Influence(pearson=None, spearman=None, n=3, changes=())
    assert correlation_sentence(none) == ""
    assert correlation_sentence(replace(none, spearman=Estimate(-0.001, -0.2, 0.2))) == (
        "Correlation of M and self-influence: Spearman 0.00 (−0.20 to 0.20)."
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (0.00123, "0.00123"),
        (0.000999, "10⁻³"),
        (1e-13, "10⁻¹³"),
        (-5e-324, "−4.9 × 10⁻³²⁴"),
        (16.118, "16.1"),
        (999.6, "1 000"),
        (75400.4, "75 400"),
        (-1.7e308, "−1.7 × 10³⁰⁸"),
        (None, "–"),
    ],
)
def test_numbers_of_any_size(value, text):
    assert spaced(number_text(value)) == text


def test_other_numbers():
    estimate = Estimate(0.1, -0.0004, 0.25)
    assert spaced(estimate_text(estimate)) == "0.1 (−4 × 10⁻⁴ to 0.25)"
    assert spaced(points_estimate(estimate)) == "+10.0 points (+0.0 to +25.0)"
    assert points_number(-0.1234) == "−12.3"
    assert correlation_text(Estimate(-1.0, -1.0, 1.0)) == "−1.00 (−1.00 to 1.00)"
    assert spaced(epochs_ends(Estimate(41, 33, 58.5))) == "33 to 58.5"


@pytest.mark.parametrize("value", [1e-9, 0.00042, 0.0099999, 0.01, 0.0234, 1.0001, -0.00042, -3.2])
def test_a_bound_is_never_rounded_down_and_no_score_to_nothing(value):
    assert float(nats_text(value, up=True)) >= value
    assert float(nats_text(value)) == pytest.approx(value, rel=0.06)
    assert float(nats_text(value)) != 0.0
