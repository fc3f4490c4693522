import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import adjusted_p_values, feature_score
from remnant.measures.features.feature_score import member_scores
from remnant.measures.statistics.holm import holm


def score(unique, controls, nulls, **more):
    settings = {"bound": 16.2, "convention": "made up", "rng": np.random.default_rng(0)}
    return feature_score(unique=unique, controls=controls, null_means=nulls, **{**settings, **more})


@settings(max_examples=50)
@given(seed=st.integers(0, 9999), n=st.integers(3, 40), nulls=st.integers(1, 60))
def test_value_rank_and_t_test_are_their_definitions(seed, n, nulls):
    rng = np.random.default_rng(seed)
    unique, controls = rng.exponential(size=(2, n))
    means = rng.choice([unique.mean(), 0.5, 1.0, 1.5], nulls)
    found = score(unique, controls, means, draws=20)
    assert found.value == pytest.approx(unique.mean() - controls.mean())
    np.testing.assert_allclose(found.per_image, unique - controls)
    np.testing.assert_allclose(found.null_values, means - controls.mean())
    beaten = sum(1 for mean in means if mean >= unique.mean())
    assert found.p_value == pytest.approx((1 + beaten) / (1 + nulls))
    t = stats.ttest_rel(unique, controls, alternative="greater")
    assert found.t_test_p_value == pytest.approx(t.pvalue, rel=1e-9)
    assert found.low <= found.value <= found.high
    assert (found.n_images, found.n_nulls) == (n, nulls)
    assert f"rank among {nulls} patches" in found.method
    assert found.convention == "made up"


@settings(max_examples=40)
@given(
    members=st.integers(1, 4),
    images=st.integers(2, 12),
    nulls=st.integers(1, 9),
    level=st.sampled_from([None, 0.0, 0.25]),
    seed=st.integers(0, 999),
)
def test_members_are_scored_as_one_model_is(members, images, nulls, level, seed):
    rng = np.random.default_rng(seed)
    unique, controls = rng.random((2, members, images)).round(1)
    if level is not None:
        unique, controls = np.full((members, images), level), np.zeros((members, images))
    null_means = rng.choice([0.0, 0.25, 0.5, 1.0], (members, nulls))
    found = member_scores(unique, controls, null_means)
    for member in range(members):
        one = feature_score(
            unique=unique[member],
            controls=controls[member],
            null_means=null_means[member],
            bound=16.2,
            rng=rng,
            convention="",
            draws=20,
        )
        assert found.value[member] == pytest.approx(one.value, abs=1e-12)
        assert found.p_value[member] == one.p_value
        expected = 1.0 if one.t_test_p_value is None else one.t_test_p_value
        assert found.t_test[member] == pytest.approx(expected)


def test_without_controls_nothing_is_subtracted():
    found = score([1.0, 2.0, 3.0], None, [0.5, 2.5])
    assert found.value == 2.0
    np.testing.assert_array_equal(found.null_values, [0.5, 2.5])
    assert found.p_value == pytest.approx(2 / 3)


def test_ties_count_against_the_patch_and_rounding_is_a_tie():
    alike = score(np.full(30, 0.4), np.full(30, 0.1), np.full(99, 0.4 - 1e-8))
    assert alike.p_value == 1.0
    assert alike.t_test_p_value is None
    assert alike.low < alike.value < alike.high
    assert "few carry the score" in alike.method
    assert score(np.full(30, 0.4), np.full(30, 0.1), np.full(99, 0.39)).p_value == 0.01


def test_faults():
    with pytest.raises(InvalidInput, match=r"rng=3 .*; draws=2 .*; confidence=1.*; unique holds 1"):
        score([np.nan, 1.0], [0.0, 0.0], [0.0], rng=3, draws=2, confidence=1)
    with pytest.raises(InvalidInput, match="controls has 3 entries for 2 images"):
        score([0.1, 0.2], [0.0, 0.0, 0.0], [0.0])
    with pytest.raises(InvalidInput, match="unique holds one image"):
        score([0.1], None, [0.0])
    with pytest.raises(InvalidInput, match=r"bound=0.5 is exceeded: an image's difference is 1.5"):
        score([0.1, 1.5], None, [0.0], bound=0.5)


def test_several_canaries_are_held_to_holm_and_to_their_nulls():
    rng = np.random.default_rng(1)
    scores = [score(rng.random(20) + shift, None, rng.random(199)) for shift in (1.0, 0.0, 0.4)]
    found = adjusted_p_values(scores)
    np.testing.assert_allclose(found, holm([one.p_value for one in scores]))
    assert found[0] == pytest.approx(3 / 200)
    assert len(adjusted_p_values([scores[0]] * 10)) == 10
    with pytest.raises(NotEnoughEvidence, match=r"nulls=199 .*11 canaries .*at least 219"):
        adjusted_p_values([scores[0]] * 11)
    assert adjusted_p_values([scores[0]] * 20, alpha=0.1).max() <= 0.1
    with pytest.raises(InvalidInput, match="scores is empty"):
        adjusted_p_values([])
