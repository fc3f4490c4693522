"""Intervals over canaries and seeds hold the truth as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import clopper_pearson
from remnant.measures.statistics.crossed_interval import (
    CrossedInterval,
    crossed_difference,
    crossed_mean,
    crossed_share,
)

# Shares of the variance that seeds and canaries have, beside what is each member's own.
EFFECTS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (1 / 3, 1 / 3)]


def tables(rng, draws, seeds, canaries, effects):
    by_seed, by_canary = effects
    own = math.sqrt(1.0 - by_seed - by_canary)
    for _ in range(draws):
        yield (
            math.sqrt(by_seed) * rng.normal(size=(seeds, 1))
            + math.sqrt(by_canary) * rng.normal(size=(1, canaries))
            + own * rng.normal(size=(seeds, canaries))
        )


def holds(found, truth):
    return found.low <= truth <= found.high


@pytest.mark.parametrize("effects", EFFECTS)
@pytest.mark.parametrize(("seeds", "canaries"), [(3, 10), (5, 30)])
def test_coverage_of_means_and_shares(seeds, canaries, effects):
    rng, draws = np.random.default_rng(0), 400
    mean = common = rare = 0
    for table in tables(rng, draws, seeds, canaries, effects):
        mean += holds(crossed_mean(table), 0.0)
        common += holds(crossed_share(table > 0.0), 0.5)
        rare += holds(crossed_share(table > stats.norm.isf(0.1)), 0.1)
    least = stats.binom.ppf(0.002, draws, 0.95)
    assert mean >= least
    assert common >= least
    assert rare >= least


def test_an_interval_that_forgets_the_seeds_is_caught():
    """The test above can fail: members taken for independent cover far too rarely."""
    rng, draws = np.random.default_rng(0), 400
    hits = 0
    for table in tables(rng, draws, 5, 30, (0.5, 0.0)):
        low, high = clopper_pearson((table > 0).sum(), table.size)
        hits += low <= 0.5 <= high
    assert hits < 0.6 * draws


@pytest.mark.parametrize("effects", EFFECTS)
@pytest.mark.parametrize("shares", [(0.05, 0.05), (0.5, 0.05)])
def test_coverage_of_the_difference_from_unplanted_members(shares, effects):
    rng, draws = np.random.default_rng(1), 400
    planted, unplanted = stats.norm.isf(shares)
    hits = 0
    for table in tables(rng, draws, 4, 10, effects):
        bare = rng.normal(size=20) > unplanted
        found = crossed_difference(crossed_share(table > planted), crossed_share(bare))
        hits += holds(found, shares[0] - shares[1])
    assert hits >= stats.binom.ppf(0.002, draws, 0.95)


def test_independent_members_have_the_usual_intervals():
    rng = np.random.default_rng(0)
    values = rng.normal(size=12)
    found = crossed_mean(values)
    reach = stats.t.isf(0.025, 11) * stats.sem(values)
    np.testing.assert_allclose(
        [found.value, found.low, found.high],
        [values.mean(), values.mean() - reach, values.mean() + reach],
    )
    share = crossed_share(values > 0)
    low, high = clopper_pearson((values > 0).sum(), 12)
    assert (share.low, share.high) == (float(low), float(high))


@pytest.mark.parametrize("hit", [False, True])
def test_all_or_none_still_leave_room(hit):
    found = crossed_share(np.full((3, 10), hit))
    assert found.value == float(hit)
    assert found.high - found.low > 0.3
    wider = crossed_share(np.full((3, 10), hit), confidence=0.99)
    assert wider.high - wider.low > found.high - found.low
    narrower = crossed_share(np.full((12, 10), hit))
    assert narrower.high - narrower.low < found.high - found.low


def test_seeds_and_canaries_have_the_same_say():
    table = np.random.default_rng(3).normal(size=(4, 4))
    one, other = crossed_mean(table), crossed_mean(table.T)
    np.testing.assert_allclose([one.low, one.high], [other.low, other.high])
    assert crossed_mean(np.ones((3, 2))) == CrossedInterval(1.0, 1.0, 1.0)


def test_a_difference_is_turned_by_turning_its_sides():
    one, other = CrossedInterval(0.6, 0.3, 0.8), CrossedInterval(0.2, 0.1, 0.5)
    found, turned = crossed_difference(one, other), crossed_difference(other, one)
    assert found.value == pytest.approx(0.4)
    assert found.low == pytest.approx(0.4 - math.hypot(0.3, 0.3)) == pytest.approx(-turned.high)
    assert found.high == pytest.approx(0.4 + math.hypot(0.2, 0.1)) == pytest.approx(-turned.low)


def test_what_cannot_be_said_is_refused():
    for measure in (crossed_mean, crossed_share):
        with pytest.raises(NotEnoughEvidence, match="one seed shows nothing"):
            measure(np.ones((1, 5)))
        with pytest.raises(InvalidInput, match="values"):
            measure([[0.0, math.nan], [1.0, 0.0]])
        with pytest.raises(InvalidInput, match="confidence"):
            measure(np.ones((2, 2)), confidence=1.0)
        with pytest.raises(InvalidInput):
            measure(np.ones((0, 2)))


SEEDS = {
    "alike": lambda rng, size: np.full(size, 0.2),
    "beta": lambda rng, size: rng.beta(1.0, 4.0, size),
    "lognormal": lambda rng, size: np.minimum(0.05 * rng.lognormal(0.0, 1.0, size), 1.0),
}


@pytest.mark.parametrize("seeds", [3, 5, 8])
@pytest.mark.parametrize("law", SEEDS)
def test_shares_are_covered_where_seeds_differ_in_a_skewed_way(law, seeds):
    rng, runs = np.random.default_rng(seeds), 300
    truth = SEEDS[law](rng, 400_000).mean()
    found = [
        crossed_share(rng.random((seeds, 20)) < SEEDS[law](rng, (seeds, 1))) for _ in range(runs)
    ]
    held = np.sum([one.low <= truth <= one.high for one in found])
    assert stats.binom.cdf(held, runs, 0.95) > 1e-3, held / runs
