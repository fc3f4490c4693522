"""A curve as pages show it: which points, which numbers."""

from __future__ import annotations

import pytest

from remnant.studies.shared.curves import Curve, Point


def curve_of(values):
    """A curve of precision at an FPR of 10 %, by lag."""
    return Curve(
        success="precision",
        points=tuple(Point(lag, value, None, None) for lag, value in values.items()),
        chance=0.5,
        fpr=0.1,
        confidence=0.95,
        trials=8,
        n_seen=256,
        n_unseen=256,
        method=None,
        steps_to=(),
    )


def test_chosen_points_have_both_ends_and_are_few():
    chosen = curve_of(dict.fromkeys(range(0, 4001, 10), 0.5)).chosen()
    assert (chosen[0].lag, chosen[-1].lag, len(chosen)) == (0, 4000, 8)
    assert [point.value for point in curve_of({0: 0.9, 5: None}).chosen()] == [0.9, None]


def test_the_highest_precision_at_ten_percent_is_ten_elevenths():
    assert curve_of({0: 0.9}).highest == pytest.approx(0.909, abs=5e-4)
