import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures import clopper_pearson, exposure
from remnant.measures.exposure.by_rank import references_to_show

LOSS = st.one_of(st.integers(-4, 4).map(float), st.floats(-50, 50), st.just(np.inf))
LOSSES = st.lists(LOSS, min_size=1, max_size=40)
ARRAYS = ("bits", "low", "high", "saturated", "at_or_under", "tied")


def by_hand(canaries, references):
    """log2(n + 1) - log2(1 + #{reference <= canary}), one canary at a time."""
    under = [sum(reference <= canary for reference in references) for canary in canaries]
    return [np.log2(len(references) + 1) - np.log2(1 + k) for k in under]


def all_counts(n, confidence=0.95):
    """The exposure of n + 1 canaries, the k-th with exactly k of n references under it."""
    return exposure(
        canary_losses=np.arange(n + 1) + 0.5,
        reference_losses=np.arange(1, n + 1),
        confidence=confidence,
    )


@settings(max_examples=200)
@given(canaries=LOSSES, references=LOSSES)
def test_exposure_agrees_with_its_definition(canaries, references):
    found = exposure(canary_losses=canaries, reference_losses=references)
    np.testing.assert_allclose(found.bits, by_hand(canaries, references), atol=1e-12)
    k = np.array([sum(one <= canary for one in references) for canary in canaries])
    np.testing.assert_array_equal(found.at_or_under, k)
    np.testing.assert_array_equal(found.saturated, k == 0)
    assert found.n_references == len(references)
    assert found.ceiling == np.log2(len(references) + 1) >= found.bits.max()
    assert (found.method, found.confidence, found.space) == ("sampled", 0.95, None)


@settings(max_examples=100)
@given(canaries=LOSSES, references=LOSSES)
def test_exposure_is_the_published_formula_up_to_its_convention(canaries, references):
    """There: log2 n - log2(1 + k), in the order of rising perplexity."""
    found = exposure(canary_losses=canaries, reference_losses=references)
    n = len(references)
    pool = np.concatenate([references, canaries])
    is_reference = np.arange(pool.size) < n
    order = np.argsort(pool, kind="stable")  # at a tie the reference comes first
    ranks = 1 + np.cumsum(is_reference[order])[~is_reference[order]]
    published = np.log2(n) - np.log2(ranks)
    ours = found.bits[np.argsort(canaries, kind="stable")] - np.log2(n + 1) + np.log2(n)
    np.testing.assert_allclose(ours, published, atol=1e-12)


@settings(max_examples=100)
@given(canaries=LOSSES, references=LOSSES, seed=st.integers(0, 999))
def test_order_is_kept_for_canaries_and_ignored_for_references(canaries, references, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(canaries))
    found = exposure(canary_losses=canaries, reference_losses=references, space=10**6)
    shuffled = exposure(
        canary_losses=np.array(canaries)[order],
        reference_losses=rng.permutation(references),
        space=10**6,
    )
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(shuffled, name), getattr(found, name)[order])


@pytest.mark.parametrize("rising", [lambda x: 3 * x - 7, np.exp, np.cbrt, lambda x: x**3 + x])
def test_a_rising_map_changes_nothing(rising):
    rng = np.random.default_rng(0)
    canaries, references = rng.integers(-9, 9, 200) / 4, rng.integers(-9, 9, 20_000) / 4
    found = exposure(canary_losses=canaries, reference_losses=references)
    mapped = exposure(canary_losses=rising(canaries), reference_losses=rising(references))
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(mapped, name), getattr(found, name))


def test_a_model_that_scores_everything_alike_exposes_nothing():
    found = exposure(canary_losses=[2.0, 2.0], reference_losses=np.full(50, 2.0))
    assert found.bits.tolist() == [0.0, 0.0]
    assert found.low.tolist() == [0.0, 0.0]
    assert not np.signbit(found.low).any()
    assert not found.saturated.any()
    assert found.tied.tolist() == [50, 50]
    assert found.high.tolist() == [np.inf, np.inf]  # they may be capped


def test_the_upper_end_allows_for_ties():
    """It is that of a canary that costs a little less."""
    rng = np.random.default_rng(0)
    canaries, references = rng.integers(0, 9, 20) / 2, rng.integers(0, 9, 300) / 2
    found = exposure(canary_losses=canaries, reference_losses=references)
    apart = exposure(canary_losses=canaries - 0.25, reference_losses=references)
    np.testing.assert_array_equal(found.high, np.maximum(apart.high, found.bits))
    np.testing.assert_array_equal(found.tied, found.at_or_under - apart.at_or_under)
    assert (found.tied > 0).all()


def test_one_number_is_one_canary_and_an_infinite_loss_is_the_dearest():
    found = exposure(canary_losses=0.5, reference_losses=[1.0, np.inf, 0.0])
    assert found.bits.tolist() == [1.0]
    found = exposure(canary_losses=[np.inf, 1.0], reference_losses=[1.0, np.inf, 0.0])
    assert found.bits.tolist() == [0.0, 2.0 - np.log2(3.0)]


def test_a_canary_cheaper_than_all_references_is_exposed_at_least_so_much():
    found = exposure(canary_losses=[0.0], reference_losses=np.arange(1.0, 1024.0))
    assert found.bits.tolist() == [10.0] == [found.ceiling]
    assert found.saturated.tolist() == [True]
    assert found.high.tolist() == [np.inf]
    np.testing.assert_allclose(found.low, -np.log2(clopper_pearson(0, 1023)[1]))
    capped = exposure(canary_losses=[0.0], reference_losses=np.arange(1.0, 1024.0), space=10**6)
    np.testing.assert_allclose(capped.high, np.log2(10**6))
    huge = exposure(canary_losses=[0.0], reference_losses=[1.0], space=10**400)
    np.testing.assert_allclose(huge.high, 400 * np.log2(10))
    assert huge.space == 10**400


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 30, 1001])
def test_the_interval_is_clopper_pearsons_and_holds_the_point(n, confidence):
    found = all_counts(n, confidence)
    least, most = clopper_pearson(np.arange(n + 1), n, confidence=confidence)
    assert np.all(found.low <= found.bits)
    assert np.all(found.bits <= found.high)
    if confidence >= 0.5:
        np.testing.assert_allclose(2.0**-found.low, most, rtol=1e-9)
        np.testing.assert_allclose(2.0**-found.high, least, rtol=1e-9)


def covered(found, secrets):
    """Which of the ranks 1, 2, … each interval holds: shape (intervals, ranks)."""
    exact = np.log2(secrets) - np.log2(np.arange(1, secrets + 1))
    slack = 1e-12
    return (found.low[:, None] <= exact + slack) & (exact - slack <= found.high[:, None])


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("secrets", "n"), [(2, 1), (12, 5), (12, 11), (90, 8), (90, 45), (90, 89), (400, 150)]
)
def test_intervals_cover_the_exact_exposure_at_every_rank(secrets, n, confidence):
    """Summed over all outcomes, not simulated."""
    inside = covered(all_counts(n, confidence), secrets)
    k, rank = np.arange(n + 1)[:, None], np.arange(1, secrets + 1)
    chances = {
        "with replacement": stats.binom.pmf(k, n, rank / secrets),
        "without replacement": stats.hypergeom.pmf(k, secrets, rank, n),
        "without the canary": stats.hypergeom.pmf(k, secrets - 1, rank - 1, n),
    }
    for how, chance in chances.items():
        assert np.sum(chance * inside, axis=0).min() >= confidence - 1e-9, how


@pytest.mark.parametrize("n", [72, 80, 300])
def test_repeated_references_without_the_canary_need_the_space(n):
    secrets, k = 80, np.arange(n + 1)[:, None]
    references, rank = np.arange(1, n + 1), np.arange(1, secrets + 1)
    chance = stats.binom.pmf(k, n, (rank - 1) / (secrets - 1))
    assert np.sum(chance * covered(all_counts(n), secrets), axis=0).min() < 0.95
    each = [
        covered(
            exposure(canary_losses=one + 0.5, reference_losses=references, space=secrets), secrets
        )[0]
        for one in range(n + 1)
    ]
    assert np.sum(chance * np.array(each), axis=0).min() >= 0.95


def costs_of(kind, rng, secrets):
    if kind == "tied":
        return rng.integers(0, 40, secrets) / 2
    if kind == "clustered":
        return rng.choice([3.0, 10.0, 11.0], secrets) + 1e-9 * rng.normal(size=secrets)
    return rng.gamma(5.0, size=secrets)


@pytest.mark.parametrize("kind", ["smooth", "tied", "clustered"])
@pytest.mark.parametrize("n", [20, 600])
@pytest.mark.parametrize("left_out", [True, False])
def test_intervals_cover_in_simulation(kind, n, left_out, covers):
    """Every canary of the space in turn, from rank 1 up, against references drawn anew."""
    rng = np.random.default_rng(n + left_out)
    secrets, inside = 1000, []
    for _ in range(8):
        costs = costs_of(kind, rng, secrets)
        exact = np.log2(secrets) - np.log2((costs[None, :] <= costs[:, None]).sum(axis=1))
        for canary in rng.permutation(secrets)[:125]:
            pool = np.delete(costs, canary) if left_out else costs
            drawn = rng.choice(pool, n, replace=not left_out)
            found = exposure(canary_losses=costs[canary], reference_losses=drawn)
            inside.append(found.low[0] <= exact[canary] + 1e-9 <= found.high[0] + 2e-9)
    assert covers(inside), np.mean(inside)


@pytest.mark.parametrize("memorised", [True, False])
def test_canaries_left_out_together_are_covered_once_the_space_is_known(memorised, covers):
    """Thirty canaries cheaper than all else: no reference can show that they hide each other."""
    rng = np.random.default_rng(5)
    secrets, m, n = 1000, 30, 500
    with_space, without = [], []
    for _ in range(300):
        costs = rng.normal(size=secrets)
        costs[:m] -= 100.0 * memorised
        exact = np.log2(secrets) - np.log2((costs <= costs[:m, None]).sum(axis=1))
        references = rng.choice(costs[m:], n, replace=False)
        for space, inside in ((secrets, with_space), (None, without)):
            found = exposure(canary_losses=costs[:m], reference_losses=references, space=space)
            inside.append((found.low <= exact + 1e-9) & (exact <= found.high + 1e-9))
    assert all(covers(one) for one in np.transpose(with_space))
    assert (np.mean(without) < 0.5) == memorised


def test_canaries_with_the_same_references_err_together():
    """Why the claim is for one canary: all of a null's intervals hold far less often."""
    rng = np.random.default_rng(2)
    exact = np.log2(1000) - np.log2(np.arange(1, 1001))
    hold = []
    for _ in range(200):
        drawn = rng.integers(1, 1001, 50)
        found = exposure(canary_losses=np.arange(1, 1001), reference_losses=drawn)
        hold.append((found.low <= exact + 1e-9) & (exact <= found.high + 1e-9))
    assert np.mean(hold) > 0.95
    assert np.mean(np.all(hold, axis=1)) < 0.9


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"canary_losses": [1.0, np.nan]}, "canary_losses holds 1 value.* NaN or -inf"),
        ({"reference_losses": [np.nan, -np.inf]}, "reference_losses holds 2 value"),
        ({"canary_losses": []}, "canary_losses is empty"),
        ({"reference_losses": []}, "reference_losses is empty"),
        ({"reference_losses": [[1.0]]}, r"reference_losses has shape \(1, 1\)"),
        ({"canary_losses": ["a"]}, "canary_losses is not an array of numbers"),
        ({"canary_losses": [[1.0], [1.0, 2.0]]}, "canary_losses is not an array"),
        ({"confidence": 1.0}, "confidence=1.0 is not between 0 and 1"),
        ({"space": 1}, "space=1 cannot hold 2 canaries"),
        ({"space": 10.0}, "space=10.0 is not a whole number"),
        ({"space": True}, "space=True is not a whole number"),
        (
            {"canary_losses": [], "reference_losses": [np.nan], "space": 0, "confidence": 2},
            "canary_losses .*; reference_losses .*; space=0 .*; confidence=2",
        ),
    ],
)
def test_faulty_input_is_refused(given, words):
    good = {"canary_losses": [1.0, 2.0], "reference_losses": [1.0, 2.0]}
    with pytest.raises(InvalidInput, match=words):
        exposure(**(good | given))


@pytest.mark.parametrize("bits", [1.0, 3.3, 8.0, 11.0])
def test_so_many_references_show_an_exposure_and_one_fewer_does_not(bits):
    needed = references_to_show(bits)
    lows = [
        exposure(canary_losses=[0.0], reference_losses=np.ones(n)).low[0]
        for n in (needed - 1, needed)
    ]
    assert lows[0] < bits <= lows[1]


@pytest.mark.parametrize("wrong", [{"bits": 0.0}, {"bits": math.inf}, {"confidence": 1.0}])
def test_references_for_no_exposure_are_refused(wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        references_to_show(**({"bits": 5.0} | wrong))


def test_lower_ends_of_saturated_canaries_hold_together():
    """Canaries of all exposures share their references; no saturated one of them may lie."""
    exact = np.linspace(3.0, 9.0, 25)
    rng, runs, n = np.random.default_rng(0), 2000, 100
    wrong = 0
    for _ in range(runs):
        found = exposure(canary_losses=2.0**-exact, reference_losses=rng.uniform(size=n))
        wrong += bool((found.saturated & (found.low > exact)).any())
    assert 0 < wrong < 0.025 * runs + 4 * math.sqrt(0.025 * runs)
