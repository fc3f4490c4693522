"""Labels and dots do not cover each other."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from remnant.report.charts.label_layout import (
    flag_rows,
    free_box,
    overlap,
    scattered,
    swarm,
    thinned,
)

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


@given(places=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12))
def test_scattered_dots_cover_each_other_only_where_there_is_no_room(places):
    gap, most = 8.0, 200.0
    moves = scattered(places, gap=gap, most=most)
    moved = [(x + move, y) for (x, y), move in zip(places, moves, strict=True)]
    assert all(abs(move) <= most for move in moves)
    for (x, y), (across, down) in combinations(moved, 2):
        assert math.hypot(x - across, y - down) >= gap


@given(places=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 200)), max_size=8))
def test_names_of_dots_stay_inside_and_leave_others_free_where_they_can(places):
    within = (-100.0, -100.0, 400.0, 300.0)
    taken = []
    for x, y in places:
        around = (x - 4.0, y - 4.0, x + 4.0, y + 4.0)
        box, ends = free_box(around, width=20.0, height=12.0, within=within, taken=taken)
        assert (box[2] == around[0]) if ends else (box[0] == around[2])
        assert within[0] <= box[0] <= box[2] <= within[2]
        assert within[1] <= box[1] <= box[3] <= within[3]
        if len(taken) < 4:  # four names block at most four corners
            assert not any(overlap(box, other) for other in taken)
        taken.append(box)
