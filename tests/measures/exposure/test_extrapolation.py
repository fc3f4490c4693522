import warnings

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import SkewNormal, exposure, extrapolated_exposure, fit_skew_normal


def references_of(shape, n, seed):
    law = SkewNormal(shape=shape, location=30.0, scale=4.0)
    return law.sample(n, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("shape", [-6.0, -1.5, 1.5, 6.0])
@pytest.mark.parametrize("n", [500, 20_000])
def test_bits_agree_with_the_published_recipe(shape, n):
    """scipy.stats.skewnorm.fit, then -log2 of its distribution function, up to 20 bits."""
    references = references_of(shape, n, 0)
    canaries = np.linspace(5.0, 45.0, 81)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        published = -np.log2(stats.skewnorm.cdf(canaries, *stats.skewnorm.fit(references)))
    found = extrapolated_exposure(canary_losses=canaries, reference_losses=references)
    near = published < 20.0
    assert near.sum() > 30
    np.testing.assert_allclose(found.bits[near], published[near], rtol=0, atol=0.05)


def test_bits_agree_with_the_rank_in_a_whole_space_that_follows_the_law():
    costs = np.sort(references_of(-1.0, 200_000, 1))
    references = np.random.default_rng(0).choice(costs, 20_000)
    places = np.array([10, 100, 1000, 20_000, 150_000])
    exact = np.log2(costs.size) - np.log2(places + 1)
    found = extrapolated_exposure(canary_losses=costs[places], reference_losses=references)
    np.testing.assert_allclose(found.bits, exact, atol=0.7)
    np.testing.assert_allclose(found.bits[2:], exact[2:], atol=0.1)
    assert not found.doubtful
    assert found.extrapolated.tolist() == (costs[places] < references.min()).tolist()
    assert (found.n_references, found.method) == (20_000, "skew-normal")
    assert found.fit == fit_skew_normal(references)


@pytest.mark.parametrize("n", [12, 300, 20_000])
def test_the_p_value_is_that_of_kolmogorov_and_smirnov(n):
    references = references_of(3.0, n, 2)
    found = extrapolated_exposure(canary_losses=[1.0], reference_losses=references)
    expected = stats.kstest(references, found.fit.cdf).pvalue
    assert found.ks_pvalue == pytest.approx(expected, rel=1e-6)
    assert found.bootstrap_pvalue is None


def test_far_out_bits_stay_finite_and_ordered():
    references = references_of(2.0, 2000, 3)
    canaries = [31.0, 25.0, 0.0, -500.0, -1e6, np.inf]
    found = extrapolated_exposure(canary_losses=canaries, reference_losses=references)
    assert np.all(np.isfinite(found.bits))
    assert np.all(np.diff(found.bits[:5]) > 0)
    assert found.bits[3] > 10_000
    assert found.bits[5] == 0.0
    assert not np.signbit(found.bits[5])
    assert found.extrapolated.tolist() == [False, True, True, True, True, False]


@pytest.mark.parametrize(("times", "shift"), [(0.001, 5.0), (1000.0, -3.0)])
def test_a_change_of_unit_changes_nothing(times, shift):
    canaries, references = np.linspace(10.0, 40.0, 9), references_of(2.0, 2000, 4)
    found = extrapolated_exposure(canary_losses=canaries, reference_losses=references)
    mapped = extrapolated_exposure(
        canary_losses=times * canaries + shift, reference_losses=times * references + shift
    )
    np.testing.assert_allclose(mapped.bits, found.bits, rtol=1e-6)
    assert mapped.ks_pvalue == pytest.approx(found.ks_pvalue, rel=1e-5)


@pytest.mark.parametrize(
    ("references", "why"),
    [
        (np.random.default_rng(0).uniform(size=3000), "law"),
        (np.random.default_rng(0).integers(0, 4, 500), "law"),
        (np.abs(np.random.default_rng(0).normal(size=40)), "boundary"),
    ],
)
def test_references_that_do_not_follow_the_law_make_it_doubtful(references, why):
    found = extrapolated_exposure(canary_losses=[-1.0], reference_losses=references)
    assert found.doubtful
    assert found.ks_pvalue <= 0.1 if why == "law" else found.fit.at_boundary


def test_a_fit_that_is_not_rejected_may_still_be_bits_off():
    """Why it comes last: a discrete tree of digits has a lower end that no such law has."""
    rng = np.random.default_rng(0)
    digit = -np.log2(rng.dirichlet(np.full(10, 2.0), 5))
    space = digit[0]
    for level in digit[1:]:
        space = np.add.outer(space, level).ravel()
    references = rng.choice(space, 1000, replace=False)
    found = extrapolated_exposure(canary_losses=space.min(), reference_losses=references)
    assert not found.doubtful
    assert abs(found.bits[0] - np.log2(space.size)) > 1.0
    sampled = exposure(canary_losses=space.min(), reference_losses=references, space=space.size)
    assert sampled.low[0] <= np.log2(space.size) <= sampled.high[0] + 1e-9


def test_the_bootstrap_allows_for_the_fit_where_the_plain_test_is_lenient():
    rng = np.random.default_rng(1)
    plain, honest = [], []
    for seed in range(25):
        found = extrapolated_exposure(
            canary_losses=[0.0],
            reference_losses=references_of(2.0, 100, seed),
            bootstrap_draws=20,
            rng=rng,
        )
        plain.append(found.ks_pvalue)
        honest.append(found.bootstrap_pvalue)
    assert stats.kstest(honest, "uniform").pvalue > 1e-3
    assert np.mean(plain) > 0.75
    peaked = np.random.default_rng(0).laplace(size=120)
    found = extrapolated_exposure(
        canary_losses=[0.0], reference_losses=peaked, bootstrap_draws=39, rng=rng
    )
    assert found.ks_pvalue > 0.1 >= found.bootstrap_pvalue
    assert found.doubtful


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"reference_losses": [np.inf] * 20}, "reference_losses holds 20 value.* infinite"),
        ({"canary_losses": [np.nan]}, "canary_losses holds 1 value"),
        ({"canary_losses": [-np.inf]}, "canary_losses holds 1 value"),
        ({"canary_losses": []}, "canary_losses is empty"),
        ({"bootstrap_draws": 5}, "bootstrap_draws=5 is neither 0 nor at least 20"),
        ({"bootstrap_draws": 2.5}, "bootstrap_draws=2.5 is not a whole number"),
        ({"bootstrap_draws": 20}, "rng=None is not a numpy.random.Generator"),
        ({"canary_losses": "a", "reference_losses": [[1.0]]}, "canary_losses .*; reference_losses"),
    ],
)
def test_faulty_input_is_refused(given, words):
    good = {"canary_losses": [1.0], "reference_losses": np.arange(50.0)}
    with pytest.raises(InvalidInput, match=words):
        extrapolated_exposure(**(good | given))


def test_too_few_references_are_named():
    with pytest.raises(NotEnoughEvidence, match=r"reference_losses holds 9 value.* at least 10"):
        extrapolated_exposure(canary_losses=[1.0], reference_losses=np.arange(9.0))
