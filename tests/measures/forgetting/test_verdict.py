"""What bounds say about a limit: the rule, its words, and how often it is wrong."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures import exposure_curve, forgetting_curve, forgetting_verdict
from remnant.measures.forgetting.control import Control
from remnant.measures.forgetting.verdict import LastLag, judge

FOUND = Control(10.0, "The attack found the canaries at lag 10.")
MISSED = Control(None, "The attack did not find the canaries.")
LAST = LastLag(
    what="attack AUC",
    unit="",
    digits=3,
    lag=500.0,
    value=0.50,
    low=0.46,
    high=0.55,
    chance=0.5,
    confidence=0.95,
    trials=4,
    canaries=30,
    sizes="4 trainings, 30 seen and 30 unseen scores each",
    skew="moderate",
)


def last(low, value, high, **changes):
    return dataclasses.replace(LAST, low=low, value=value, high=high, **changes)


@pytest.mark.parametrize(
    ("low", "value", "high", "control", "outcome"),
    [
        (0.46, 0.50, 0.55, FOUND, "PASS"),
        (0.46, 0.50, 0.55, MISSED, "INCONCLUSIVE"),
        (0.56, 0.60, 0.65, FOUND, "FAIL"),
        (0.56, 0.60, 0.65, MISSED, "FAIL"),
        (0.55, 0.60, 0.65, FOUND, "INCONCLUSIVE"),
        (0.45, 0.50, 0.56, FOUND, "INCONCLUSIVE"),
    ],
)
def test_a_pass_needs_its_bound_and_its_control(low, value, high, control, outcome):
    verdict = judge(last(low, value, high), 0.55, control)
    assert verdict.outcome == outcome
    assert (verdict.limit, verdict.lag) == (0.55, 500.0)
    bounds = f"attack AUC is {value:.3f} (one-sided 95% bounds {low:.3f} and {high:.3f})"
    assert bounds in verdict.sentence


def test_a_doubt_keeps_a_pass_back():
    verdict = judge(LAST, 0.55, FOUND, doubt="nothing was measured")
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.claim == "No claim: nothing was measured."


def test_a_claim_has_its_bound_its_n_its_confidence_and_what_it_leaves_open():
    assert judge(LAST, 0.55, FOUND).claim == (
        "With 95% confidence, 500 steps after last use attack AUC is at most 0.550 on average "
        "(4 trainings, 30 seen and 30 unseen scores each); 4 trainings cannot exclude that up to "
        "53% of trainings behave otherwise."
    )
    still = judge(last(0.51, 0.53, 0.55), 0.55, FOUND)
    assert still.outcome == "PASS"
    assert "yet the canaries are still detectable (at least 0.510, chance 0.500)" in still.claim
    assert still.detected
    for limit, control in ((0.55, FOUND), (0.52, FOUND), (0.505, FOUND), (0.55, MISSED)):
        made = judge(last(0.51, 0.53, 0.55), limit, control)
        assert made.detected, made.outcome  # whatever the outcome
        assert not judge(LAST, limit, control).detected  # the control is another lag
    assert "is at least 0.560 on average" in judge(last(0.56, 0.6, 0.65), 0.55, FOUND).claim
    unknown = judge(last(0.4, 0.5, 0.6), 0.55, FOUND).claim
    assert "at least 0.400 and at most 0.600" in unknown
    assert judge(LAST, 0.55, MISSED).claim == "No claim: the attack did not find the canaries."
    precise = judge(dataclasses.replace(LAST, confidence=0.999, high=0.5491), 0.55, FOUND).claim
    assert precise.startswith("With 99.9% confidence")
    assert "at most 0.550" in precise, "bounds are rounded outward"
    many = judge(dataclasses.replace(LAST, trials=1000), 0.55, FOUND).claim
    assert "up to 0.3% of trainings" in many


@pytest.mark.parametrize("ends", [(0.46, 0.50, 0.55), (0.56, 0.6, 0.65), (0.4, 0.5, 0.6)])
def test_a_claim_from_one_training_is_about_that_training(ends):
    claim = judge(last(*ends, trials=1), 0.55, FOUND).claim
    assert "in this one training" in claim
    assert "on average" not in claim
    assert claim.endswith("; one training does not show how trainings differ.")
    assert "in this one training" not in judge(last(*ends), 0.55, FOUND).claim


def test_a_training_above_the_limit_is_counted_in_the_claim():
    per_trial = (0.7, *[0.5] * 7)
    odd = judge(dataclasses.replace(LAST, trials=8, per_trial=per_trial), 0.55, FOUND)
    bound = stats.binomtest(1, 8).proportion_ci(0.90, method="exact").high
    assert odd.outcome == "PASS"
    assert odd.claim.endswith(
        f"1 of 8 trainings is above the limit, so up to {bound:.0%} of trainings may be "
        "(95% confidence)."
    )
    assert "behave otherwise" not in odd.claim
    even = judge(dataclasses.replace(LAST, trials=8, per_trial=(0.5,) * 8), 0.55, FOUND)
    assert "cannot exclude that up to 31% of trainings behave otherwise" in even.claim


@pytest.mark.parametrize("exposed", [False, True])
def test_curves_count_their_trainings_above_the_limit(exposed):
    rng = np.random.default_rng(5)
    shift = np.zeros((2, 30, 1))
    shift[0], shift[1, 0] = 3.0, 1.5
    seen, unseen = shift + rng.normal(size=(2, 30, 60)), rng.normal(size=(2, 30, 500))
    made = {"lags": [10, 20], "rng": rng, "draws": 20}
    if exposed:
        curve = exposure_curve(canary_losses=-seen, reference_losses=-unseen, **made)
    else:
        curve = forgetting_curve(seen_scores=seen, unseen_scores=unseen, success="auc", **made)
    verdict = curve.verdict(2.5 if exposed else 0.7)
    assert verdict.outcome == "PASS"
    assert "1 of 30 trainings is above the limit" in verdict.claim


def test_what_is_safe_in_one_training_is_said_to_be_about_it():
    rng = np.random.default_rng(0)
    one = faded(rng, trials=1, n=400)
    assert one.safe_after(0.6).lag is not None
    assert one.safe_after(0.6).reason.endswith(
        "This is about one training, which does not show how trainings differ."
    )
    assert "one training" not in faded(rng).safe_after(0.6).reason
    exposed = exposure_curve(
        canary_losses=rng.normal(size=(2, 1, 400)) + np.array([-4.0, 0.0])[:, None, None],
        reference_losses=rng.normal(size=(2, 1, 2000)),
        lags=[10, 20],
        rng=rng,
        draws=20,
    )
    assert "in this one training" in exposed.verdict(3.0).claim
    assert "about one training" in exposed.safe_after(3.0).reason


def test_success_below_chance_is_no_pass():
    """The reversed attack has an AUC of .98."""
    rng = np.random.default_rng(0)
    reversed_ = faded(rng, shifts=(3.0, 2.0, -3.0))
    assert reversed_.verdict(0.6).outcome == "INCONCLUSIVE"
    assert "below chance, so the reversed attack succeeds" in reversed_.verdict(0.6).claim
    assert reversed_.safe_after(0.6).lag is None
    assert "below chance" in reversed_.safe_after(0.6).reason
    assert reversed_.safe_after(0.6, control=False).lag == 500
    costly = exposure_curve(
        canary_losses=rng.normal(size=(2, 8, 40)) + np.array([-4.0, 3.0])[:, None, None],
        reference_losses=rng.normal(size=(2, 8, 200)),
        lags=[10, 20],
        rng=rng,
        draws=20,
    )
    assert costly.verdict(3.0).outcome == "INCONCLUSIVE"
    assert "below chance" in costly.safe_after(3.0).reason


def test_scores_reversed_throughout_are_said_to_be(curve):
    turned = faded(np.random.default_rng(0), shifts=(-3.0, -3.0, -3.0), success="precision")
    verdict = turned.verdict(0.75)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "below chance, so the reversed attack succeeds" in verdict.claim
    assert "Check that higher scores mean more likely seen." in verdict.sentence
    assert "Plant more canaries" not in verdict.sentence
    assert "higher scores" not in curve.verdict(0.6).sentence


@pytest.mark.parametrize("shifts", [(-0.3, -2.0, -3.0), (-1.0, -1.2, -2.5, -1.0, -1.5)])
def test_no_more_trainings_are_advised_to_a_reversed_attack(shifts):
    """The bound is above the limit, and more trainings with this value would not make it PASS."""
    rng, trials = np.random.default_rng(0), len(shifts)
    turned = forgetting_curve(
        seen_scores=np.array(shifts)[:, None] + rng.normal(size=(2, trials, 100)),
        unseen_scores=rng.normal(size=(2, trials, 100)),
        lags=[10, 500],
        success="auc",
        rng=rng,
        draws=20,
    )
    verdict = turned.verdict(0.51)
    assert turned.value[-1] < 0.25
    assert "trainings (here" not in verdict.sentence
    assert "Check that higher scores mean more likely seen." in verdict.sentence
    shown = judge(last(0.45, 0.48, 0.6, reversed=True), 0.55, FOUND)
    assert "would make it PASS" not in shown.sentence


def test_costs_that_tie_are_no_reversed_attack():
    """Ties count against the canary, so that exposure is under what chance gives without ties."""
    rng = np.random.default_rng(0)
    gain = np.array([-4.0, 0.0])[:, None, None]
    tied = exposure_curve(
        canary_losses=np.round(rng.normal(size=(2, 8, 40)) + gain),
        reference_losses=np.round(rng.normal(size=(2, 8, 200))),
        lags=[10, 20],
        rng=rng,
        draws=20,
    )
    assert tied.high[1] < tied.null
    assert tied.verdict(3.0).outcome == "PASS"
    assert tied.safe_after(3.0).lag == 20


def test_scores_and_costs_that_are_all_alike_at_the_end_do_not_pass():
    """They were found at an earlier lag; a loss that is saturated or rounded looks like this."""
    rng = np.random.default_rng(2)
    gain = np.array([4.0, 4.0, 0.0])[:, None, None]
    seen, unseen = rng.normal(size=(3, 8, 40)) + gain, rng.normal(size=(3, 8, 200))

    def judged():
        made = {"lags": [0, 10, 20], "rng": np.random.default_rng(1), "draws": 20}
        attacked = forgetting_curve(seen_scores=seen, unseen_scores=unseen, success="auc", **made)
        exposed = exposure_curve(canary_losses=-seen, reference_losses=-unseen, **made)
        return (attacked, 0.7), (exposed, 3.0)

    for curve, limit in judged():
        assert curve.verdict(limit).outcome == "PASS"
        assert curve.safe_after(limit).lag == 20
    seen[-1], unseen[-1] = 0.0, 0.0
    for curve, limit in judged():
        assert curve.verdict(limit).outcome == "INCONCLUSIVE"
        assert "at the end" in curve.verdict(limit).claim
        assert curve.safe_after(limit).lag is None


def test_a_lag_at_which_nothing_was_computed_is_not_safe():
    """Nor is any lag before it, though the bounds of all of them are under the limit."""
    rng = np.random.default_rng(3)
    gain = np.array([4.0, 0.0, 0.0, 0.0])[:, None, None]
    seen, unseen = rng.normal(size=(4, 8, 40)) + gain, rng.normal(size=(4, 8, 200))

    def safe():
        made = {"lags": [10, 20, 30, 40], "rng": np.random.default_rng(1), "draws": 20}
        attacked = forgetting_curve(seen_scores=seen, unseen_scores=unseen, success="auc", **made)
        exposed = exposure_curve(canary_losses=-seen, reference_losses=-unseen, **made)
        return attacked.safe_after(0.7), exposed.safe_after(4.0)

    assert [found.lag for found in safe()] == [20, 20]
    seen[2], unseen[2] = 0.0, 0.0
    attacked, exposed = safe()
    assert (attacked.lag, exposed.lag) == (40, 40)
    assert "at lag 30 all scores are one number" in attacked.reason
    assert "at lag 30 canaries cost exactly as much as references" in exposed.reason
    seen[2, 0], unseen[2, 0] = rng.normal(size=40), rng.normal(size=200)  # one trial of eight
    assert [found.lag for found in safe()] == [40, 40]


def test_scores_most_of_which_tie_do_not_pass():
    """Nine in ten are capped: what is left shows little, and the caps nothing."""
    rng = np.random.default_rng(2)
    gain = np.array([4.0, 0.5])[:, None, None]
    seen, unseen = rng.normal(size=(2, 8, 40)) + gain, rng.normal(size=(2, 8, 200))
    cap = np.quantile(unseen[1], 0.1)
    seen[1], unseen[1] = np.minimum(seen[1], cap), np.minimum(unseen[1], cap)
    curve = forgetting_curve(
        seen_scores=seen, unseen_scores=unseen, success="auc", lags=[10, 20], rng=rng, draws=20
    )
    verdict = curve.verdict(0.7)
    assert (verdict.outcome, curve.safe_after(0.7).lag) == ("INCONCLUSIVE", None)
    assert "of the pairs of a seen and an unseen score at the end tie" in verdict.claim


def test_a_limit_that_no_precision_can_reach_proves_nothing():
    """At FPR 50 % precision is at most .667: a total leak would pass a limit of .75."""
    leak = faded(np.random.default_rng(0), shifts=(6.0, 6.0, 6.0), success="precision", fpr=0.5)
    found = leak.verdict(0.75)
    assert found.outcome == "INCONCLUSIVE"
    assert "0.667, the maximum of precision at FPR 0.5" in found.sentence
    assert leak.safe_after(0.75).lag is None
    assert leak.verdict(0.6).outcome == "FAIL"


def test_copies_of_one_training_are_one():
    rng = np.random.default_rng(3)
    sides = {
        name: np.repeat(rng.normal(size=(2, 1, 30)), 8, axis=1)
        for name in ("seen_scores", "unseen_scores")
    }
    sides["seen_scores"][0] += 3.0
    copied = forgetting_curve(**sides, lags=[10, 20], success="auc", rng=rng, draws=20)
    assert copied.verdict(0.75).outcome == "INCONCLUSIVE"
    assert "so they are one training" in copied.verdict(0.75).claim
    assert copied.safe_after(0.75).lag is None
    assert "so they are one training" in copied.safe_after(0.75).reason
    protected = copied.protect_last(0.75, batch=64)
    assert (protected.steps, protected.examples) == (None, None)
    assert copied.safe_after(0.75, control=False).lag == 20, "the bare bound asks for no control"


def test_trainings_whose_scores_are_the_same_constants_are_one():
    seen = np.zeros((3, 8, 40))
    seen[:2] = 1.0
    made = {"seen_scores": seen, "unseen_scores": np.zeros((3, 8, 40)), "lags": [10, 100, 1000]}
    constant = forgetting_curve(**made, success="auc", rng=np.random.default_rng(0), draws=20)
    assert constant.verdict(0.75).outcome == "INCONCLUSIVE"
    assert constant.safe_after(0.75).lag is None
    assert constant.protect_last(0.75, batch=64).steps is None


def test_copies_of_one_training_expose_nothing_safely():
    rng = np.random.default_rng(3)
    canaries = np.repeat(rng.normal(size=(2, 1, 30)), 8, axis=1)
    canaries[0] -= 4.0
    references = np.repeat(rng.normal(size=(2, 1, 200)), 8, axis=1)
    made = {"canary_losses": canaries, "reference_losses": references, "lags": [10, 20]}
    copied = exposure_curve(**made, rng=rng, draws=20)
    assert copied.verdict(3.0).outcome == "INCONCLUSIVE"
    assert copied.safe_after(3.0).lag is None
    assert "so they are one training" in copied.safe_after(3.0).reason


def test_accuracy_splits_scores_that_tie_at_the_median():
    """All seen scores are 1, 40 % of the unseen: a threshold under 1 would be right in 80 %."""
    rng = np.random.default_rng(0)
    unseen = (rng.random((1, 8, 100)) < 0.4).astype(float)
    made = {"seen_scores": np.ones((1, 8, 100)), "unseen_scores": unseen, "lags": [10]}
    curve = forgetting_curve(**made, success="accuracy", rng=rng, draws=20)
    assert curve.value[0] == pytest.approx(0.5 / 0.7, abs=0.02)
    assert curve.verdict(0.6).outcome == "FAIL"


def test_a_missed_control_says_how_near_it_was_and_how_many_trainings_would_do():
    """Three trainings of which each remembers, by other amounts; as many more would show it."""
    rng = np.random.default_rng(4)
    own = np.array([0.5, 1.5, 3.0])
    seen = rng.normal(size=(2, 3, 50)) + own[:, None] * np.array([1.0, 0.0])[:, None, None]
    unseen = rng.normal(size=(2, 3, 200))

    def control(times):
        curve = forgetting_curve(
            seen_scores=np.tile(seen, (1, times, 1)) + 1e-3 * rng.normal(size=(2, 3 * times, 50)),
            unseen_scores=np.tile(unseen, (1, times, 1)),
            lags=[10, 20],
            success="auc",
            rng=np.random.default_rng(0),
            draws=20,
        )
        return curve.positive_control()

    missed = control(1)
    assert not missed.found
    assert "Nearest is lag 10: 0.8" in missed.reason
    assert "(98% bound), and chance is 0.500." in missed.reason
    needed = int(re.search(r"About (\d+) trainings \(here 3\)", missed.reason)[1])
    assert 4 <= needed <= 12
    assert control(-(-needed // 3)).found


def test_nothing_is_near_where_the_value_is_below_chance():
    rng = np.random.default_rng(0)
    blind = forgetting_curve(
        seen_scores=rng.normal(size=(1, 4, 30)) - 0.3,
        unseen_scores=rng.normal(size=(1, 4, 30)),
        lags=[10],
        success="auc",
        rng=rng,
        draws=20,
    )
    assert blind.positive_control().reason.endswith("says nothing.")


def test_a_lax_confidence_does_not_loosen_the_control():
    rng, audits = np.random.default_rng(9), 80
    claims = sum(
        faded(rng, lags=(10, 20), shifts=(0.0, 0.0), confidence=0.8, draws=20).verdict(0.6).outcome
        == "PASS"
        for _ in range(audits)
    )
    assert stats.binomtest(claims, audits, 0.025, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize(
    ("ends", "changes", "words"),
    [
        ((0.30, 0.50, 0.60), {}, "About 8 trainings (here 4) would make it PASS if the value"),
        ((0.50, 0.60, 0.90), {}, "above the limit. About 10 trainings (here 4) would most likely"),
        ((0.50, 0.60, 0.90), {}, "make it FAIL"),
        ((0.40, 0.55, 0.60), {}, "too near the limit"),
        ((0.30, 0.50, 0.60), {"trials": 1}, "About 120 canaries a side (here 30)"),
        ((0.30, 0.50, 0.60), {"trials": 1}, "run several as well"),
    ],
)
def test_an_open_verdict_says_what_would_close_it(ends, changes, words):
    verdict = judge(last(*ends, **changes), 0.55, FOUND)
    assert verdict.outcome == "INCONCLUSIVE"
    assert words in verdict.sentence


@pytest.mark.parametrize("trials", [1, 4])
def test_no_pass_is_promised_to_an_attack_that_found_nothing(trials):
    verdict = judge(last(0.30, 0.50, 0.60, trials=trials), 0.55, MISSED)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "would bring the upper bound under the limit if the value holds" in verdict.sentence
    assert f"That alone is no PASS. {MISSED.reason} Plant more canaries" in verdict.sentence
    assert "make it PASS" not in verdict.sentence
    over = judge(last(0.50, 0.60, 0.90, trials=trials), 0.55, MISSED)
    assert "would most likely make it FAIL" in over.sentence
    assert "no PASS" not in over.sentence


def faded(rng, lags=(0, 10, 500), shifts=(3.0, 2.0, 0.0), trials=8, n=100, **choices):
    shape = (len(lags), trials, n)
    return forgetting_curve(
        seen_scores=np.array(shifts)[:, None, None] + rng.normal(size=shape),
        unseen_scores=rng.normal(size=shape),
        lags=lags,
        rng=rng,
        **({"success": "auc", "draws": 40} | choices),
    )


@pytest.fixture(scope="module")
def curve():
    return faded(np.random.default_rng(0))


def test_only_the_last_lag_is_judged(curve):
    verdict = curve.verdict(0.6)
    assert (verdict.outcome, verdict.lag) == ("PASS", 500.0)
    assert forgetting_verdict(curve, 0.6) == verdict
    assert "Positive control: the attack found them at lag 10." in verdict.sentence
    assert (
        f"at most {np.ceil(1000 * curve.evidence.upper(0.95)[-1]) / 1000:.3f} on" in verdict.claim
    )


@pytest.mark.parametrize("limit", [0.5, 0.4, 0.0, 1.0, "high", True])
def test_a_limit_has_to_lie_between_chance_and_one(curve, limit):
    with pytest.raises(InvalidInput, match=r"limit="):
        curve.verdict(limit)


def test_chance_of_a_tpr_is_its_fpr():
    tpr = faded(np.random.default_rng(0), success="tpr")
    assert tpr.verdict(0.3).outcome == "PASS"
    assert "attack true-positive rate at FPR 0.1" in tpr.verdict(0.3).claim
    with pytest.raises(InvalidInput, match=r"chance, which is 0\.1 for tpr"):
        tpr.verdict(0.1)


def test_there_is_no_forgetting_before_planting(curve):
    with pytest.raises(InvalidInput, match="before planting"):
        dataclasses.replace(curve, lags=np.array([-3.0, -2.0, -1.0])).verdict(0.6)


@pytest.mark.parametrize("lags", [(0, 10, 100), (1, 10, 100), (-5, 0, 100), (0,), (100,)])
def test_an_attack_that_sees_nothing_claims_nothing(lags):
    """Pure noise, 8 trainings of 100 canaries: nominally 2.5 % of audits find a control."""
    rng, audits, claims, bare = np.random.default_rng(1), 60, 0, 0
    for _ in range(audits):
        blind = faded(rng, lags=lags, shifts=(0.0,) * len(lags), draws=20)
        safe = blind.safe_after(0.6)
        assert blind.verdict(0.6).outcome != "FAIL"
        bare += blind.safe_after(0.6, control=False).lag is not None
        assert blind.protect_last(0.6, batch=4).steps == safe.lag
        claims += safe.lag is not None or blind.verdict(0.6).outcome == "PASS"
        if safe.lag is None:
            assert "find the canaries" in safe.reason or "Not even" in safe.reason
    assert bare > 0.9 * audits
    assert stats.binomtest(claims, audits, 0.025, alternative="greater").pvalue > 0.01


def test_success_by_construction_at_lag_zero_is_no_control():
    """Calibrated scores of INJECT's unplanted twin are exactly 0 at lag 0."""
    rng = np.random.default_rng(2)
    seen, unseen = rng.normal(size=(2, 2, 8, 100))
    seen[0], unseen[0] = np.abs(seen[0]) + 1e-12, 0.0
    made = {"seen_scores": seen, "unseen_scores": unseen, "lags": [0, 100], "success": "auc"}
    curve = forgetting_curve(**made, rng=rng, draws=20)
    assert curve.value[0] == 1.0
    assert curve.verdict(0.6).outcome == "INCONCLUSIVE"
    assert curve.safe_after(0.6).lag is None
    poison = forgetting_curve(**made, rng=rng, draws=20, control_at_zero=True)
    assert poison.verdict(0.6).outcome == "PASS"


def test_exposure_of_an_attack_that_sees_nothing_claims_nothing():
    rng, passes = np.random.default_rng(3), 0
    for _ in range(60):
        curve = exposure_curve(
            canary_losses=rng.normal(size=(3, 8, 32)),
            reference_losses=rng.normal(size=(3, 8, 200)),
            lags=[0, 10, 100],
            rng=rng,
            draws=20,
        )
        passes += curve.verdict(3.0).outcome == "PASS" or curve.safe_after(3.0).lag is not None
        assert curve.safe_after(3.0, control=False).lag is not None
    assert stats.binomtest(passes, 60, 0.025, alternative="greater").pvalue > 0.01


def effects(rng, law, size):
    if law == "normal":
        return rng.normal(size=size)
    if law == "exponential":
        return rng.exponential(size=size) - 1.0
    return (np.exp(rng.normal(size=size)) - np.exp(0.5)) / np.sqrt((np.e - 1.0) * np.e)


@pytest.mark.parametrize("law", ["normal", "exponential", "lognormal"])
@pytest.mark.parametrize("trials", [3, 8])
@pytest.mark.parametrize("success", ["auc", "tpr"])
def test_trainings_that_differ_in_a_skewed_way_are_seldom_called_safe(law, trials, success):
    """The true mean is a hair above the limit; all audits are lags of one curve."""
    rng, audits, limit = np.random.default_rng(4), 200, {"auc": 0.6, "tpr": 0.25}[success]
    models = 0.5 * effects(rng, law, 200_000)

    def mean(shift):
        at = stats.norm.isf(0.1)
        rate = stats.norm.cdf((shift + models) / np.sqrt(2)) if success == "auc" else None
        return (stats.norm.sf(at - shift - models) if rate is None else rate).mean()

    low, high = -3.0, 3.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < limit else (low, middle)
    own = high + 1e-3 + 0.5 * effects(rng, law, (audits, trials, 1))
    curve = forgetting_curve(
        seen_scores=own + rng.normal(size=(audits, trials, 100)),
        unseen_scores=rng.normal(size=(audits, trials, 100)),
        lags=np.arange(audits),
        success=success,
        rng=rng,
        draws=20,
    )
    false = int(np.sum(curve.evidence.upper(0.95) <= limit))
    assert stats.binomtest(false, audits, 0.05, alternative="greater").pvalue > 0.001


def test_silence_is_not_soundness():
    """With the truth at chance and the control found, nearly all audits of 8 x 100 pass."""
    rng, audits = np.random.default_rng(5), 60
    passes = 0
    for _ in range(audits):
        own = 0.1 * rng.normal(size=(1, 8, 1))
        shift = np.array([2.0, 0.0])[:, None, None] + own
        curve = forgetting_curve(
            seen_scores=shift + rng.normal(size=(2, 8, 100)),
            unseen_scores=rng.normal(size=(2, 8, 100)),
            lags=[10, 500],
            success="auc",
            rng=rng,
            draws=20,
        )
        passes += curve.verdict(0.6).outcome == "PASS"
    assert passes >= 0.8 * audits


def test_two_trainings_of_many_scores_still_say_when_it_is_safe():
    rng, audits = np.random.default_rng(6), 40
    said = 0
    for _ in range(audits):
        shift = np.array([3.0, 2.0, 1.0, 0.0])[:, None, None]
        curve = forgetting_curve(
            seen_scores=shift + rng.normal(size=(4, 2, 400)),
            unseen_scores=rng.normal(size=(4, 2, 500)),
            lags=[0, 10, 100, 1000],
            rng=rng,
            draws=40,
        )
        said += curve.safe_after(0.75).lag == 1000
    assert said >= audits / 2


@pytest.mark.parametrize("success", ["tpr", "precision"])
@pytest.mark.parametrize(("trials", "n"), [(3, 100), (8, 300)])
def test_scores_that_tie_have_one_target(success, trials, n, covers):
    """Integer scores: the value of very many of them is what the interval covers."""
    rng = np.random.default_rng(7)
    many = {"draws": 20, "success": success, "rng": rng}
    sides = np.round(rng.normal(size=(2, 1, 1, 400_000)))
    truth = forgetting_curve(
        seen_scores=np.round(sides[0] + 1.0), unseen_scores=sides[1], lags=[0], **many
    ).value[0]
    audits = 300
    shape = (audits, trials, n)
    curve = forgetting_curve(
        seen_scores=np.round(rng.normal(size=shape)) + 1.0,
        unseen_scores=np.round(rng.normal(size=shape)),
        lags=np.arange(audits),
        **many,
    )
    assert covers((curve.low <= truth) & (truth <= curve.high))


@pytest.mark.parametrize("success", ["auc", "tpr"])
def test_clusters_are_covered_where_they_are_named(success, covers):
    """One training, forty clusters of five with a correlation of .5: single canaries fall short."""
    rng, audits, n = np.random.default_rng(8), 300, 200
    groups = np.repeat(np.arange(40), 5)

    def side(shift):
        shared = np.repeat(rng.normal(size=(audits, 1, 40)), 5, axis=-1)
        own = rng.normal(size=(audits, 1, n))
        return shift + np.sqrt(0.5) * shared + np.sqrt(0.5) * own

    truth = stats.norm.cdf(1 / np.sqrt(2))
    if success == "tpr":
        truth = stats.norm.sf(stats.norm.isf(0.1) - 1.0)
    made = {"seen_scores": side(1.0), "unseen_scores": side(0.0), "lags": np.arange(audits)}
    made |= {"success": success, "rng": rng, "draws": 60}
    curve = forgetting_curve(**made, groups=groups)
    assert "cluster bootstrap" in curve.method
    assert covers((curve.low <= truth) & (truth <= curve.high))
    alone = forgetting_curve(**made)
    assert np.mean((alone.low <= truth) & (truth <= alone.high)) < 0.9
    pair = forgetting_curve(**(made | {"rng": np.random.default_rng(0)}), groups=(groups, groups))
    named = [f"author {label:02}" for label in groups]
    same = forgetting_curve(**(made | {"rng": np.random.default_rng(0)}), groups=named)
    np.testing.assert_array_equal(pair.high, same.high)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([0, 1, 2], "groups has 3 labels for 30 canaries"),
        ([0] * 30, "puts all canaries into one cluster"),
        (np.zeros((30, 2)), "is not one label a canary"),
        (([0, 1], [0, 1] * 15), r"groups\[0\] has 2 labels for 30"),
        ([float("nan")] * 30, "NaN or infinite"),
    ],
)
def test_faulty_groups_are_refused(groups, words):
    with pytest.raises(InvalidInput, match=words):
        faded(np.random.default_rng(0), trials=2, n=30, groups=groups)


def test_one_sequence_of_groups_needs_equal_sides():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="30 seen and 40 unseen canaries; pass a pair"):
        forgetting_curve(
            seen_scores=rng.normal(size=(1, 2, 30)),
            unseen_scores=rng.normal(size=(1, 2, 40)),
            lags=[1],
            rng=rng,
            groups=np.arange(30) // 3,
        )


def test_a_null_rarely_fails():
    """A wrong FAIL takes a lower bound above a limit that is itself above the truth."""
    rng = np.random.default_rng(1)
    outcomes = []
    for _ in range(100):
        null = faded(rng, lags=(10,), shifts=(0.0,), trials=5, n=40, success="precision")
        outcomes.append(null.verdict(0.55).outcome)
    assert outcomes.count("FAIL") <= 5
