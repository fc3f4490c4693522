"""What is told of exposure without the secrets: whole bits, and nothing finer."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from remnant.cli.counts import grouped
from remnant.cli.scan_coarse import told_exposure, told_queries
from remnant.studies.canary_exposure import CanaryExposure
from remnant.studies.exposure_audit import SecretExposure

SPACES = st.sampled_from([10**9, 10**10, 10**16, 26**3, 26**8 * 100, 64**40, 2**13, 94**1000])


def ranked(rank: int, space: int, *, rank_low: int | None = None) -> CanaryExposure:
    low_rank = rank if rank_low is None else rank_low
    low, high = (math.log2(space) - math.log2(one) for one in (rank, low_rank))
    found = SecretExposure(low, low, high, 12.5, rank, low_rank, False, None)
    return CanaryExposure("canary 1", 1, "exact", found, ended=rank_low is not None)


@given(space=SPACES, data=st.data())
def test_ranks_of_one_whole_bit_are_told_alike(space, data):
    rank = data.draw(st.integers(1, space))
    told = told_exposure(ranked(rank, space), space, reveal=False)
    assert told.rank_least <= rank <= told.rank_most <= space
    assert told.bits == round(math.log2(space) - math.log2(rank))
    for end in (told.rank_least, told.rank_most):
        bits = math.log2(space) - math.log2(end)
        if min(abs(bits - told.low), abs(bits - told.high)) > 1e-6:  # where rounding decides
            assert told_exposure(ranked(end, space), space, reveal=False) == told
    beyond = told.rank_most + 1
    assert beyond > space or math.log2(space) - math.log2(beyond) < told.low + 1e-9
    exact = told_exposure(ranked(rank, space), space, reveal=True)
    assert (exact.rank_least, exact.rank_most) == (rank, rank)


@given(space=SPACES)
def test_a_rank_of_one_is_told_as_such(space):
    told = told_exposure(ranked(1, space), space, reveal=False)
    assert (told.rank_least, told.rank_most, told.standing) == (1, 1, f"rank 1 of {grouped(space)}")


@given(space=SPACES, data=st.data())
def test_bounds_are_bounds_still(space, data):
    check_bounds(space, *sorted(data.draw(st.tuples(*[st.integers(1, space)] * 2))))


@given(space=SPACES, power=st.integers(1, 40), off=st.integers(-1, 1))
@example(space=64**40, power=47, off=-1)
def test_bounds_are_bounds_where_floats_cannot_tell_ranks_apart(space, power, off):
    rank = min(space, max(1, 2**power + off))
    check_bounds(space, rank, rank)


def check_bounds(space, low, high):
    told = told_exposure(ranked(high, space, rank_low=low), space, reveal=False)
    assert told.rank_least <= low <= high <= told.rank_most
    assert told.low <= math.log2(space) - math.log2(high) + 1e-9
    assert told.high >= math.log2(space) - math.log2(low) - 1e-9
    assert (told.bits, told.low) == (int(told.bits),) * 2
    assert told.standing.startswith("rank at most ")
    assert told.bits_text.startswith("at least ")


def test_what_was_sampled_has_an_interval_in_whole_bits():
    found = SecretExposure(6.4, 5.27, math.inf, 12.5, None, None, False, None)
    told = told_exposure(CanaryExposure("canary 1", 1, "sampled", found), 10**9, reveal=False)
    assert (told.bits, told.low, told.high, told.standing) == (6.0, 5.0, math.inf, "5 bits or more")
    assert told.rank_fields == {"rank": None, "rank_reason": "sampled"}


@given(queries=st.integers(1, 10**20))
def test_queries_are_a_power_of_ten_that_is_enough(queries):
    told = told_queries(queries, reveal=False)
    assert queries <= told < 10 * queries
    assert str(told).strip("0") == "1"
    assert told_queries(queries, reveal=True) == queries
    assert told_queries(None, reveal=False) is None
