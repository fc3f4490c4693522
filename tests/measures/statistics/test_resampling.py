"""Rates from counts against the slow definition: repeat every score, sort, loop."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.measures.statistics.resampling import (
    resampled_accuracy,
    resampled_auc,
    resampled_tpr,
    smoothed_counts,
    with_unobserved,
)


def auc_by_hand(seen, unseen):
    wins = [(s > u) + 0.5 * (s == u) for s in seen for u in unseen]
    return sum(wins) / len(wins)


def accuracy_by_hand(seen, unseen):
    """Walk up the pooled scores until half of the balanced mass lies below."""
    n_seen, n_unseen = len(seen), len(unseen)
    below = 0
    for score in sorted({*seen, *unseen}):
        here = seen.count(score) * n_unseen + unseen.count(score) * n_seen
        below += here
        if below >= n_seen * n_unseen:
            flagged = (below - n_seen * n_unseen) / here  # of the scores at the median
            tpr = sum((s > score) + flagged * (s == score) for s in seen) / n_seen
            fpr = sum((u > score) + flagged * (u == score) for u in unseen) / n_unseen
            return 0.5 * (tpr + 1.0 - fpr)
    raise AssertionError("the mass never reached one half")


def tpr_by_hand(seen, unseen, fpr):
    ranked = sorted(unseen, reverse=True)

    def at(rank):
        if rank > len(ranked):
            return 1.0
        threshold = ranked[rank - 1]
        place = rank - sum(u > threshold for u in ranked)
        tied = place / (ranked.count(threshold) + 1)
        return sum((s > threshold) + tied * (s == threshold) for s in seen) / len(seen)

    r = fpr * (len(ranked) + 1)
    whole = math.floor(r + 1e-9)
    part = max(r - whole, 0.0)
    return (1 - part) * at(whole) + (part * at(whole + 1) if part else 0.0)


def repeated(scores, counts):
    return [float(s) for s, n in zip(scores, counts, strict=True) for _ in range(n)]


# Few distinct values, so that ties within and between the sides are the rule.
SCORES = st.lists(st.integers(-3, 3).map(float), min_size=2, max_size=14)


@settings(max_examples=150)
@given(seen=SCORES, unseen=SCORES, seed=st.integers(0, 999), fpr=st.sampled_from([0.1, 0.25, 0.5]))
def test_counts_agree_with_sorted_copies(seen, unseen, seed, fpr):
    rng = np.random.default_rng(seed)
    if len(unseen) < 1 / fpr:
        unseen = unseen * 10
    seen_n = smoothed_counts(n=len(seen), draws=7, rng=rng)
    unseen_n = smoothed_counts(n=len(unseen), draws=7, rng=rng)
    pools = with_unobserved(np.array(seen)), with_unobserved(np.array(unseen))
    found = {
        "auc": resampled_auc(*pools, seen_n, unseen_n),
        "accuracy": resampled_accuracy(*pools, seen_n, unseen_n),
        "tpr": resampled_tpr(fpr)(*pools, seen_n, unseen_n),
    }
    for draw in range(7):
        sides = repeated(pools[0], seen_n[:, draw]), repeated(pools[1], unseen_n[:, draw])
        np.testing.assert_allclose(found["auc"][draw], auc_by_hand(*sides), rtol=1e-12)
        np.testing.assert_allclose(found["accuracy"][draw], accuracy_by_hand(*sides), rtol=1e-12)
        np.testing.assert_allclose(found["tpr"][draw], tpr_by_hand(*sides, fpr), rtol=1e-12)


def test_smoothed_counts_draw_n_canaries_with_one_unobserved_on_average():
    counts = smoothed_counts(n=30, draws=20_000, rng=np.random.default_rng(0))
    assert counts.shape == (32, 20_000)
    assert (counts.sum(axis=0) == 30).all()
    np.testing.assert_allclose(counts[:30].mean(), 30 / 31, atol=0.01)
    np.testing.assert_allclose(counts[30:].mean(), 15 / 31, atol=0.02)


def test_the_tpr_of_exchangeable_scores_is_the_fpr_on_average():
    rng = np.random.default_rng(1)
    once = np.ones((13, 1), np.int32)
    rate = resampled_tpr(0.1)
    found = [rate(*rng.normal(size=(2, 13)), once, once)[0] for _ in range(6000)]
    assert abs(np.mean(found) - 0.1) < 5 * np.std(found) / np.sqrt(len(found))
