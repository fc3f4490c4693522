"""The gate over examples of one's own, from scores that are written down."""

from __future__ import annotations

import numpy as np

from remnant.studies.training_audit.own_examples import MeasuredExamples, examples_audit
from remnant.studies.training_audit.result import Overhead


def audited(scores, **given):
    """100 examples planted once, 50 planted eight times, 150 controls; limit .7 for the first."""
    repeats = np.repeat([1, 8], [100, 50])
    uses = np.stack([np.arange(150) % 9 + 1, np.arange(150), repeats], axis=1)
    measured = MeasuredExamples(
        kind="texts",
        repeats=repeats,
        controls=150,
        drawn=True,
        scores={10: np.asarray(scores)} | given.pop("before", {}),
        score="minus the loss",
        final=10,
        uses=uses,
        context=0,
        overhead=Overhead(
            scored=1, skipped=0, scoring_seconds=0.0, training_seconds=0.0, allowed=None
        ),
        data="texts",
        seed=0,
        **given,
    )
    return examples_audit(measured, limit=0.7, judged=1).verdict


def test_scores_that_are_all_alike_do_not_pass_whatever_the_control():
    scores = np.random.default_rng(0).normal(size=300)
    scores[100:150] += 4.0
    assert audited(scores).outcome == "PASS"
    scores[:100], scores[150:] = 0.0, 0.0
    verdict = audited(scores)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "all scores are one number, seen and unseen" in verdict.sentence
    assert verdict.claim.startswith("No claim: all scores are one number")


def kept(rng):
    """Examples that differ; those planted once are remembered, and drift hides it."""
    usual = 9.0 * rng.normal(size=300)
    remembered = np.repeat([1.6, 60.0, 0.0], [100, 50, 150])
    before = {0: usual + 9.0 * rng.normal(size=300)}
    return usual + remembered + rng.normal(size=300), usual, before


def test_a_leak_that_two_checkpoints_miss_fails_against_references():
    rng = np.random.default_rng(0)
    scores, usual, before = kept(rng)
    two = audited(scores, before=before)
    assert two.outcome == "PASS"
    assert "The AUC of an attacker with two checkpoints of this run is 0.5" in two.claim
    assert "The same holds for an attacker with the model alone (at most 0.6" in two.claim
    references = usual + rng.normal(size=(8, 300))
    against = audited(scores, before=before, references=references)
    assert against.outcome == "FAIL"
    assert "The AUC of an attacker with 8 reference models trained without" in against.claim


def test_references_that_saw_the_examples_make_no_pass_and_controls_no_fail():
    rng = np.random.default_rng(0)
    scores, usual, before = kept(rng)
    saw = usual + rng.normal(size=(8, 300)) + np.repeat([9.0, 0.0], 150)
    verdict = audited(scores, before=before, references=saw)
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.claim.startswith("No claim: planted canaries score higher in a reference model")
    saw = usual + rng.normal(size=(8, 300)) + np.repeat([0.0, 9.0], 150)
    verdict = audited(scores, before=before, references=saw)
    assert verdict.outcome == "INCONCLUSIVE"
    assert "controls score higher in a reference model than chance allows" in verdict.sentence


def test_the_model_alone_has_to_be_excluded_too():
    rng = np.random.default_rng(0)
    scores = np.repeat([1.5, 40.0, 0.0], [100, 50, 150]) + rng.normal(size=300)
    verdict = audited(scores, before={0: 9.0 * rng.normal(size=300)})
    assert verdict.outcome == "INCONCLUSIVE"
    assert "within the limit of 0.7 for an attacker with the model alone" in verdict.claim
