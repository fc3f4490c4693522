"""The rank-sum test against its definition, scipy, and audits in which nothing is to be found."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from remnant.measures.statistics.rank_sum import rank_sum_p_value


@pytest.mark.parametrize(("n", "m", "method"), [(6, 30, "exact"), (40, 30, "asymptotic")])
def test_without_ties_it_is_the_usual_test(n, m, method):
    rng = np.random.default_rng(0)
    seen, unseen = rng.normal(size=n) + 0.5, rng.normal(size=m)
    usual = stats.mannwhitneyu(seen, unseen, alternative="greater", method=method).pvalue
    assert rank_sum_p_value(seen, unseen) == pytest.approx(usual, rel=1e-9)


def test_with_ties_it_is_close_to_all_assignments():
    pool = np.array([0.0] * 9 + [1.0, 2.0, 2.0, 3.0, 4.0])
    ranks = stats.rankdata(pool)
    sums = np.array([ranks[list(some)].sum() for some in combinations(range(14), 5)])
    for some in [(0, 1, 2, 3, 13), (0, 1, 2, 12, 13), (0, 1, 11, 12, 13), (0, 10, 11, 12, 13)]:
        others = np.delete(pool, some)
        exact = np.mean(sums >= ranks[list(some)].sum() - 1e-9)
        found = rank_sum_p_value(pool[list(some)], others)
        assert exact * 0.7 < found < exact * 3.0


@pytest.mark.parametrize(
    ("seen", "unseen", "share"), [(13, 1000, 0.005), (20, 200, 0.01), (100, 1000, 0.005)]
)
def test_one_high_score_among_few_proves_nothing(seen, unseen, share):
    """Scores that are 0 or 1, of one law on both sides; a normal law rejects in 6 to 9 %."""
    rng = np.random.default_rng(1)
    p_values = np.array(
        [
            rank_sum_p_value(*((rng.random(n) < share).astype(float) for n in (seen, unseen)))
            for _ in range(1500)
        ]
    )
    for level in (0.025, 0.0025):
        error = np.sqrt(level * (1 - level) / len(p_values))
        assert np.mean(p_values <= level) <= level + 3 * error


def test_a_leak_of_rare_scores_is_found_and_scores_all_alike_show_nothing():
    rng = np.random.default_rng(2)
    seen, unseen = (rng.random(200) < 0.15).astype(float), (rng.random(200) < 0.01).astype(float)
    assert rank_sum_p_value(seen, unseen) < 1e-3
    assert rank_sum_p_value(np.zeros(20), np.zeros(30)) == 1.0
    assert rank_sum_p_value(np.ones(1), np.zeros(1)) >= 0.5
