"""Epsilon from scores: thresholds set by the scores, and no more false alarms for it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from remnant import epsilon_from_scores
from remnant.errors import InvalidInput
from remnant.measures.epsilon import gaussian_epsilon


@pytest.mark.parametrize("mu", [0.0, 1.0])
@pytest.mark.parametrize("sizes", [(60, 60), (300, 40)])
def test_the_best_threshold_accuses_in_at_most_five_percent(mu, sizes):
    rng, delta = np.random.default_rng(0), 0.02
    truth = gaussian_epsilon(mu=mu, delta=delta)
    accused = sum(
        epsilon_from_scores(
            mu + rng.normal(size=sizes[0]), rng.normal(size=sizes[1]), delta=delta, thresholds=4
        ).value
        > truth
        for _ in range(500)
    )
    assert accused <= stats.binom.isf(1e-4, 500, 0.05)


@pytest.mark.parametrize("law", [np.round, np.sign, np.zeros_like])
def test_ties_raise_no_false_alarms(law):
    rng = np.random.default_rng(1)
    accused = sum(
        epsilon_from_scores(law(rng.normal(size=80)), law(rng.normal(size=80)), delta=0.0).value > 0
        for _ in range(300)
    )
    assert accused <= stats.binom.isf(1e-4, 300, 0.05)


def test_a_pure_mechanism_at_its_border_is_accused_in_at_most_five_percent():
    """A Laplace mechanism: every threshold in its tails reaches ln(TPR / FPR) = 1."""
    rng = np.random.default_rng(2)
    accused = sum(
        epsilon_from_scores(1 + rng.laplace(size=400), rng.laplace(size=400), delta=0.0).value > 1
        for _ in range(500)
    )
    assert accused <= stats.binom.isf(1e-4, 500, 0.05)


def test_a_strong_leak_is_shown_from_either_end():
    rng = np.random.default_rng(3)
    quiet, loud = rng.normal(size=1000), rng.normal(size=1000)
    loud[:900] += 9.0  # 90 % are known for sure, by high scores
    result = epsilon_from_scores(loud, quiet, delta=1e-5)
    assert result.value > 4.5
    assert result.threshold == quiet.max()
    mirrored = epsilon_from_scores(-quiet, -loud, delta=1e-5)  # 90 % are known not to be in
    assert mirrored.value == pytest.approx(result.value)
    assert epsilon_from_scores(-loud, -quiet, delta=1e-5).value == 0.0


def test_an_increasing_map_changes_nothing():
    rng = np.random.default_rng(4)
    seen, unseen = rng.normal(size=200) + 2, rng.normal(size=150)
    plain = epsilon_from_scores(seen, unseen, delta=1e-5)
    mapped = epsilon_from_scores(np.exp(seen), np.exp(unseen), delta=1e-5)
    assert plain.value == mapped.value > 0


def test_more_thresholds_cost_a_little():
    rng = np.random.default_rng(5)
    seen, unseen = rng.normal(size=500) + 2, rng.normal(size=500)
    values = [epsilon_from_scores(seen, unseen, delta=0, thresholds=k).value for k in (2, 8, 64)]
    assert min(values) > 0.6 * max(values) > 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"thresholds": 3}, "thresholds=3 is odd"),
        ({"thresholds": 0}, "thresholds=0 is not at least 2"),
        ({"delta": 2.0}, "delta=2.0"),
        ({"seen_scores": []}, "seen_scores is empty"),
        ({"unseen_scores": [np.nan]}, "unseen_scores holds 1 value"),
    ],
)
def test_bad_input_is_one_sentence(changed, message):
    given = {"seen_scores": [1.0], "unseen_scores": [0.0], "delta": 1e-5, **changed}
    with pytest.raises(InvalidInput, match=message):
        epsilon_from_scores(**given)
