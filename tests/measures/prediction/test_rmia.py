import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import rmia


def toy(seed=0, n=20, z=15, models=4, rough=False):
    rng = np.random.default_rng(seed)
    draw = (lambda *shape: rng.integers(0, 5, shape) / 4.0) if rough else (lambda *s: rng.random(s))
    return {
        "target": draw(n),
        "reference": draw(models, n),
        "other_target": draw(z),
        "other_reference": draw(models, z),
    }


def by_hand(given, gamma, a, seen=None):
    """Every pair, one at a time."""

    def typical(table, i):
        if seen is None or table is given["other_reference"]:
            return (1 + a) / 2 * np.mean(table[:, i]) + (1 - a) / 2
        return (np.mean(table[seen[:, i], i]) + np.mean(table[~seen[:, i], i])) / 2

    out = []
    for i, p in enumerate(given["target"]):
        ratio = p / typical(given["reference"], i)
        others = [
            q / typical(given["other_reference"], j) for j, q in enumerate(given["other_target"])
        ]
        slack = 4 * np.finfo(float).eps * (len(given["reference"]) + 4)
        out.append(np.mean([ratio >= gamma * other * (1 - slack) for other in others]))
    return out


@settings(max_examples=80)
@given(
    seed=st.integers(0, 9999),
    rough=st.booleans(),
    gamma=st.sampled_from([0.5, 1.0, 2.0]),
    a=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_rmia_agrees_with_counting_over_pairs(seed, rough, gamma, a):
    given = toy(seed, models=1 if rough else 4, rough=rough)
    found = rmia(**given, gamma=gamma, a=a)
    np.testing.assert_array_equal(found.scores, by_hand(given, gamma, a))
    assert (found.mode, found.n_references, found.n_others) == (
        "offline",
        len(given["reference"]),
        15,
    )
    if gamma == 1.0 and np.all(found.other_ratios > 0):
        dense = np.mean(found.ratios[:, None] / found.other_ratios >= 1.0 - 1e-14, axis=1)
        np.testing.assert_array_equal(found.scores, dense)


@settings(max_examples=40)
@given(seed=st.integers(0, 9999))
def test_online_takes_the_mean_of_both_sides(seed):
    given = toy(seed, models=6)
    seen = np.random.default_rng(seed).random((6, 20)).argsort(axis=0) < 2
    found = rmia(**given, seen=seen)
    np.testing.assert_allclose(found.scores, by_hand(given, 1.0, 0.3, seen), atol=1e-12)
    assert found.mode == "online"
    both = rmia(**given, seen=seen, other_seen=seen[:, :15])
    table, mask = given["other_reference"], seen[:, :15]
    middle = [(table[mask[:, j], j].mean() + table[~mask[:, j], j].mean()) / 2 for j in range(15)]
    np.testing.assert_allclose(both.other_ratios, given["other_target"] / middle)


def test_a_model_that_gives_everything_what_is_typical_ties_with_all():
    alike = {"target": [0.5] * 3, "reference": [[0.5] * 3]}
    others = {"other_target": [0.5] * 4, "other_reference": [[0.5] * 4]}
    assert rmia(**alike, **others).scores.tolist() == [1.0] * 3
    assert rmia(**alike, **others, gamma=1.01).scores.tolist() == [0.0] * 3


PROBABILITIES = st.floats(1e-6, 1.0)


@given(
    table=st.integers(1, 40).flatmap(
        lambda models: st.lists(
            st.lists(PROBABILITIES, min_size=models, max_size=models), min_size=2, max_size=6
        )
    ),
    a=st.floats(0.0, 1.0),
    layout=st.sampled_from("CF"),
)
def test_a_target_that_is_typical_scores_one_whatever_is_rounded(table, a, layout):
    """p(x) by the formula, in whichever order and layout its sum is taken."""
    reference = np.array(table).T
    target = (1 + a) / 2 * np.array([sum(row) / len(row) for row in table]) + (1 - a) / 2
    target = np.minimum(target, 1.0)
    turned = np.array(reference[::-1], order=layout)
    given = {"target": target, "reference": reference, "other_target": target}
    assert rmia(**given, other_reference=turned, a=a).scores.tolist() == [1.0] * len(table)


@given(value=PROBABILITIES, models=st.integers(1, 60), other=PROBABILITIES)
def test_equal_models_tie_however_many_they_are(value, models, other):
    """The mean of m equal numbers is not always that number, to the last digit."""
    given = {"target": [value], "reference": [[value]] * models, "other_target": [other]}
    assert rmia(**given, other_reference=[[other]] * models, a=1.0).scores.tolist() == [1.0]


def test_a_ratio_that_is_really_lower_does_not_tie():
    given = {"reference": [[0.5]] * 4, "other_target": [0.5], "other_reference": [[0.5]] * 4}
    assert rmia(target=[0.5 * (1 - 1e-13)], **given).scores.tolist() == [0.0]


def test_a_larger_gamma_never_raises_a_score_and_zero_probabilities_are_beaten():
    given = toy(1)
    low, high = (rmia(**given, gamma=gamma).scores for gamma in (1.0, 1.7))
    assert np.all(high <= low)
    given["other_target"] = np.zeros(15)
    assert rmia(**given).scores.tolist() == [1.0] * 20
    given["other_target"] = np.ones(15)
    assert rmia(**given, gamma=1e308).scores.tolist() == [0.0] * 20


def test_seen_examples_score_higher():
    rng = np.random.default_rng(0)
    n, z = 300, 500
    truth = rng.random(n) < 0.5
    easy, other_easy = rng.beta(5, 3, n), rng.beta(5, 3, z)
    given = {
        "target": np.clip(easy + 0.15 * truth, 0, 1),
        "reference": np.clip(easy + 0.05 * rng.normal(size=(2, n)), 0, 1),
        "other_target": other_easy,
        "other_reference": np.clip(other_easy + 0.05 * rng.normal(size=(2, z)), 0, 1),
    }
    found = rmia(**given)
    assert found.scores[truth].mean() > found.scores[~truth].mean() + 0.2


def test_faults():
    given = toy()
    with pytest.raises(InvalidInput, match=r"gamma=0 .*; a=2 .*; target holds values that are no"):
        rmia(**{**given, "target": [2.0] * 20}, gamma=0, a=2)
    with pytest.raises(InvalidInput, match=r"other_target has 3 entries for 15 of other_reference"):
        rmia(**{**given, "other_target": [0.5] * 3})
    with pytest.raises(InvalidInput, match="reference has 2 models and other_reference 4"):
        rmia(**{**given, "reference": given["reference"][:2]})
    with pytest.raises(InvalidInput, match="seen has shape"):
        rmia(**given, seen=np.zeros((2, 20)))
    with pytest.raises(NotEnoughEvidence, match="seen by fewer than 1"):
        rmia(**given, seen=np.zeros((4, 20)))
    with pytest.raises(InvalidInput, match=r"probability 0 under all models \(example 0\)"):
        rmia(**{**given, "reference": np.zeros((4, 20))}, a=1.0)
    with pytest.raises(InvalidInput, match="NaN"):
        rmia(**{**given, "target": [np.nan] * 20})
