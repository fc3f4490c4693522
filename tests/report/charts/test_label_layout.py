"""Labels and dots do not cover each other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from remnant.report.charts.label_layout import flag_rows, swarm, thinned

PLACES = st.lists(st.floats(0, 800), min_size=1, max_size=14)


@given(places=PLACES, data=st.data())
def test_no_name_meets_another_name_or_another_line(places, data):
    widths = [data.draw(st.floats(10, 150)) for _ in places]
    rows = flag_rows(places, widths)
    for i, (place, width, row) in enumerate(zip(places, widths, rows, strict=True)):
        for j, (other, other_row) in enumerate(zip(places, rows, strict=True)):
            if i != j and place <= other <= place + width:
                # The other's line ends, and its name stands, in a lower row; of two at one place
                # either may be the lower.
                assert other_row < row or (other == place and other_row > row)


@given(places=PLACES)
def test_far_flags_all_stand_in_the_lowest_row(places):
    spaced = [i * 100.0 for i in range(len(places))]
    assert flag_rows(spaced, [90.0] * len(places)) == [0] * len(places)


@given(heights=st.lists(st.floats(0, 300), max_size=7), gap=st.floats(4, 10))
def test_few_dots_never_cover_each_other(heights, gap):
    moves = swarm(heights, gap=gap, most=3 * gap + 1e-9)
    assert all(abs(move) <= 3 * gap + 1e-6 for move in moves)
    for i in range(len(heights)):
        for j in range(i):
            near = abs(heights[i] - heights[j]) < gap
            assert not near or abs(moves[i] - moves[j]) >= gap - 1e-6


def test_a_dot_alone_is_not_moved_and_many_stay_within_their_room():
    assert swarm([0.0, 100.0], gap=8.0, most=20.0) == [0.0, 0.0]
    assert all(abs(move) <= 20 for move in swarm([5.0] * 50, gap=8.0, most=20.0))
    assert swarm([5.0, 5.0], gap=8.0, most=0.0) == [0.0, 0.0]


@given(places=st.lists(st.floats(0, 500), max_size=12), width=st.floats(5, 60))
def test_kept_labels_are_clear_of_each_other(places, width):
    places = sorted(places)
    kept = thinned(places, [width] * len(places))
    assert kept == sorted(set(kept))
    assert not places or len(places) - 1 in kept
    for earlier, later in pairwise(kept):
        assert places[later] - places[earlier] >= width + 8
