import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import counterfactual_memorization


def toy(seed=0, models=9, n=7):
    rng = np.random.default_rng(seed)
    seen = rng.random((models, n)).argsort(axis=0) < rng.integers(2, models - 1, size=n)
    return rng.normal(size=(models, n)) * rng.gamma(3.0, size=n) + seen, seen


@settings(max_examples=60)
@given(
    seed=st.integers(0, 9999),
    models=st.integers(4, 12),
    confidence=st.sampled_from([0.8, 0.95]),
)
def test_it_is_the_difference_of_means_with_scipys_welch_interval(seed, models, confidence):
    scores, seen = toy(seed, models)
    found = counterfactual_memorization(scores=scores, seen=seen, confidence=confidence)
    for i in range(scores.shape[1]):
        ins, outs = scores[seen[:, i], i], scores[~seen[:, i], i]
        np.testing.assert_allclose(found.values[i], ins.mean() - outs.mean())
        ends = stats.ttest_ind(ins, outs, equal_var=False).confidence_interval(confidence)
        np.testing.assert_allclose([found.low[i], found.high[i]], ends, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(found.n_seen, seen.sum(axis=0))


@pytest.mark.parametrize("law", ["normal", "skewed"])
@pytest.mark.parametrize(("ins", "outs"), [(3, 3), (4, 12), (50, 50)])
def test_welchs_intervals_cover(law, ins, outs, covers):
    rng = np.random.default_rng(5)
    seen = np.repeat([True, False], [ins, outs])[:, None] & np.ones(2000, dtype=bool)
    # Seeing shifts the score and widens it.
    noise = (
        rng.normal(size=seen.shape)
        if law == "normal"
        else stats.gumbel_l.rvs(size=seen.shape, random_state=rng) + np.euler_gamma
    )
    scores = 1.5 * seen + noise * np.where(seen, 2.0, 1.0)
    found = counterfactual_memorization(scores=scores, seen=seen)
    inside = (found.low <= 1.5) & (found.high >= 1.5)
    # Welch's interval falls a little short where the wider side has few models, or a skewed law.
    few = min(ins, outs) < 8
    assert covers(inside, 0.92 if few else 0.95), inside.mean()


@pytest.mark.parametrize(
    ("models", "least"), [(2, 0.92), (4, 0.92), (8, 0.94), (16, 0.94), (32, 0.95), (50, 0.95)]
)
def test_intervals_of_hits_cover(models, least):
    """Summed over all outcomes, not simulated: so many models on each side, any two shares."""
    k = np.arange(models + 1)
    ins, outs = (one.ravel() for one in np.meshgrid(k, k, indexing="ij"))
    place = np.arange(models)[:, None]
    hits = np.concatenate([place < ins, place < outs])
    seen = np.repeat([True, False], models)[:, None] & np.ones(ins.size, dtype=bool)
    found = counterfactual_memorization(scores=hits, seen=seen)
    np.testing.assert_allclose(found.values, (ins - outs) / models, atol=1e-12)
    assert -1.0 <= found.low.min() <= found.high.max() <= 1.0
    assert np.all(found.high - found.low > 0.01)
    assert np.all((found.low <= found.values) & (found.values <= found.high))
    shares = np.linspace(0.0, 1.0, 21)
    for p_in in shares:
        for p_out in shares:
            chance = stats.binom.pmf(ins, models, p_in) * stats.binom.pmf(outs, models, p_out)
            truth = p_in - p_out
            inside = (found.low - 1e-12 <= truth) & (truth <= found.high + 1e-12)
            assert chance @ inside >= least, (p_in, p_out)


def test_exchange_changes_the_sign_and_a_constant_nothing():
    scores, seen = toy()
    found = counterfactual_memorization(scores=scores, seen=seen)
    other = counterfactual_memorization(scores=scores + np.arange(7.0), seen=~seen)
    np.testing.assert_allclose(other.values, -found.values)
    np.testing.assert_allclose(other.low, -found.high)
    hits = scores > 0
    found = counterfactual_memorization(scores=hits, seen=seen)
    other = counterfactual_memorization(scores=hits, seen=~seen)
    np.testing.assert_allclose(other.high, -found.low)


def test_faults():
    scores, seen = toy()
    with pytest.raises(InvalidInput, match=r"confidence=1 .*; scores holds 1 .*; seen holds"):
        counterfactual_memorization(scores=[[np.nan]], seen=[[7]], confidence=1)
    seen[:, 3] = True
    seen[0, 3] = False
    with pytest.raises(NotEnoughEvidence, match=r"left out by fewer than 2 .*example 3: 1"):
        counterfactual_memorization(scores=scores, seen=seen)
    scores, seen = toy()
    scores[:, 2] = np.where(seen[:, 2], 0.3, 0.1)
    with pytest.raises(NotEnoughEvidence, match=r"example 2.*booleans"):
        counterfactual_memorization(scores=scores, seen=seen)
