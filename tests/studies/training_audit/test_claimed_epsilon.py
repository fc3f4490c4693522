"""The measured epsilon of a training: never above the true one too often, and no claim from it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from remnant.errors import InvalidInput
from remnant.measures import gaussian_epsilon
from remnant.records.typed import Absent
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.shared.result_parts import Finding
from remnant.studies.training_audit.claimed_epsilon import (
    canaries_to_exceed,
    check_claim,
    differences,
    largest_bound,
    measured_epsilon,
    with_epsilon,
)
from remnant.studies.training_audit.result import MeasuredEpsilon, TrainingAuditResult

DELTA = 1e-5
NOTHING = Absent("not measured here")


def audit(rng, *, canaries=100, mu=0.0, claimed=None, delta=DELTA):
    """An audit of a Gaussian mechanism whose epsilon is known."""
    coins = rng.random(canaries) < 0.5
    scores = rng.normal(size=canaries) + mu * coins
    return measured_epsilon(
        scores[coins],
        scores[~coins],
        claimed=claimed,
        delta=delta,
        seed=int(rng.integers(1 << 30)),
    )


@pytest.mark.parametrize("mu", [0.0, 0.5, 1.5])
def test_the_bound_exceeds_the_true_epsilon_in_at_most_5_percent_of_audits(mu):
    rng = np.random.default_rng(0)
    true = gaussian_epsilon(mu=mu, delta=DELTA) if mu else 0.0
    audits = 300
    above = sum(audit(rng, mu=mu).value > true for _ in range(audits))
    # 5 % and three standard errors of the simulation.
    assert above <= audits * (0.05 + 3 * np.sqrt(0.05 * 0.95 / audits))


def test_equal_scores_show_nothing_whichever_way_the_coins_fell():
    rng = np.random.default_rng(1)
    values = []
    for seed in range(100):
        included = int(rng.binomial(100, 0.5))
        values.append(
            measured_epsilon(
                np.zeros(included),
                np.zeros(100 - included),
                claimed=1.0,
                delta=DELTA,
                seed=seed,
            ).value
        )
    assert not any(values)


def test_a_leak_is_measured_and_a_perfect_attack_gives_the_largest_bound():
    rng = np.random.default_rng(0)
    leaking = audit(rng, canaries=200, mu=4.0, claimed=1.0)
    assert leaking.exceeds
    perfect = measured_epsilon(np.ones(100), np.zeros(100), claimed=1.0, delta=DELTA, seed=0)
    assert 1 < leaking.value < perfect.value == perfect.largest == largest_bound(200, delta=DELTA)
    assert (perfect.guesses, perfect.correct) == (200, 200)
    assert not audit(rng, mu=0.1, claimed=1.0).exceeds
    assert not audit(rng, mu=100.0).exceeds, "nothing was claimed"


def test_the_canaries_that_could_exceed_a_claim():
    needed = canaries_to_exceed(4.0, delta=DELTA)
    assert largest_bound(needed, delta=DELTA) > 4.0
    assert largest_bound(int(0.97 * needed), delta=DELTA) <= 4.0
    assert canaries_to_exceed(30.0, delta=DELTA) is None
    few = audit(np.random.default_rng(0), canaries=40, claimed=4.0)
    assert (few.needed, few.could_exceed) == (needed, False)


def test_scores_are_costs_less_those_before_training():
    scores = {0: np.array([5.0, 6.0, 9.0]), 4: np.array([1.0, 6.0, 2.0])}
    two, alone = "an attacker with two checkpoints of this run", "an attacker with the model alone"
    for (values, attacker), expected in (
        (differences(scores, 4, 2), ([4.0, 0.0], two)),
        (differences({4: scores[4]}, 4, 2), ([-1.0, -6.0], alone)),
        (differences(scores, 0, 2), ([-5.0, -6.0], alone)),
    ):
        assert (values.tolist(), attacker) == expected


def result(verdict) -> TrainingAuditResult:
    names = ("exposure", "repeats", "costs", "course", "forgetting", "sightings", "overhead")
    return TrainingAuditResult(
        verdict=verdict, scope=NOTHING, **dict.fromkeys(names, NOTHING), detection=NOTHING
    )


GATE = ExposureGate(outcome="PASS", sentence="AUC at most 0.6.", claim="AUC.", limit=0.7, rules=2)
FINDING = Finding(headline="Measured", sentence="AUC is 0.5.", advice="Set limit=.", rules=2)
EPSILON = MeasuredEpsilon(
    value=2.349,
    claimed=1.0,
    delta=DELTA,
    confidence=0.95,
    largest=4.0,
    guesses=100,
    correct=98,
    canaries=200,
    included=101,
    attacker="an attacker with the model alone",
)


@pytest.mark.parametrize("verdict", [GATE, FINDING, NOTHING])
def test_a_claim_that_is_exceeded_is_a_fail_whatever_else_was_judged(verdict):
    judged = with_epsilon(result(verdict), EPSILON)
    assert (judged.verdict.outcome, judged.verdict.limit) == ("FAIL", 1.0)
    assert judged.verdict.sentence.startswith(
        "Measured epsilon is at least 2.34 at delta = 1e-05 (95% confidence, 200 canaries, one "
        "training; an attacker with the model alone): above the claimed 1."
    )
    assert "one training; an attacker with the model alone)." in judged.verdict.claim
    assert ("AUC at most 0.6." in judged.verdict.sentence) == (verdict is GATE)
    assert judged.claim_is_broken


def test_a_claim_that_is_not_exceeded_changes_no_outcome_and_proves_nothing():
    kept = dataclasses.replace(EPSILON, value=0.5)
    said = (
        "not above the claimed 1. An attack that does not exceed a claim is no evidence that the "
        "claim is right. 200 canaries could have shown at most 4.00."
    )
    judged = with_epsilon(result(GATE), kept)
    assert judged.verdict.outcome == "PASS"
    assert judged.verdict.sentence.startswith("AUC at most 0.6.")
    found = with_epsilon(result(FINDING), kept)
    assert found.verdict.headline == "Measured epsilon at least 0.50, claimed 1"
    for verdict in (judged.verdict, found.verdict):
        assert said in verdict.sentence
    assert with_epsilon(result(NOTHING), kept).verdict == NOTHING
    weak = with_epsilon(result(FINDING), dataclasses.replace(kept, claimed=5.0, needed=700))
    assert "this audit could not refute the claim; it takes 700 canaries." in weak.verdict.sentence
    unclaimed = with_epsilon(result(FINDING), dataclasses.replace(kept, claimed=None))
    assert "No epsilon was claimed." in unclaimed.verdict.sentence


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"claimed_epsilon": 1.0, "delta": None}, "claimed_epsilon= needs delta="),
        ({"claimed_epsilon": 0.0, "delta": DELTA}, "claimed_epsilon=0.0 is not a finite number"),
        ({"claimed_epsilon": float("nan"), "delta": DELTA}, "claimed_epsilon=nan is not a finite"),
        ({"claimed_epsilon": None, "delta": 1.0}, "delta=1.0 is not at least 0 and under 1"),
        ({"claimed_epsilon": 1.0, "delta": "x"}, "delta='x' is not at least 0"),
        ({"claimed_epsilon": 1.0, "delta": DELTA, "coins": False}, "needs Audit\\(coins=True\\)"),
    ],
)
def test_claims_that_cannot_be_tested_are_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        check_claim(**({"coins": True} | given))
