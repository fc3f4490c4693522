"""Canaries that come back: the rule by its definition, false claims, power and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import returning

RETURN = np.array([3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0])


def wandering(rng, trials, *, canaries=32, shift=0.0, model=0.4, lags=8):
    """Scores of planted, A/A and twin: canaries differ, models differ, and scores wander."""
    hard = rng.normal(size=(1, trials, canaries))

    def arm():
        steps = rng.normal(size=(lags, trials, canaries))
        walk = np.empty_like(steps)
        walk[0] = steps[0]
        for lag in range(1, lags):
            walk[lag] = 0.7 * walk[lag - 1] + np.sqrt(1 - 0.49) * steps[lag]
        return hard + model * rng.normal(size=(1, trials, 1)) + walk

    shifts = np.broadcast_to(shift, lags)[:, None, None]
    return {"seen_scores": shifts + arm(), "null_scores": arm(), "unseen_scores": arm()}


def by_hand(seen, null, unseen, *, fpr, strict, quiet):
    lags, trials, canaries = seen.shape
    lost, back, null_back = np.zeros((3, trials, canaries), dtype=bool)
    for trial in range(trials):
        for canary in range(canaries):
            missed_in_a_row, is_lost = 0, False
            for lag in range(lags):
                ranked = sorted(unseen[lag, trial], reverse=True)
                limit, high = (ranked[int(rate * len(ranked) + 1e-9)] for rate in (fpr, strict))
                own, other = seen[lag, trial, canary], null[lag, trial, canary]
                if is_lost:
                    back[trial, canary] |= own > high
                    null_back[trial, canary] |= other > high
                missed_in_a_row = missed_in_a_row + 1 if max(own, other) <= limit else 0
                if missed_in_a_row >= quiet:
                    is_lost = True
                    lost[trial, canary] |= lag < lags - 1
    return lost, back, null_back


@given(seed=st.integers(0, 10**6), quiet=st.integers(1, 3), fpr=st.sampled_from([0.1, 0.25]))
def test_the_scan_agrees_with_its_definition(seed, quiet, fpr):
    rng = np.random.default_rng(seed)
    given = {k: v.round(1) for k, v in wandering(rng, 2, canaries=12, shift=RETURN).items()}
    found = returning(**given, fpr=fpr, quiet=quiet)
    sides = [given[f"{side}_scores"] for side in ("seen", "null", "unseen")]
    lost, back, null_back = by_hand(*sides, fpr=fpr, strict=fpr / 5, quiet=quiet)
    assert found.who.tolist() == back.tolist()
    assert (found.lost, found.returned) == (lost.sum(), back.sum())
    assert found.chance_returned == null_back.sum()
    assert found.excess == pytest.approx((back.mean(1) - null_back.mean(1)).mean())
    assert found.excess_low <= found.excess <= found.excess_high


def test_order_and_increasing_maps_do_not_matter():
    given = wandering(np.random.default_rng(0), 3, shift=RETURN)
    first = returning(**given)
    mapped = {k: np.exp(v) + np.arange(8)[:, None, None] for k, v in given.items()}
    assert returning(**mapped).who.tolist() == first.who.tolist()
    turned = {k: v[:, :, ::-1] for k, v in given.items()}
    again = returning(**turned)
    assert (again.returned, again.pvalue) == (first.returned, first.pvalue)


def test_what_is_found_throughout_cannot_come_back():
    found = returning(**wandering(np.random.default_rng(0), 4, shift=20.0))
    assert (found.lost, found.returned, found.chance_returned) == (0, 0, 0)
    assert found.excess == 0
    assert found.pvalue > 0.3


def test_a_canary_found_for_longer_has_no_fewer_chances_than_its_null():
    """Canaries found for half of the way, then gone for good: no excess, and none the other way."""
    rng = np.random.default_rng(5)
    fades = np.array([6.0, 6, 6, 6, 6, 6, 0, 0, 0, 0, 0, 0])
    found = returning(**wandering(rng, 300, shift=fades, lags=12))
    assert found.lost > 1000
    assert found.excess_low <= 0 <= found.excess_high


@pytest.mark.parametrize("trials", [1, 3, 10])
def test_nothing_comes_back_by_more_than_chance_where_nothing_was_planted(trials):
    """False claims at a nominal 5 %, models that differ; one trial is told models are alike."""
    rng = np.random.default_rng(trials)
    model = 0.0 if trials == 1 else 0.4
    audits = 400
    claims = sum(
        returning(**wandering(rng, trials, model=model)).pvalue <= 0.05 for _ in range(audits)
    )
    assert stats.binomtest(claims, audits, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(("trials", "least"), [(4, 0.5), (10, 0.95)])
def test_a_return_is_seen(trials, least):
    """Canaries found at first, lost, and two standard deviations up at the end; 100 audits."""
    rng = np.random.default_rng(0)
    seen = [returning(**wandering(rng, trials, shift=RETURN)).pvalue <= 0.05 for _ in range(100)]
    assert np.mean(seen) > least


@pytest.mark.parametrize(("shift", "trials"), [(0.0, 3), (RETURN, 3), (RETURN, 10)])
def test_the_interval_of_the_excess_covers(shift, trials, covers):
    truth = returning(**wandering(np.random.default_rng(99), 4000, shift=shift)).excess
    rng = np.random.default_rng(trials)
    found = [returning(**wandering(rng, trials, shift=shift)) for _ in range(400)]
    assert covers([one.excess_low <= truth <= one.excess_high for one in found])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quiet": 0}, "quiet=0"),
        ({"fpr": 1.0}, "fpr=1.0"),
        ({"strict_fpr": 0.2}, "not stricter than fpr=0.1"),
        ({"confidence": 2}, "confidence=2"),
        ({"null_scores": np.zeros((8, 2, 3))}, "null_scores"),
        ({"unseen_scores": np.zeros((8, 3, 32))}, "unseen_scores"),
        ({"seen_scores": np.full((8, 2, 32), np.nan)}, "NaN"),
    ],
)
def test_bad_input_is_named(changes, words):
    with pytest.raises(InvalidInput, match=words):
        returning(**(wandering(np.random.default_rng(0), 2) | changes))


def test_too_little_is_said():
    given = wandering(np.random.default_rng(0), 2)
    with pytest.raises(NotEnoughEvidence, match="2 checkpoints cannot show a return"):
        returning(**{k: v[:2] for k, v in given.items()})
    with pytest.raises(NotEnoughEvidence, match="at least 10"):
        returning(**(given | {"unseen_scores": given["unseen_scores"][:, :, :9]}))
