from decimal import Decimal, getcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput
from remnant.measures import leak_probability, queries_to_leak

LOGS = st.one_of(st.floats(-690, -1e-9), st.floats(-5, -1e-12), st.floats(-1e-3, -1e-300))
SHARES = st.floats(1e-6, 1 - 1e-6)


def log_miss(log_probability):
    """log(1 - p), with digits enough for a p of 1e-300."""
    getcontext().prec = 340
    return (1 - Decimal(log_probability).exp()).ln()


@settings(max_examples=25)
@given(log_probability=LOGS, confidence=SHARES)
def test_queries_agree_with_long_arithmetic(log_probability, confidence):
    miss = log_miss(log_probability)
    exact = (1 - Decimal(confidence)).ln() / miss
    found = queries_to_leak(log_probability=log_probability, confidence=confidence)
    expected = max(float(exact.to_integral_value("ROUND_CEILING")), 1.0)
    assert found.queries[0] == pytest.approx(expected, rel=1e-12)
    assert found.log2_queries[0] == pytest.approx(np.log2(expected), abs=1e-9)


@settings(max_examples=25)
@given(log_probability=LOGS, queries=st.floats(1, 1e12))
def test_leaks_agree_with_long_arithmetic(log_probability, queries):
    miss = log_miss(log_probability)
    exact = 1 - (Decimal(queries) * miss).exp()
    found = leak_probability(log_probability=log_probability, queries=queries)
    assert found[0] == pytest.approx(float(exact), rel=1e-11)


@settings(max_examples=300)
@given(log_probability=LOGS, confidence=SHARES)
def test_the_answer_is_the_smallest_that_reaches_the_confidence(log_probability, confidence):
    n = queries_to_leak(log_probability=log_probability, confidence=confidence).queries
    assert n[0] == np.floor(n[0]) >= 1
    reached = leak_probability(log_probability=log_probability, queries=[n[0], n[0] - 1])
    assert reached[0] >= confidence * (1 - 1e-10)
    if 1 < n[0] < 2**40:
        assert reached[1] < confidence * (1 + 1e-10)


def test_whole_answers_survive_rounding():
    powers = np.arange(1, 30)
    for power in powers:
        found = queries_to_leak(log_probability=np.log(0.5), confidence=1 - 0.5**power)
        assert found.queries.tolist() == [power]


def test_the_ends_of_the_scale():
    found = queries_to_leak(log_probability=[0.0, -1e4, -np.inf], confidence=0.5)
    assert found.queries.tolist() == [1.0, np.inf, np.inf]
    expected = 1e4 / np.log(2) + np.log2(np.log(2))
    np.testing.assert_allclose(found.log2_queries, [0.0, expected, np.inf])
    leaked = leak_probability(
        log_probability=[0.0, 0.0, -np.inf, -np.inf, -1.0, -1.0],
        queries=[0, 1, 0, np.inf, 0, np.inf],
    )
    assert leaked.tolist() == [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]


def test_shapes_broadcast():
    logs = np.log([[0.1], [0.2]])
    leaked = leak_probability(log_probability=logs, queries=[1, 2, 3])
    np.testing.assert_allclose(leaked, 1 - (1 - np.exp(logs)) ** [1, 2, 3])
    assert np.all(np.diff(leaked, axis=0) > 0)
    assert np.all(np.diff(leaked, axis=1) > 0)


@pytest.mark.parametrize(
    ("logs", "confidence", "words"),
    [
        (0.1, 0.5, "log_probability=0.1 is the logarithm of more than 1"),
        (np.nan, 0.5, "log_probability holds 1 NaN"),
        ([], 0.5, "log_probability is empty"),
        ("x", 1.5, "log_probability is not .*; confidence=1.5"),
    ],
)
def test_queries_refuse_faulty_input(logs, confidence, words):
    with pytest.raises(InvalidInput, match=words):
        queries_to_leak(log_probability=logs, confidence=confidence)


@pytest.mark.parametrize(
    ("logs", "queries", "words"),
    [
        (-1.0, -1, "queries=-1.0 is negative"),
        (-1.0, np.nan, "queries holds 1 NaN"),
        ([-1.0, -1.0], [1, 2, 3], r"shape \(2,\) and queries \(3,\)"),
    ],
)
def test_leaks_refuse_faulty_input(logs, queries, words):
    with pytest.raises(InvalidInput, match=words):
        leak_probability(log_probability=logs, queries=queries)
