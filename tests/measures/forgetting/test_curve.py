import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures import (
    SUCCESSES,
    auc,
    balanced_accuracy,
    forgetting_curve,
    precision_at_fpr,
    tpr_at_fpr,
)


def made(shifts=(3.0, 1.0, 0.0), trials=4, n_seen=40, n_unseen=30, seed=0, **settings):
    rng = np.random.default_rng(seed)
    shift = np.asarray(shifts)[:, None, None]
    given = {
        "seen_scores": shift + rng.normal(size=(len(shifts), trials, n_seen)),
        "unseen_scores": rng.normal(size=(len(shifts), trials, n_unseen)),
        "lags": np.arange(len(shifts)) * 10,
        "draws": 50,
        "rng": np.random.default_rng(1),
    }
    return given | settings


@pytest.mark.parametrize("success", SUCCESSES)
def test_the_value_is_the_mean_of_the_trials(success):
    given = made(success=success)
    curve = forgetting_curve(**given)
    for lag in range(3):
        for trial in range(4):
            sides = given["seen_scores"][lag, trial], given["unseen_scores"][lag, trial]
            alone = {
                "auc": lambda *s, **k: auc(*s, **k),
                "accuracy": lambda *s, **k: balanced_accuracy(*s, **k),
                "tpr": lambda *s, **k: tpr_at_fpr(*s, fpr=0.1, **k),
                "precision": lambda *s, **k: precision_at_fpr(*s, fpr=0.1, **k),
            }[success](*sides, rng=np.random.default_rng(0), draws=20)
            assert curve.per_trial[lag, trial] == alone.value
    np.testing.assert_allclose(curve.value, curve.per_trial.mean(axis=1))
    assert np.all((curve.low <= curve.value) & (curve.value <= curve.high))
    assert np.all((curve.low >= 0) & (curve.high <= 1))
    assert curve.chance == (0.1 if success == "tpr" else 0.5)
    assert (curve.trials, curve.n_seen, curve.n_unseen, curve.draws) == (4, 40, 30, 50)
    assert curve.fpr == (0.1 if success in ("tpr", "precision") else None)


@pytest.mark.parametrize("success", SUCCESSES)
def test_what_may_not_matter_does_not(success):
    given = made(success=success)
    curve = forgetting_curve(**given)
    again = forgetting_curve(**given | {"rng": np.random.default_rng(1)})
    np.testing.assert_array_equal(curve.low, again.low)
    np.testing.assert_array_equal(curve.high, again.high)

    shuffled = np.random.default_rng(5).permuted(given["seen_scores"], axis=2)
    other = forgetting_curve(**given | {"seen_scores": shuffled})
    np.testing.assert_array_equal(curve.value, other.value)

    stretched = {
        side: np.stack([np.exp(given[side][0]), given[side][1] ** 3, given[side][2] * 7 - 2])
        for side in ("seen_scores", "unseen_scores")
    }
    other = forgetting_curve(**given | stretched | {"rng": np.random.default_rng(1)})
    for field in ("value", "low", "high"):
        np.testing.assert_array_equal(getattr(curve, field), getattr(other, field))


def test_all_lags_share_the_draw():
    given = made(shifts=(1.0, 1.0))
    for side in ("seen_scores", "unseen_scores"):
        given[side][1] = given[side][0]
    for success in SUCCESSES:
        curve = forgetting_curve(**given | {"success": success})
        assert curve.low[0] == curve.low[1]
        assert curve.high[0] == curve.high[1]


@pytest.mark.parametrize("success", ["auc", "accuracy"])
def test_a_null_is_at_chance_on_average(success):
    curve = forgetting_curve(**made(shifts=(0.0,), trials=400, success=success, draws=20))
    assert abs(curve.value[0] - 0.5) < 5 * curve.per_trial.std() / 20
    assert curve.low[0] < 0.5 < curve.high[0]


@pytest.mark.parametrize("success", SUCCESSES)
def test_a_planted_leak_stands_above_chance_and_a_reversed_one_below(success):
    given = made(success=success)
    curve = forgetting_curve(**given)
    assert curve.low[0] > curve.chance
    assert curve.value[0] > curve.value[1] > curve.value[2]
    flipped = {side: -given[side] for side in ("seen_scores", "unseen_scores")}
    assert forgetting_curve(**given | flipped).value[0] < curve.chance


def test_one_trial_says_what_it_cannot_carry():
    assert "no between-model error" in forgetting_curve(**made(trials=1)).method
    assert "Student t over 4 trials" in forgetting_curve(**made()).method


@pytest.mark.parametrize("success", SUCCESSES)
@pytest.mark.parametrize("trials", [1, 2, 3, 8])
def test_saturated_trials_keep_an_honest_width(success, trials):
    curve = forgetting_curve(**made(shifts=(100.0,), trials=trials, n_seen=32, success=success))
    assert 1e-4 < curve.high[0] - curve.low[0] < 0.2


@pytest.mark.parametrize("success", SUCCESSES)
@pytest.mark.parametrize("trials", [1, 3])
def test_scores_that_are_all_alike_are_measured_without_a_warning(success, trials):
    given = made(success=success, trials=trials)
    given |= {side: np.zeros_like(given[side]) for side in ("seen_scores", "unseen_scores")}
    curve = forgetting_curve(**given)
    assert np.all((curve.low <= curve.value) & (curve.value <= curve.high))
    assert curve.low[0] < curve.chance < curve.high[0]


def curve_of(lags, value):
    curve = forgetting_curve(**made(shifts=(0.0,) * len(lags), lags=lags))
    return dataclasses.replace(curve, value=np.asarray(value, dtype=float))


@pytest.mark.parametrize(
    ("lags", "value", "steps"),
    [
        ([0, 10, 20], [0.9, 0.7, 0.5], 17.5),
        ([0, 10, 20], [0.9, 0.55, 0.5], 10.0),
        ([0, 10, 20], [0.9, 0.5, 0.6], None),
        ([0, 10, 20, 40], [0.9, 0.5, 0.65, 0.45], 30.0),
        ([5, 10, 20], [0.5, 0.55, 0.4], 5.0),
        ([-20, -10, 0, 10], [0.9, 0.9, 0.5, 0.5], 0.0),
        ([-10, 0, 10], [0.5, 0.65, 0.45], 5.0),
    ],
)
def test_steps_to_is_the_last_crossing(lags, value, steps):
    found = curve_of(lags, value).steps_to(0.55)
    assert found is None if steps is None else found == pytest.approx(steps)


@settings(max_examples=60)
@given(value=st.lists(st.floats(0.01, 0.99), min_size=2, max_size=8), alpha=st.floats(0.02, 0.98))
def test_after_steps_to_the_line_never_rises_above_alpha(value, alpha):
    lags = np.arange(len(value)) * 3.0
    steps = curve_of(lags, value).steps_to(alpha)
    if steps is None:
        assert value[-1] > alpha
        return
    later = np.linspace(steps, lags[-1], 50)
    assert np.all(np.interp(later, lags, value) <= alpha + 1e-9)
    if max(value) > alpha:
        assert np.interp(steps, lags, value) == pytest.approx(alpha)


def test_steps_to_needs_a_share_and_a_lag_after_planting():
    with pytest.raises(InvalidInput, match="alpha=2"):
        curve_of([0, 1], [0.5, 0.5]).steps_to(2)
    with pytest.raises(NotEnoughEvidence, match="before planting"):
        curve_of([-2, -1], [0.5, 0.5]).steps_to(0.6)


def test_all_faults_are_listed_at_once():
    with pytest.raises(InvalidInput) as caught:
        forgetting_curve(
            seen_scores=np.zeros((2, 3)),
            unseen_scores=np.full((2, 3, 4), np.nan),
            lags=[3, 1],
            success="recall",
            fpr=0,
            confidence=1.5,
            rng=42,
            draws=0,
        )
    for part in (
        "seen_scores has shape (2, 3), not 3",
        "unseen_scores holds 24 value(s)",
        "lags are not strictly increasing",
        "success='recall' is not one of accuracy, precision, tpr, auc",
        "fpr=0 ",
        "confidence=1.5 ",
        "rng=42 ",
        "draws=0 ",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lags": [0, 1]}, "lags has 2 entries for 3"),
        ({"lags": [0, 1, 1]}, "strictly increasing"),
        ({"unseen_scores": np.zeros((3, 5, 30))}, "4 trials, unseen_scores 3 and 5"),
        ({"unseen_scores": np.zeros((2, 4, 30))}, "unseen_scores 2 and 4"),
        ({"seen_scores": np.zeros((3, 4, 0))}, "seen_scores is empty"),
        ({"seen_scores": np.zeros((3, 0, 9)), "unseen_scores": np.zeros((3, 0, 9))}, "is empty"),
        ({"seen_scores": np.full((3, 4, 9), np.inf)}, "seen_scores holds 108"),
        ({"seen_scores": [[[1.0]], [[1.0, 2.0]]]}, "seen_scores is not an array of numbers"),
        ({"fpr": True}, "fpr=True is not a number"),
    ],
)
def test_faulty_input_is_refused(change, words):
    with pytest.raises(InvalidInput, match=words):
        forgetting_curve(**made() | change)


@pytest.mark.parametrize("success", ["precision", "tpr"])
def test_too_few_unseen_scores_say_how_many_it_takes(success):
    with pytest.raises(NotEnoughEvidence, match="at least 20"):
        forgetting_curve(**made(n_unseen=19, fpr=0.05, success=success))
    assert forgetting_curve(**made(n_unseen=19, fpr=0.05, success="auc")).n_unseen == 19


def test_scores_without_an_axis_for_trials_are_refused_with_the_shape_wanted():
    with pytest.raises(
        InvalidInput, match=r"seen_scores has shape \(2, 40\).*the shape \(lags, trials, n_seen\)"
    ):
        forgetting_curve(
            seen_scores=np.zeros((2, 40)),
            unseen_scores=np.zeros((2, 40)),
            lags=[1, 2],
            rng=np.random.default_rng(0),
        )
