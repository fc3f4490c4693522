import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import exposure, pooled_exposure_test


def p_values(draw, audits):
    return np.array([pooled_exposure_test(draw()).p_value for _ in range(audits)])


@settings(max_examples=50)
@given(bits=st.lists(st.floats(0, 40), min_size=1, max_size=60))
def test_the_p_value_is_the_tail_of_a_gamma_law(bits):
    found = pooled_exposure_test(bits)
    expected = stats.gamma.sf(np.log(2) * sum(bits), len(bits))
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(found.mean_bits, np.mean(bits), atol=1e-12)
    assert found.n_canaries == len(bits)
    assert round(found.null_mean_bits, 4) == 1.4427


def test_exact_exposure_of_unplanted_canaries_has_uniform_p_values():
    rng = np.random.default_rng(0)
    space = 10**9
    found = p_values(lambda: np.log2(space) - np.log2(rng.integers(1, space + 1, 8)), 2000)
    assert stats.kstest(found, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("n", "m"), [(10, 1), (100, 5), (100, 20), (1000, 20)])
def test_the_size_is_kept_when_each_canary_has_its_own_references(n, m):
    """Uniform ranks, each canary among ``n`` references of its own: 2.8 to 4.3 % at 5 %."""
    rng = np.random.default_rng(n + m)
    found = p_values(lambda: np.log2(n + 1) - np.log2(1 + rng.integers(0, n + 1, m)), 8000)
    for level in (0.01, 0.05, 0.5):
        assert np.sum(found <= level) <= stats.binom.ppf(1 - 1e-4, 8000, level)
    if n >= 100:
        assert 0.02 < np.mean(found <= 0.05) < 0.052


def shared_size(n, m, audits):
    rng = np.random.default_rng(n + m)

    def draw():
        sides = {"canary_losses": rng.random(m), "reference_losses": rng.random(n)}
        return exposure(**sides).bits

    return np.mean(p_values(draw, audits) <= 0.05)


def test_shared_references_must_be_many_more_than_the_canaries():
    assert shared_size(n=1000, m=1000, audits=400) > 0.07
    assert shared_size(n=20 * 40, m=40, audits=1000) < stats.binom.ppf(1 - 1e-4, 1000, 0.054) / 1000


def test_memorised_canaries_are_found():
    assert pooled_exposure_test(np.full(20, 3.0)).p_value < 1e-4
    assert pooled_exposure_test(np.full(20, 1.0)).p_value > 0.5
    assert pooled_exposure_test(12.0).p_value == pytest.approx(2.0**-12)


def test_too_few_shared_references_say_how_many_it_takes():
    assert pooled_exposure_test([1.0, 2.0], shared_references=40).n_canaries == 2
    with pytest.raises(NotEnoughEvidence, match=r"shared_references=39 .* 2 canaries .* least 40"):
        pooled_exposure_test([1.0, 2.0], shared_references=39)


@pytest.mark.parametrize(
    ("bits", "shared", "words"),
    [
        ([], None, "bits is empty"),
        ([np.nan], None, "bits holds 1 value.* NaN"),
        ([np.inf], None, "bits holds 1 value"),
        ([-0.1, 1.0], None, "bits holds 1 negative"),
        ([[1.0]], None, r"bits has shape \(1, 1\)"),
        ([-1.0], 0, "negative value.*; shared_references=0 is not a positive"),
        ([1.0], 2.5, "shared_references=2.5 is not"),
        ([1.0], True, "shared_references=True is not"),
    ],
)
def test_faulty_input_is_refused(bits, shared, words):
    with pytest.raises(InvalidInput, match=words):
        pooled_exposure_test(bits, shared_references=shared)
