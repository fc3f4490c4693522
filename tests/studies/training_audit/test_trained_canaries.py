"""A PASS is about canaries that the training really used."""

from __future__ import annotations

import numpy as np
import pytest

from remnant.canaries import Template, make_canary_set
from remnant.studies.exposure.audit import ExposureAudit
from remnant.studies.exposure.result import CanaryExposure
from remnant.studies.training_audit.measure import Measured, training_audit
from remnant.studies.training_audit.own_examples import MeasuredExamples, examples_audit
from remnant.studies.training_audit.result import Overhead

SPACE = 10**6
OVERHEAD = Overhead(scored=1, skipped=0, scoring_seconds=0.0, training_seconds=1.0, allowed=None)
ONCE = 20  # canaries planted once, and as many planted 16 times


def audited(uses, **given):
    """Canaries planted once are at chance, those planted 16 times are extracted."""
    canary_set = make_canary_set(
        Template("pin {digits:6}"), repeats=[1, 16], per_repeat=ONCE, controls=20, seed=0
    )
    rng = np.random.default_rng(0)
    ranks = [
        1 if often == 16 else int(rng.integers(SPACE // 8, SPACE))
        for often in (*canary_set.repeats, *[0] * 20)
    ]
    each = tuple(
        CanaryExposure(
            name=f"secret {rank}",
            trial=0,
            repeats=0,
            uses=0,
            bits=bits,
            low=bits,
            high=bits,
            rank=rank,
            cost=20.0 - bits,
            saturated=False,
            skew_normal_bits=None,
            twin_bits=None,
        )
        for rank, bits in ((rank, float(np.log2(SPACE / rank))) for rank in ranks)
    )
    measured = Measured(
        canaries=canary_set,
        trained=ExposureAudit(
            "exact", "it is small", each, np.zeros(0), None, False, SPACE, 1, 0.0, True
        ),
        base=None,
        scores={},
        uses=np.array(
            [
                (0, number, uses(number, often))
                for number, often in enumerate(canary_set.repeats)
                if uses(number, often)
            ],
            dtype=np.int64,
        ).reshape(-1, 3),
        context=1,
        overhead=OVERHEAD,
        data="rows",
    )
    return training_audit(measured, limit=10.0, judged=1, **given).verdict


def test_canaries_used_as_often_as_planted_pass():
    verdict = audited(lambda number, often: 3 * often)
    assert verdict.outcome == "PASS", verdict.sentence
    assert verdict.judged == ONCE


def test_judged_canaries_that_no_batch_held_give_no_pass():
    """The others were found, which says nothing of the judged ones."""
    verdict = audited(lambda number, often: often if often == 16 else 0)
    assert verdict.outcome == "INCONCLUSIVE"
    assert verdict.claim.startswith("No claim: 20 of 20 judged canaries were in batches less often")


@pytest.mark.parametrize(("share", "outcome"), [(None, "PASS"), (0.15, "INCONCLUSIVE")])
def test_only_judged_canaries_that_were_used_count(share, outcome):
    verdict = audited(lambda number, often: often * (number % 20 >= 8), share=share)
    assert verdict.outcome == outcome, verdict.sentence
    assert verdict.judged == 12
    assert "8 of 20 judged canaries were in batches less often than they were" in verdict.sentence
    assert "20 of 20" not in verdict.claim


@pytest.mark.parametrize(
    ("full", "some", "n", "outcome"),
    [(20, 0, 20, "PASS"), (15, 5, 15, "PASS"), (5, 15, 20, "INCONCLUSIVE")],
)
def test_examples_are_judged_as_often_as_they_were_used(full, some, n, outcome):
    """Those in batches less often than planted are left out, or are most of them and no PASS."""
    repeats, controls = np.repeat([4, 64], 20), 60
    rng = np.random.default_rng(1)
    scores = rng.normal(size=len(repeats) + controls)
    scores[20:40] += 5.0
    counts = [4] * full + [2] * some + [64] * 20
    measured = MeasuredExamples(
        kind="texts",
        repeats=repeats,
        controls=controls,
        drawn=True,
        scores={3: scores},
        score="",
        final=3,
        uses=np.array([(0, number, count) for number, count in enumerate(counts)]),
        context=1,
        overhead=OVERHEAD,
        data="rows",
        seed=0,
    )
    result = examples_audit(measured, limit=0.8, judged=4)
    assert [level.n for level in result.detection.levels] == [n, 20]
    assert result.verdict.outcome == outcome, result.verdict.sentence
