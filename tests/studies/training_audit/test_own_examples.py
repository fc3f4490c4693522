"""The gate over examples of one's own, from scores that are written down."""

from __future__ import annotations

import numpy as np

from remnant.studies.training_audit.own_examples import MeasuredExamples, examples_audit
from remnant.studies.training_audit.result import Overhead


def audited(scores):
    """100 examples planted once, 50 planted eight times, 150 controls; limit .7 for the first."""
    repeats = np.repeat([1, 8], [100, 50])
    uses = np.stack([np.arange(150) % 9 + 1, np.arange(150), repeats], axis=1)
    measured = MeasuredExamples(
        kind="texts",
        repeats=repeats,
        controls=150,
        drawn=True,
        scores={10: np.asarray(scores)},
        score="minus the loss",
        final=10,
        uses=uses,
        context=0,
        overhead=Overhead(
            scored=1, skipped=0, scoring_seconds=0.0, training_seconds=0.0, allowed=None
        ),
        data="texts",
        seed=0,
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
