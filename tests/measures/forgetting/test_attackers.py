"""A claim beside other attackers: what their bounds have to show, and when they show nothing."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import exposure_curve, forgetting_curve
from remnant.measures.forgetting.one_run import one_run_forgetting
from remnant.measures.forgetting.one_run_attackers import TWO_CHECKPOINTS

LAGS = [0, 100, 400]
SHAPE = (3, 8, 60)
FADES = (2.5, 0.8, 0.0)
REVERSED = "that is below chance, so the reversed attack succeeds"
NOT_JUDGED = "Not judged: rival (all scores are one number)."


def noise(seed, shifts=FADES):
    rng = np.random.default_rng(seed)
    seen, unseen = rng.normal(size=(2, *SHAPE))
    return seen + np.array(shifts)[:, None, None], unseen


def curve(seen, unseen, lags=LAGS, **choices):
    return forgetting_curve(
        seen_scores=seen,
        unseen_scores=unseen,
        lags=lags,
        success="auc",
        draws=40,
        rng=np.random.default_rng(1),
        **choices,
    )


@pytest.fixture(scope="module")
def own():
    return curve(*noise(1))


def blank(sides, *places):
    """The same scores, of which some are one number."""
    for side in sides:
        for place in places:
            side[place] = 0.0
    return sides


def copied(sides):
    for side in sides:
        side[:, 1] = side[:, 0]
    return sides


def test_a_reversed_attacker_keeps_a_pass_back(own):
    assert own.verdict(0.6).outcome == "PASS"
    rival = curve(*noise(2, (2.5, 0.8, -1.5)))
    verdict = own.verdict(0.6, others={"rival": rival})
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.claim.startswith("No claim: attack AUC is at most 0.")
    assert verdict.claim.endswith(f" for rival, but {REVERSED}.")
    assert f"for rival, but {REVERSED}." in verdict.sentence
    safe = own.safe_after(0.6, others={"rival": rival})
    assert safe.lag is None
    assert "at lag 400 auc is at most 0." in safe.reason
    assert f" for rival, but {REVERSED}." in safe.reason


def test_each_lag_is_judged_by_what_others_show_there():
    own = curve(*noise(1, (2.5, 0.0, 0.0)), control_at_zero=True)
    rival = curve(*noise(2, (2.5, -1.5, 0.0)))
    assert own.safe_after(0.6).lag == 100
    assert own.verdict(0.6, others={"rival": rival}).outcome == "PASS"
    safe = own.safe_after(0.6, others={"rival": rival})
    assert (safe.lag, safe.tested) == (400, 2)
    assert f"for rival, but {REVERSED}." in safe.reason
    assert own.safe_after(0.6, control=False, others={"rival": rival}).lag == 100


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        (lambda: blank(noise(2), np.s_[2, :, :48]), "pairs of a seen and an unseen score tie"),
        (lambda: blank(noise(2), np.s_[2]), "all scores are one number, seen and unseen"),
        (lambda: blank(noise(2), np.s_[:, 0]), "all scores are one number, seen and unseen"),
        (lambda: [side.clip(-0.5) for side in noise(2)], "tie at the lowest or highest score"),
        (lambda: copied(noise(2)), "they are one training"),
    ],
    ids=["most tie", "one number at the end", "one number in a training", "cut", "copies"],
)
def test_scores_of_others_that_prove_nothing_keep_a_pass_back(own, sides, words):
    rival = curve(*sides())
    assert rival.evidence.upper(0.95)[-1] < 0.6
    verdict = own.verdict(0.6, others={"rival": rival})
    assert verdict.outcome == "INCONCLUSIVE"
    assert "for rival, but " in verdict.claim
    assert words in verdict.claim
    safe = own.safe_after(0.6, others={"rival": rival})
    assert safe.lag is None
    assert words in safe.reason


def test_an_attacker_who_sees_nothing_is_neither_claimed_nor_in_the_way(own):
    blind, usual = curve(*blank(noise(2), np.s_[:])), curve(*noise(3))
    alone = own.verdict(0.6, others={"rival": blind})
    assert alone.outcome == "PASS"
    assert "The same holds" not in alone.claim
    assert alone.claim.endswith(NOT_JUDGED)
    both = own.verdict(0.6, others={"rival": blind, "usual": usual})
    assert "The same holds for usual (at most 0." in both.claim
    assert both.claim.endswith(f"). {NOT_JUDGED}")
    safe = own.safe_after(0.6, others={"rival": blind})
    assert safe.lag == own.safe_after(0.6).lag == 400
    assert NOT_JUDGED in safe.reason


def test_all_that_keeps_a_pass_back_is_named(own):
    others = {"loud": curve(*noise(3, (2.5, 2.5, 2.5))), "odd": curve(*noise(2, (2.5, 0.8, -1.5)))}
    claim = own.verdict(0.6, others=others).claim
    assert "not shown to be within the limit of 0.6 for loud (at most " in claim
    assert f"for odd, but {REVERSED}." in claim


def test_curves_that_end_before_planting_are_refused_beside_others():
    own, rival = (curve(*noise(seed), lags=[-3, -2, -1]) for seed in (1, 2))
    with pytest.raises(InvalidInput, match="before planting"):
        own.safe_after(0.6, others={"rival": rival})


def exposed(gains, seed):
    rng = np.random.default_rng(seed)
    return exposure_curve(
        canary_losses=rng.normal(size=SHAPE) - np.array(gains)[:, None, None],
        reference_losses=rng.normal(size=SHAPE),
        lags=LAGS,
        draws=40,
        rng=rng,
        control_at_zero=True,
    )


def test_reversed_costs_of_another_attacker_expose_nothing_safely():
    own = exposed((4.0, 0.0, 0.0), 1)
    assert own.verdict(3.0).outcome == "PASS"
    rival = exposed((4.0, 0.0, -2.0), 2)
    verdict = own.verdict(3.0, others={"rival": rival})
    assert verdict.outcome == "INCONCLUSIVE"
    assert "mean exposure is at most 0." in verdict.claim
    assert f" for rival, but {REVERSED}." in verdict.claim
    assert own.safe_after(3.0, others={"rival": rival}).lag is None
    middle = exposed((4.0, -2.0, 0.0), 4)
    assert own.safe_after(3.0).lag == 100
    assert own.verdict(3.0, others={"rival": middle}).outcome == "PASS"
    safe = own.safe_after(3.0, others={"rival": middle})
    assert safe.lag == 400
    assert f" for rival, but {REVERSED}." in safe.reason


def test_copied_trainings_of_another_attacker_expose_nothing_safely():
    own, (canaries, references) = exposed((4.0, 0.0, 0.0), 1), copied(noise(2, (-4.0, 0.0, 0.0)))
    rival = exposure_curve(
        canary_losses=canaries,
        reference_losses=references,
        lags=LAGS,
        draws=40,
        rng=np.random.default_rng(1),
    )
    verdict = own.verdict(3.5, others={"rival": rival})
    assert verdict.outcome == "INCONCLUSIVE"
    assert "they are one training" in verdict.claim


def one_run(change):
    """The verdict on a run whose scores before planting, or at the end, were changed."""
    rng, planted = np.random.default_rng(0), np.repeat([False, True], 100)
    scores = rng.normal(size=(4, 200)) + np.array([0.0, 6.0, 2.0, 0.0])[:, None] * planted
    change(scores, planted)
    return one_run_forgetting(
        scores=scores,
        checkpoints=[0, 100, 200, 300],
        last_seen=np.where(planted, 50, -1),
        repeats=np.ones(200),
        success="auc",
        draws=40,
        rng=rng,
    ).verdict(0.7)


def test_one_run_is_judged_by_what_two_checkpoints_show():
    def higher_before(scores, planted):
        scores[0] += 6.0 * planted

    def mostly_as_before(scores, planted):
        scores[-1, 40:100], scores[-1, 110:] = scores[0, 40:100], scores[0, 110:]

    def as_before(scores, planted):
        scores[-1] = scores[0]

    same = f"The same holds for {TWO_CHECKPOINTS} (at most 0."
    usual = one_run(lambda scores, planted: None)
    assert usual.outcome == "PASS"
    assert same in usual.claim
    turned = one_run(higher_before)
    assert turned.outcome == "INCONCLUSIVE"
    assert f" for {TWO_CHECKPOINTS}, but {REVERSED}." in turned.claim
    tied = one_run(mostly_as_before)
    assert tied.outcome == "INCONCLUSIVE"
    assert f" for {TWO_CHECKPOINTS}, but 54% of the pairs " in tied.claim
    blind = one_run(as_before)
    assert blind.outcome == "PASS"
    assert "The same holds" not in blind.claim
    assert blind.claim.endswith(f"Not judged: {TWO_CHECKPOINTS} (all scores are one number).")
