"""The verdict on remedies, on simulated studies whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.studies.choices.differences import Levels
from remnant.studies.choices.gate import (
    Canaries,
    RemedyEvidence,
    Rules,
    exchanged_p,
    fewer_reach,
    judge,
    unseen_share,
)
from remnant.studies.choices.result import fewest_trials

MOST, LIMIT, UNIGRAM = 19.93, 10.0, 5.0
RULES = Rules(limit=LIMIT, most=MOST, unigram_bits=UNIGRAM, token="character")


def canaries(bits, low=None, high=None):
    low, high = bits if low is None else low, bits if high is None else high
    return Canaries(low, high, Levels(low.mean(axis=1), high.mean(axis=1)))


def evidence(label, bits, validation, **more):
    bits = np.asarray(bits, dtype=float).reshape(len(validation), -1)
    return RemedyEvidence(label, canaries(bits), np.asarray(validation, dtype=float), **more)


def at_chance(rng, shape):
    """Exposures of secrets that nobody planted."""
    return np.minimum(rng.exponential(1 / np.log(2), shape), MOST)


def useful(rng, trials, mean=4.0):
    return rng.normal(mean, 0.02, trials)


def exposed(rng, trials):
    return np.minimum(rng.normal(19.0, 0.8, (trials, 1)), MOST)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_the_cheapest_of_those_that_hold_is_named(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    cheap = evidence("cheap", np.full((8, 1), 1.5), nothing.validation + 0.1)
    dear = evidence("dear", np.full((8, 1), 1.5), nothing.validation + 0.4)
    weak = evidence("weak", exposed(rng, 8), nothing.validation)
    verdict, rows = judge(nothing, [dear, cheap, weak], RULES)
    assert verdict.outcome == "PASS"
    assert verdict.cheapest == "cheap"
    assert verdict.holding == ("cheap", "dear")
    assert verdict.as_cheap == ()
    assert verdict.like_nothing == ("weak",)
    assert [row.status for row in rows] == ["holds", "holds", "fails"]
    share = unseen_share(8, remedies=3, confidence=0.95)
    assert f"at most {100 * share:.0f} % of such trainings" in verdict.claim
    assert "corrected for 3 remedies" in verdict.claim
    assert "The next cheapest is 'dear'" in verdict.sentence


def test_costs_that_cannot_be_distinguished_are_said_to_be_so(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    pair = [
        evidence(name, np.full((8, 1), 1.5), nothing.validation + rng.normal(0.1, 0.02, 8))
        for name in ("a", "b")
    ]
    verdict, _ = judge(nothing, pair, RULES)
    assert verdict.outcome == "PASS"
    assert len(verdict.as_cheap) == 1
    assert "not distinguished" in verdict.sentence


def test_all_remedies_hold(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    remedies = [
        evidence(str(i), np.full((8, 1), 2.0), nothing.validation + 0.1 * i) for i in range(6)
    ]
    verdict, rows = judge(nothing, remedies, RULES)
    assert verdict.outcome == "PASS"
    assert verdict.holding == tuple("012345")
    assert {row.status for row in rows} == {"holds"}


def test_all_remedies_fail(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    verdict, _ = judge(
        nothing, [evidence(str(i), exposed(rng, 8), nothing.validation) for i in range(3)], RULES
    )
    assert verdict.outcome == "FAIL"
    assert verdict.cheapest is None
    assert verdict.holding == ()


def test_an_attack_that_sees_nothing_shows_no_remedy(rng):
    for _ in range(10):
        nothing = evidence("nothing", at_chance(rng, (8, 1)), useful(rng, 8))
        remedies = [evidence(str(i), at_chance(rng, (8, 1)), useful(rng, 8)) for i in range(5)]
        verdict, _ = judge(nothing, remedies, RULES)
        assert verdict.outcome == "INCONCLUSIVE"
        assert "nothing to defend against" in verdict.sentence
        assert verdict.claim.startswith("No claim")


def test_too_few_seeds_are_not_told_as_nothing_to_defend_against(rng):
    nothing = evidence("nothing", np.full((5, 1), MOST), useful(rng, 5))
    verdict, _ = judge(nothing, [evidence("a", np.ones((5, 1)), useful(rng, 5))], RULES)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "5 trials are too few, run more" in verdict.sentence
    assert "nothing to defend" not in verdict.sentence


def test_an_attack_that_ranks_unplanted_secrets_as_high_shows_no_remedy(rng):
    bits = exposed(rng, 8)
    nothing = evidence("nothing", bits, useful(rng, 8), controls=bits.mean(axis=1) + 0.1)
    verdict, _ = judge(nothing, [evidence("a", np.ones((8, 1)), useful(rng, 8))], RULES)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "Never-planted controls" in verdict.sentence


def test_a_model_that_learnt_nothing_is_no_remedy(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    untrained = evidence("untrained", at_chance(rng, (8, 1)), useful(rng, 8, mean=UNIGRAM))
    worse = evidence("worse", np.zeros((8, 1)), useful(rng, 8, mean=6.5))
    verdict, rows = judge(nothing, [untrained, worse], RULES)
    assert [row.status for row in rows] == ["useless model", "useless model"]
    assert verdict.outcome == "FAIL"
    assert verdict.useless == ("untrained", "worse")


def test_a_training_as_planned_that_learnt_nothing_shows_no_remedy(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8, mean=UNIGRAM + 0.3))
    verdict, _ = judge(nothing, [evidence("a", np.ones((8, 1)), useful(rng, 8))], RULES)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "learnt nothing of use" in verdict.sentence


def test_one_training_shows_no_remedy(rng):
    nothing = evidence("nothing", [[19.9]], [4.0])
    verdict, rows = judge(nothing, [evidence("a", [[1.0]], [4.0])], RULES)
    assert verdict.outcome == "INCONCLUSIVE"
    assert rows[0].status == "not shown"
    assert rows[0].exposure.p_value is None


def test_a_canary_that_may_have_reached_the_limit_is_no_pass(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    bits = np.full((8, 1), 9.0)
    bound = RemedyEvidence("sampled", canaries(bits, high=np.full((8, 1), MOST)), useful(rng, 8))
    verdict, rows = judge(nothing, [bound], RULES)
    assert verdict.outcome == "INCONCLUSIVE"
    assert rows[0].status == "not shown"
    assert "may reach" in rows[0].reason


def test_a_secret_that_comes_back_is_no_pass(rng):
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    back = evidence("hidden", np.ones((8, 1)), useful(rng, 8), relearnt=canaries(exposed(rng, 8)))
    gone = evidence("gone", np.ones((8, 1)), useful(rng, 8), relearnt=canaries(np.ones((8, 1))))
    verdict, rows = judge(nothing, [back, gone], RULES)
    assert [row.status for row in rows] == ["fails", "holds"]
    assert rows[0].reason == "8 of 8 trainings reach the limit of 10 bits after relearning."
    assert verdict.holding == ("gone",)


def test_no_remedy_is_no_pass(rng):
    verdict, rows = judge(evidence("nothing", exposed(rng, 8), useful(rng, 8)), [], RULES)
    assert verdict.outcome == "INCONCLUSIVE"
    assert rows == []


@pytest.mark.parametrize("trials", [3, 5, 8])
@pytest.mark.parametrize("remembers", [0.5, 0.6, 0.75, 1.0])
def test_remedies_that_change_nothing_seldom_pass(trials, remembers):
    """Some seeds remember and some do not, with and without a remedy: at most 5 % of studies."""
    rng = np.random.default_rng(int(100 * remembers) + trials)

    def drawn():
        known = rng.random((trials, 1)) < remembers
        return np.where(known, exposed(rng, trials), at_chance(rng, (trials, 1)))

    passes = 0
    for _ in range(1000):
        nothing = evidence("nothing", drawn(), useful(rng, trials))
        remedies = [evidence(str(i), drawn(), useful(rng, trials)) for i in range(10)]
        below = [bool((remedy.canaries.high < LIMIT).all()) for remedy in remedies]
        shown = np.array(fewer_reach(nothing, remedies, RULES)) <= 0.05
        passes += bool((shown & below).any())
    assert passes <= 1000 * 0.05


def test_the_stated_share_of_trainings_covers():
    """A remedy under which a share of trainings reach the limit: the bound is below it in 5 %."""
    rng = np.random.default_rng(5)
    trials, remedies = 8, 4
    share = unseen_share(trials, remedies=remedies, confidence=0.95)
    wrong = 0
    for _ in range(2000):
        reached = rng.random((remedies, trials)) < share + 1e-6
        wrong += bool((~reached.any(axis=1)).any())
    assert wrong <= 2000 * 0.06


def test_seeds_that_are_not_known_to_differ_say_nothing():
    low, high = np.zeros(6), np.full(6, 9.0)
    assert exchanged_p(Levels(low, low), Levels(high, high)) == pytest.approx(2 / 64)
    assert exchanged_p(Levels(low, high), Levels(high, high)) == 1.0
    assert exchanged_p(Levels(low, low), Levels(low, low)) == 1.0


def test_the_sign_test_is_exact_where_exposures_pile_up():
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(2000):
        a, b = (np.minimum(rng.normal(19.5, 1.0, 8), MOST) for _ in range(2))
        p_value = exchanged_p(Levels(a, a), Levels(b, b))
        rejected += p_value <= 0.05
    assert rejected <= 2000 * 0.06


def test_models_that_hardly_learnt_are_no_remedy(rng):
    """They have to gain a tenth of what the training as planned gains over frequencies."""
    nothing = evidence("nothing", exposed(rng, 8), useful(rng, 8))
    hardly = evidence("hardly", np.ones((8, 1)), useful(rng, 8, mean=UNIGRAM - 0.08))
    enough = evidence("enough", np.ones((8, 1)), useful(rng, 8, mean=UNIGRAM - 0.3))
    verdict, rows = judge(nothing, [hardly, enough], RULES)
    assert [row.status for row in rows] == ["useless model", "holds"]
    assert verdict.cheapest == "enough"


def test_the_cost_of_the_cheapest_allows_for_its_having_been_chosen(rng):
    """The interval of the lowest of 17 equal costs holds the true cost in 95 % of studies."""
    missed = 0
    for _ in range(80):
        nothing = evidence("nothing", np.full((10, 1), 15.0) + rng.random((10, 1)), useful(rng, 10))
        remedies = [
            evidence(str(i), np.full((10, 1), 2.0), nothing.validation + rng.normal(0.1, 0.02, 10))
            for i in range(17)
        ]
        verdict, rows = judge(nothing, remedies, RULES)
        _, low, high = rows[int(verdict.cheapest)].cost.difference
        missed += not low <= 0.1 <= high
    assert missed <= 9  # 4 are expected at most


def test_sampled_exposures_widen_the_stated_share():
    exact = unseen_share(10, remedies=17, confidence=0.95)
    sampled = unseen_share(10, remedies=17, confidence=0.95, sampled=True)
    assert sampled == pytest.approx(exact / 0.975)
    assert unseen_share(1, remedies=17, confidence=0.95, sampled=True) == 1.0


def test_too_few_trials_call_no_remedy_like_nothing(rng):
    """Eight trials cannot distinguish any of 17 remedies: the smallest p-value is 0.13."""
    for trials in (8, 10):
        assert (trials >= fewest_trials(17, 0.95)) == (trials == 10)
        nothing = evidence("nothing", 15.0 + rng.random((trials, 1)), useful(rng, trials))
        remedies = [
            evidence(
                str(i), nothing.canaries.low + rng.normal(size=(trials, 1)), useful(rng, trials)
            )
            for i in range(17)
        ]
        verdict, _ = judge(nothing, remedies, RULES)
        assert (len(verdict.like_nothing) > 0) == (trials == 10)
