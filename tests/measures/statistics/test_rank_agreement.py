import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import rank_agreement


@settings(max_examples=100)
@given(scores=st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=10, max_size=40))
def test_the_value_is_scipys(scores):
    first, second = np.array(scores, dtype=float).T
    assume(np.ptp(first) > 0 and np.ptp(second) > 0)
    found = rank_agreement(first=first, second=second)
    np.testing.assert_allclose(found.value, stats.spearmanr(first, second).statistic, atol=1e-12)
    assert -1.0 <= found.low <= found.value <= found.high <= 1.0
    assert found.low < found.high
    swapped = rank_agreement(first=second, second=first)
    np.testing.assert_allclose([swapped.low, swapped.high], [found.low, found.high], atol=1e-12)
    mapped = rank_agreement(first=np.exp(first), second=second**3)
    np.testing.assert_allclose([mapped.low, mapped.high], [found.low, found.high], atol=1e-12)
    turned = rank_agreement(first=-first, second=second)
    np.testing.assert_allclose([turned.high, turned.low], [-found.low, -found.high], atol=1e-12)


def normal(rng, n, rho):
    first = rng.normal(size=n)
    return first, rho * first + np.sqrt(1 - rho**2) * rng.normal(size=n)


def one_in_ten_agrees(rng, n, _):
    """Most samples are noise; a few are high in both: memorised ones."""
    both = rng.random(n) < 0.1
    return rng.normal(size=n) + 4 * both, rng.normal(size=n) + 4 * both


def spread_grows(rng, n, _):
    first = rng.normal(size=n)
    return first, first + np.exp(first) * rng.normal(size=n)


def tied(rng, n, rho):
    first, second = normal(rng, n, rho)
    return np.round(first), np.round(second)


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize(
    ("law", "rho"),
    [(normal, 0.0), (normal, 0.5), (normal, 0.95), (one_in_ten_agrees, 0), (spread_grows, 0),
     (tied, 0.5)],
)  # fmt: skip
def test_intervals_cover(law, rho, n, covers):
    rng = np.random.default_rng(3)
    many = law(rng, 400_000, rho)
    truth = stats.spearmanr(*many).statistic
    inside = []
    for _ in range(500):
        first, second = law(rng, n, rho)
        found = rank_agreement(first=first, second=second)
        inside.append(found.low <= truth <= found.high)
    assert covers(inside), np.mean(inside)


def test_perfect_agreement_keeps_a_width():
    found = rank_agreement(first=np.arange(30.0), second=np.arange(30.0))
    assert found.value == found.high == 1.0
    assert 0.9 < found.low < 1.0


def test_faults():
    with pytest.raises(InvalidInput, match=r"confidence=0 .*; first holds 1"):
        rank_agreement(first=[np.nan], second=[1.0], confidence=0)
    with pytest.raises(InvalidInput, match=r"first has 3 entries and second 2; first is the same"):
        rank_agreement(first=[1.0] * 3, second=[1.0, 2.0])
    with pytest.raises(NotEnoughEvidence, match="9 samples"):
        rank_agreement(first=np.arange(9.0), second=np.arange(9.0))
