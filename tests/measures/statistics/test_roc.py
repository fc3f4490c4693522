import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import auc, balanced_accuracy, precision_at_fpr, roc, tpr_at_fpr

SCORES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=25)
MANY = st.lists(st.integers(-4, 4).map(float), min_size=10, max_size=40)
MEASURES = {
    "auc": auc,
    "accuracy": balanced_accuracy,
    "tpr": lambda *sides, **rest: tpr_at_fpr(*sides, fpr=0.1, **rest),
    "precision": lambda *sides, **rest: precision_at_fpr(*sides, fpr=0.1, **rest),
}


def new_rng():
    return np.random.default_rng(0)


def together(seen, unseen):
    return np.repeat([1, 0], [len(seen), len(unseen)]), np.concatenate([seen, unseen])


@settings(max_examples=100)
@given(seen=SCORES, unseen=SCORES)
def test_roc_and_auc_agree_with_scikit_learn(seen, unseen):
    curve = roc(seen, unseen)
    truth, scores = together(seen, unseen)
    fpr, tpr, _ = metrics.roc_curve(truth, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr, fpr, atol=1e-12)
    np.testing.assert_allclose(curve.tpr, tpr, atol=1e-12)
    found = auc(seen, unseen, rng=new_rng(), draws=20)
    np.testing.assert_allclose(found.value, metrics.roc_auc_score(truth, scores))
    np.testing.assert_allclose(found.value, metrics.auc(curve.fpr, curve.tpr))


@settings(max_examples=60)
@given(seed=st.integers(0, 9999), n_seen=st.integers(1, 20), n_unseen=st.integers(1, 20))
def test_accuracy_agrees_with_scikit_learn_at_the_balanced_median(seed, n_seen, n_unseen):
    rng = np.random.default_rng(seed)
    seen, unseen = rng.normal(1.0, size=n_seen), rng.normal(size=n_unseen)
    truth, scores = together(seen, unseen)
    weights = np.where(truth == 1, n_unseen, n_seen)
    order = np.argsort(scores)
    mass = np.cumsum(weights[order])
    median = np.searchsorted(mass, n_seen * n_unseen)
    at = scores[order][median]
    # The score at the median itself is flagged with the weight that is missing to one half.
    flagged, both = (
        metrics.balanced_accuracy_score(truth, rule) for rule in (scores > at, scores >= at)
    )
    part = (mass[median] - n_seen * n_unseen) / weights[order][median]
    expected = (1 - part) * flagged + part * both
    found = balanced_accuracy(seen, unseen, rng=new_rng(), draws=20)
    np.testing.assert_allclose(found.value, expected)


@settings(max_examples=100)
@given(seen=MANY, unseen=MANY, fpr=st.sampled_from([0.1, 0.2, 0.3, 0.7, 0.999]))
def test_rates_at_an_fpr_follow_the_rule(seen, unseen, fpr):
    """The mean over all orders of tied scores of "flag the top k unseen, and all above them"."""
    k = next(k for k in range(len(unseen), -1, -1) if k <= fpr * len(unseen) + 1e-9)
    tpr = realised = 1.0
    if k < len(unseen):
        threshold = sorted(unseen, reverse=True)[k]
        above, tied = (sum(f(u) for u in unseen) for f in (threshold.__lt__, threshold.__eq__))
        chance = (k - above) / tied
        flagged = sum((s > threshold) + chance * (s == threshold) for s in seen)
        tpr, realised = flagged / len(seen), k / len(unseen)
    found = tpr_at_fpr(seen, unseen, fpr=fpr, rng=new_rng(), draws=20)
    np.testing.assert_allclose(found.value, tpr)
    expected = tpr / (tpr + realised) if tpr + realised else 0.5
    found = precision_at_fpr(seen, unseen, fpr=fpr, rng=new_rng(), draws=20)
    np.testing.assert_allclose(found.value, expected)


def test_without_ties_precision_agrees_with_scikit_learn():
    rng = new_rng()
    seen, unseen = rng.normal(1.0, size=40), rng.normal(size=40)
    truth, scores = together(seen, unseen)
    flagged = scores > np.sort(unseen)[-5]
    found = precision_at_fpr(seen, unseen, fpr=0.1, rng=rng, draws=20)
    np.testing.assert_allclose(found.value, metrics.precision_score(truth, flagged))


def test_whole_products_survive_rounding():
    """0.1 * 30 = 3.0000000000000004 and 0.29 * 100 = 28.999999999999996: k is 3 and 29."""
    for n, fpr, k in ((30, 0.1, 3), (100, 0.29, 29), (10, 0.7, 7)):
        unseen = np.arange(float(n))
        found = tpr_at_fpr(unseen, unseen, fpr=fpr, rng=new_rng(), draws=20)
        np.testing.assert_allclose(found.value, k / n)


def test_scores_that_are_all_alike_say_nothing():
    alike = np.zeros(40)
    values = {name: f(alike, alike, rng=new_rng()).value for name, f in MEASURES.items()}
    assert values == {"auc": 0.5, "accuracy": 0.5, "tpr": 0.1, "precision": 0.5}


@pytest.mark.parametrize("name", MEASURES)
def test_saturation_keeps_an_honest_width(name):
    found = MEASURES[name](np.arange(40) + 100.0, np.arange(40.0), rng=new_rng())
    assert found.value == 1.0 if name != "precision" else found.value > 0.9
    assert found.high >= found.value
    assert 0.001 < found.value - found.low < 0.2


@settings(max_examples=50)
@given(seen=MANY, unseen=MANY, name=st.sampled_from(sorted(MEASURES)))
def test_the_interval_holds_the_value_within_zero_and_one(seen, unseen, name):
    found = MEASURES[name](seen, unseen, rng=new_rng(), draws=50)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    assert (found.n_seen, found.n_unseen) == (len(seen), len(unseen))
    assert "one trial" in found.method


@pytest.mark.parametrize("name", MEASURES)
def test_rank_measures_ignore_order_and_scale_but_not_direction(name):
    rng = np.random.default_rng(3)
    seen, unseen = rng.normal(1.0, size=60), rng.normal(size=50)
    found = MEASURES[name](seen, unseen, rng=new_rng())
    assert MEASURES[name](seen, unseen, rng=new_rng()) == found
    assert MEASURES[name](np.exp(seen), np.exp(unseen), rng=new_rng()) == found
    assert MEASURES[name](rng.permutation(seen), unseen[::-1], rng=new_rng()).value == found.value
    assert found.value > MEASURES[name](unseen, seen, rng=new_rng()).value


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("d", [0.0, 1.0, 3.0])
def test_intervals_cover(name, d, known_leak, covers):
    rng = np.random.default_rng(11)
    leak, inside = known_leak(d), []
    for _ in range(500):
        seen, unseen = leak.scores(rng, 1, 60, 40)
        found = MEASURES[name](seen[0], unseen[0], rng=rng, draws=100)
        inside.append(found.low <= leak.truth(name) <= found.high)
    assert covers(inside), np.mean(inside)


@pytest.mark.parametrize("name", MEASURES)
def test_faults_are_listed_at_once(name):
    with pytest.raises(
        InvalidInput, match=r"confidence=2 .*; draws=1 .*; rng=None .*; seen_scores"
    ):
        MEASURES[name]([np.nan], [1.0] * 20, rng=None, confidence=2, draws=1)
    for seen, unseen in (([], [1.0]), ([[1.0]], [1.0]), ([1.0], [np.inf]), (["a"], [1.0])):
        with pytest.raises(InvalidInput):
            MEASURES[name](seen, unseen, rng=new_rng())
        with pytest.raises(InvalidInput):
            roc(seen, unseen)


def test_too_few_unseen_scores_say_how_many_it_takes():
    for measure in (tpr_at_fpr, precision_at_fpr):
        with pytest.raises(NotEnoughEvidence, match="at least 100"):
            measure([1.0], np.arange(99.0), fpr=0.01, rng=new_rng())
        with pytest.raises(InvalidInput, match=r"fpr=1\.5"):
            measure([1.0], np.arange(99.0), fpr=1.5, rng=new_rng())
