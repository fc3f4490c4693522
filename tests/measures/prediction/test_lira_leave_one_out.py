import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import lira, lira_leave_one_out


def toy(seed=0, models=9, n=12, effect=2.0):
    rng = np.random.default_rng(seed)
    seen = rng.random((models, n)).argsort(axis=0) < rng.integers(3, models - 2, size=n)
    return rng.normal(size=(models, n)) * rng.gamma(3.0, size=n) + effect * seen, seen


def by_hand(scores, seen, variance="per_example"):
    out = []
    for model in range(len(scores)):
        others = np.arange(len(scores)) != model
        fitted = lira(
            target=scores[model], shadow=scores[others], seen=seen[others], variance=variance
        )
        out.append(fitted.scores)
    return np.array(out)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 9999),
    models=st.integers(6, 14),
    variance=st.sampled_from(["per_example", "pooled"]),
)
def test_every_row_equals_fitting_to_the_others(seed, models, variance):
    scores, seen = toy(seed, models)
    found = lira_leave_one_out(scores=scores, seen=seen, variance=variance)
    expected = by_hand(scores, seen, variance)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(found.success_rate, np.mean((expected > 0) == seen, axis=0))
    np.testing.assert_array_equal(found.n_seen, seen.sum(axis=0))
    assert found.variance == variance
    assert found.convention == f"online, mean, {variance} variance, ddof 1, target left out"


@pytest.mark.parametrize("variance", ["per_example", "pooled"])
def test_a_model_far_from_its_side_loses_no_digits(variance):
    """The squares left without it are a millionth of those with it."""
    scores, seen = toy(1, 64, 500)
    scores[3] += 1e5
    scores[40, ::2] -= 1e7
    found = lira_leave_one_out(scores=scores, seen=seen, variance=variance)
    np.testing.assert_allclose(found.scores, by_hand(scores, seen, variance), rtol=1e-10)


def test_many_examples_come_in_pieces():
    scores, seen = toy(2, 16, 5000)
    found = lira_leave_one_out(scores=scores, seen=seen, variance="per_example")
    few = lira_leave_one_out(
        scores=scores[:, 4000:4010], seen=seen[:, 4000:4010], variance="per_example"
    )
    np.testing.assert_array_equal(found.scores[:, 4000:4010], few.scores)


def test_scale_and_shift_change_nothing():
    scores, seen = toy(3)
    rng = np.random.default_rng(0)
    found = lira_leave_one_out(scores=scores, seen=seen, variance="per_example")
    moved = rng.gamma(2.0, size=12) * scores + rng.normal(size=12)
    again = lira_leave_one_out(scores=moved, seen=seen, variance="per_example")
    np.testing.assert_allclose(again.scores, found.scores, rtol=1e-8, atol=1e-9)


def test_success_is_chance_without_a_leak_and_high_with_one():
    rng = np.random.default_rng(4)
    seen = rng.random((32, 800)) < 0.5
    noise = rng.normal(size=(32, 800))
    nothing = lira_leave_one_out(
        scores=noise, seen=seen, variance="per_example"
    ).success_rate.mean()
    assert abs(nothing - 0.5) < 0.02
    assert (
        lira_leave_one_out(
            scores=noise + 4.0 * seen, seen=seen, variance="per_example"
        ).success_rate.mean()
        > 0.95
    )


def test_faults():
    scores, seen = toy()
    with pytest.raises(
        InvalidInput, match=r"variance='x' .*scores holds 1 value.*; seen holds values"
    ):
        lira_leave_one_out(scores=[[np.inf]], seen=[[2]], variance="x")
    with pytest.raises(InvalidInput, match="seen has shape"):
        lira_leave_one_out(scores=scores, seen=seen[:-1], variance="per_example")
    seen[:, 5] = np.arange(9) < 2
    with pytest.raises(NotEnoughEvidence, match=r"fewer than 3 of the 9 models \(example 5: 2\)"):
        lira_leave_one_out(scores=scores, seen=seen, variance="per_example")
    scores, seen = toy()
    alone = np.flatnonzero(seen[:, 1])
    scores[alone, 1] = 0.7
    scores[alone[0], 1] = 5.0  # alike only without this one
    with pytest.raises(NotEnoughEvidence, match=r"1 example\(s\) have the same score"):
        lira_leave_one_out(scores=scores, seen=seen, variance="per_example")
    assert np.isfinite(lira_leave_one_out(scores=scores, seen=seen, variance="pooled").scores).all()
    with pytest.raises(NotEnoughEvidence, match="a pooled variance needs models that differ"):
        lira_leave_one_out(scores=np.ones((9, 12)), seen=seen, variance="pooled")


def halves(rng, models, n=6):
    return rng.normal(size=(models, n)), rng.random((models, n)).argsort(axis=0) < models // 2


def test_the_default_is_that_of_lira_with_the_others():
    rng = np.random.default_rng(5)
    for models, expected in ((18, "pooled"), (64, "pooled"), (66, "per_example")):
        scores, seen = halves(rng, models)
        found = lira_leave_one_out(scores=scores, seen=seen)
        np.testing.assert_allclose(found.scores, by_hand(scores, seen, "auto"), rtol=1e-9)
        assert found.variance == expected


def test_the_default_refuses_fewer_than_8_other_models_a_side():
    scores, seen = halves(np.random.default_rng(6), 16)
    with pytest.raises(
        NotEnoughEvidence, match=r"^6 example\(s\) .*8 saw it, 8 did not\); it takes 9 and 9"
    ):
        lira_leave_one_out(scores=scores, seen=seen)
    assert np.isfinite(lira_leave_one_out(scores=scores, seen=seen, variance="pooled").scores).all()
