"""What is shown of exposure without the secrets: whole bits, and nothing finer."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from remnant.report.numerals import whole_text
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.found_secrets.parts import shown_exposure, shown_queries

CANARY = {
    "name": "canary 1", "trial": 0, "repeats": 1, "uses": 0, "cost": 12.5, "saturated": False,
    "skew_normal_bits": None, "twin_bits": None,
}  # fmt: skip
SPACES = st.sampled_from([10**9, 10**10, 10**16, 26**3, 26**8 * 100, 64**40, 2**13, 94**1000])


def ranked(rank: int, space: int, *, rank_low: int | None = None) -> CanaryExposure:
    low_rank = rank if rank_low is None else rank_low
    low, high = (math.log2(space) - math.log2(one) for one in (rank, low_rank))
    ended = rank_low is not None
    return CanaryExposure(
        **CANARY, bits=low, low=low, high=high, rank=rank, rank_low=low_rank, ended=ended
    )


@given(space=SPACES, data=st.data())
def test_ranks_of_one_whole_bit_are_shown_alike(space, data):
    rank = data.draw(st.integers(1, space))
    shown = shown_exposure(ranked(rank, space), space, reveal=False)
    assert shown.rank_least <= rank <= shown.rank_most <= space
    assert shown.bits == round(math.log2(space) - math.log2(rank))
    for end in (shown.rank_least, shown.rank_most):
        bits = math.log2(space) - math.log2(end)
        if min(abs(bits - shown.low), abs(bits - shown.high)) > 1e-6:  # where rounding decides
            assert shown_exposure(ranked(end, space), space, reveal=False) == shown
    beyond = shown.rank_most + 1
    assert beyond > space or math.log2(space) - math.log2(beyond) < shown.low + 1e-9
    exact = shown_exposure(ranked(rank, space), space, reveal=True)
    assert (exact.rank_least, exact.rank_most) == (rank, rank)


@given(space=SPACES)
def test_a_rank_of_one_is_shown_as_such(space):
    shown = shown_exposure(ranked(1, space), space, reveal=False)
    assert (shown.rank_least, shown.rank_most, shown.standing) == (
        1,
        1,
        f"rank 1 of {whole_text(space)}",
    )


@given(space=SPACES, data=st.data())
def test_bounds_are_bounds_still(space, data):
    check_bounds(space, *sorted(data.draw(st.tuples(*[st.integers(1, space)] * 2))))


@given(space=SPACES, power=st.integers(1, 40), off=st.integers(-1, 1))
@example(space=64**40, power=47, off=-1)
def test_bounds_are_bounds_where_floats_cannot_tell_ranks_apart(space, power, off):
    rank = min(space, max(1, 2**power + off))
    check_bounds(space, rank, rank)


def check_bounds(space, low, high):
    shown = shown_exposure(ranked(high, space, rank_low=low), space, reveal=False)
    assert shown.rank_least <= low <= high <= shown.rank_most
    assert shown.low <= math.log2(space) - math.log2(high) + 1e-9
    assert shown.high >= math.log2(space) - math.log2(low) - 1e-9
    assert (shown.bits, shown.low) == (int(shown.bits),) * 2
    assert shown.standing.startswith("rank at most ")
    assert shown.shown_bits.text.startswith("at least ")


def test_what_was_sampled_has_an_interval_in_whole_bits():
    sampled = CanaryExposure(**CANARY, bits=6.4, low=5.27, high=math.inf, rank=None)
    shown = shown_exposure(sampled, 10**9, reveal=False)
    assert (shown.bits, shown.low, shown.high, shown.standing) == (
        6.0,
        5.0,
        None,
        "5 bits or more",
    )
    assert (shown.rank_least, shown.rank_most) == (None, None)


@given(queries=st.integers(1, 10**20))
def test_queries_are_a_power_of_ten_that_is_enough(queries):
    shown = shown_queries(queries, reveal=False)
    assert queries <= shown < 10 * queries
    assert str(shown).strip("0") == "1"
    assert shown_queries(queries, reveal=True) == queries
    assert shown_queries(None, reveal=False) is None
