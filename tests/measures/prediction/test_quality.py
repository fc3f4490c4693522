import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn import metrics

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import prediction_quality
from remnant.measures.prediction.quality import miss_rate

RATES = ("auc", "fpr_at_tpr", "precision_at_k", "default_tpr", "default_fpr")


def new_rng():
    return np.random.default_rng(0)


def fpr_at_tpr(risk, truth, tpr):
    """At the highest threshold at which the share asked for is flagged, without ties."""
    at = max(t for t in risk if np.mean(risk[truth] >= t) >= tpr - 1e-12)
    return np.mean(risk[~truth] >= at)


@settings(max_examples=40)
@given(
    pairs=st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=40),
    k=st.integers(1, 12),
    tpr=st.sampled_from([0.5, 0.75]),
)
def test_the_values_follow_their_definitions(pairs, k, tpr):
    pairs = [*pairs, *[(0, True)] * 4, *[(1, False)] * 8]
    risk, truth = np.array([p[0] for p in pairs], float), np.array([p[1] for p in pairs])
    found = prediction_quality(
        risk=risk, memorised=truth, threshold=1.0, tpr=tpr, k=k, rng=new_rng(), draws=20
    )
    np.testing.assert_allclose(found.auc.value, metrics.roc_auc_score(truth, risk))
    flagged = risk >= 1.0
    np.testing.assert_allclose(found.default_tpr.value, metrics.recall_score(truth, flagged))
    np.testing.assert_allclose(found.default_fpr.value, np.mean(flagged[~truth]))
    rng = np.random.default_rng(1)
    passed = [fpr_at_tpr(risk + 1e-6 * rng.random(risk.size), truth, tpr) for _ in range(400)]
    assert abs(found.fpr_at_tpr.value - np.mean(passed)) < 0.1
    taken = [truth[np.lexsort((rng.random(risk.size), -risk))[:k]].mean() for _ in range(400)]
    assert abs(found.precision_at_k.value - np.mean(taken)) < 0.1
    if np.unique(risk).size == risk.size:
        assert found.precision_at_k.value == np.mean(taken)
    for name in RATES:
        rate = getattr(found, name)
        assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
    assert (found.k, found.tpr, found.threshold) == (k, tpr, 1.0)
    assert found.n_memorised + found.n_others == risk.size
    assert found.base_rate == truth.mean()


def truths(shift, base, share, tpr, threshold):
    """Risks are N(shift, 1) of memorised samples, N(0, 1) of others."""

    def above(t):
        return base * stats.norm.sf(t - shift) + (1 - base) * stats.norm.sf(t)

    cut = optimize.brentq(lambda t: above(t) - share, -10, 15)
    return {
        "auc": stats.norm.cdf(shift / np.sqrt(2)),
        "fpr_at_tpr": stats.norm.sf(shift + stats.norm.isf(tpr)),
        "precision_at_k": base * stats.norm.sf(cut - shift) / share,
        "default_tpr": stats.norm.sf(threshold - shift),
        "default_fpr": stats.norm.sf(threshold),
    }


@pytest.mark.parametrize(
    ("shift", "base", "n", "share"),
    [(0.0, 0.3, 150, 0.1), (1.0, 0.1, 400, 0.1), (2.0, 0.5, 120, 0.2), (3.0, 0.05, 800, 0.05)],
)
def test_intervals_cover(shift, base, n, share, covers):
    rng = np.random.default_rng(7)
    expected = truths(shift, base, share, 0.75, 1.0)
    inside = {name: [] for name in RATES}
    for _ in range(300):
        truth = rng.random(n) < base
        if truth.sum() < 4:
            continue
        found = prediction_quality(
            risk=rng.normal(size=n) + shift * truth,
            memorised=truth,
            threshold=1.0,
            k=round(share * n),
            rng=rng,
            draws=60,
        )
        for name in RATES:
            rate = getattr(found, name)
            inside[name].append(rate.low <= expected[name] <= rate.high)
    assert {name: np.mean(one) for name, one in inside.items() if not covers(one)} == {}


@settings(max_examples=40)
@given(seed=st.integers(0, 999), tpr=st.floats(0.3, 0.9))
def test_the_fpr_at_a_tpr_without_ties_is_that_of_the_threshold(seed, tpr):
    rng = np.random.default_rng(seed)
    risk, truth = rng.normal(size=60), np.arange(60) < 20
    found = prediction_quality(risk=risk, memorised=truth, tpr=tpr, rng=rng, draws=20)
    assert found.fpr_at_tpr.value == pytest.approx(fpr_at_tpr(risk, truth, tpr))


TIED = {
    "rounded": lambda rng, n, shift: np.round(rng.normal(shift, 1.0, n)),
    "four levels": lambda rng, n, shift: np.clip(np.round(rng.normal(shift, 1.0, n)), 0.0, 3.0),
    "counts": lambda rng, n, shift: rng.poisson(2.0 + 2.0 * shift, n).astype(float),
    "rare counts": lambda rng, n, shift: rng.poisson(0.5 + shift, n).astype(float),
}


def interpolated(hits, others, tpr):
    """The FPR at a TPR of a curve that is straight across ties."""
    levels = np.unique(np.concatenate([hits, others]))[::-1]
    shares = [[0.0, *(np.mean(side >= at) for at in levels)] for side in (hits, others)]
    return np.interp(tpr, *shares)


@pytest.mark.parametrize("law", TIED)
@pytest.mark.parametrize(("n", "memorised", "shift"), [(400, 40, 0.0), (900, 300, 1.5)])
def test_tied_risks_have_one_target_for_value_and_interval(law, n, memorised, shift, covers):
    rng, draw, runs = np.random.default_rng(n), TIED[law], 300
    truth = np.arange(n) < memorised
    many = draw(rng, 400_000, shift), draw(rng, 400_000, 0.0)
    expected = {
        "fpr_at_tpr": interpolated(*many, 0.75),
        "auc": np.mean(many[0] > many[1]) + np.mean(many[0] == many[1]) / 2.0,
    }
    found = [
        prediction_quality(
            risk=np.concatenate([draw(rng, memorised, shift), draw(rng, n - memorised, 0.0)]),
            memorised=truth,
            rng=rng,
            draws=60,
        )
        for _ in range(runs)
    ]
    for name, at in expected.items():
        rates = [getattr(one, name) for one in found]
        values = np.array([rate.value for rate in rates])
        error = values.std() / np.sqrt(runs)
        # The value is that of a threshold on the samples themselves, half a sample off at most.
        assert abs(values.mean() - at) < 4 * error + 1.0 / memorised, name
        assert covers([rate.low <= at <= rate.high for rate in rates]), name


def test_a_rising_map_changes_nothing_but_thresholds():
    rng = np.random.default_rng(1)
    truth = rng.random(200) < 0.2
    risk = rng.normal(size=200) + truth
    found = prediction_quality(risk=risk, memorised=truth, threshold=0.5, rng=new_rng())
    mapped = prediction_quality(
        risk=np.exp(risk), memorised=truth, threshold=np.exp(0.5), rng=new_rng()
    )
    for name in RATES:
        assert getattr(mapped, name) == getattr(found, name)
    order = rng.permutation(200)
    mixed = prediction_quality(
        risk=risk[order], memorised=truth[order], threshold=0.5, rng=new_rng()
    )
    for name in RATES:
        assert getattr(mixed, name).value == pytest.approx(getattr(found, name).value)
    np.testing.assert_array_equal(mapped.curve.tpr, found.curve.tpr)
    assert found.k == truth.sum()


def test_without_a_threshold_there_is_no_default_point():
    truth = np.arange(40) < 10
    found = prediction_quality(risk=np.arange(40.0), memorised=truth, rng=new_rng())
    assert found.default_tpr is None
    assert found.default_fpr is None
    assert found.threshold is None
    assert found.precision_at_k.value == 0.0 == found.precision_at_k.low
    assert 0.2 < found.precision_at_k.high < 0.5
    perfect = prediction_quality(risk=-np.arange(40.0), memorised=truth, rng=new_rng())
    assert perfect.precision_at_k.value == 1.0 == perfect.precision_at_k.high
    assert 0.3 < perfect.precision_at_k.low < 0.7


@pytest.mark.parametrize(("missed", "memorised"), [(0, 40), (3, 40), (40, 40)])
def test_the_miss_rate_is_about_memorised_samples_alone(missed, memorised):
    truth = np.arange(100) < memorised
    for others in (False, True):
        listed = np.where(truth, np.arange(100) >= missed, others)
        found = miss_rate(listed=listed, memorised=truth, confidence=0.9)
        low, high = stats.binomtest(missed, memorised).proportion_ci(0.9, "exact")
        assert found.value == missed / memorised
        assert (found.low, found.high) == pytest.approx((low, high))


def test_a_list_of_nothing_memorised_has_no_miss_rate():
    with pytest.raises(NotEnoughEvidence, match="no sample was memorised"):
        miss_rate(listed=np.ones(3, dtype=bool), memorised=np.zeros(3, dtype=bool))


def test_faults():
    with pytest.raises(
        InvalidInput,
        match=r"tpr=1 .*; confidence=2 .*; rng=None .*; draws=3 .*; risk .*; memorised holds"
        r".*; threshold=nan .*; k=0",
    ):
        prediction_quality(
            risk=[np.nan], memorised=[3], rng=None, threshold=np.nan, tpr=1, k=0, confidence=2,
            draws=3,
        )  # fmt: skip
    with pytest.raises(InvalidInput, match="memorised has 2 entries for 3"):
        prediction_quality(risk=[1.0] * 3, memorised=[0, 1], rng=new_rng())
    with pytest.raises(InvalidInput, match="k=9"):
        prediction_quality(risk=[1.0] * 8, memorised=[0, 1] * 4, k=9, rng=new_rng())
    for truth, hint in (
        ([True] * 8, "Let fewer samples count"),
        ([False] * 8, "Lower the limit"),
        ([True] * 3 + [False] * 5, "Lower the limit"),
    ):
        with pytest.raises(NotEnoughEvidence, match=f"memorised and .* {hint}"):
            prediction_quality(risk=np.arange(8.0), memorised=truth, rng=new_rng())
