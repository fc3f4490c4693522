"""From the scores of one run's canaries to its curve and a verdict; touches no model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.measures import OneRunForgetting, Success, one_run_forgetting
from remnant.records import Record
from remnant.studies.gates import put_verdict

if TYPE_CHECKING:
    from remnant.studies.one_run import OneRunStudy

_ROWS = (
    *("lags", "success", "low", "high", "effect", "effect_low", "effect_high"),
    *("cohort", "repeats", "checkpoint", "n_seen"),
)


def measure_one_run(record: Record, study: OneRunStudy) -> None:
    """Measure the run's curve, judge it, and put both into the record."""
    found = one_run_curve(study, record.array("scores"))
    record.put_result("one_run", one_run_fields(study, found))
    put_verdict(record, lambda: found.verdict(study.attack.limit))
    record.put_result("scope", _scope(study))


def one_run_curve(study: OneRunStudy, scores: Any) -> OneRunForgetting:
    """Return the curve of the run; lag 0 is right after a canary's last use."""
    plan, attack = study.plan, study.attack
    return one_run_forgetting(
        scores=scores,
        checkpoints=np.array(study.probe_steps()) - 1,
        last_seen=plan.last_seen,
        first_seen=plan.first_seen,
        cohorts=plan.cohort_of,
        repeats=plan.repeats_of,
        success=cast(Success, attack.success),
        fpr=attack.fpr,
        confidence=attack.confidence,
        calibrate=attack.calibrate,
        rng=np.random.default_rng([plan.seed, 2]),
    )


def one_run_fields(study: OneRunStudy, found: OneRunForgetting) -> dict[str, Any]:
    """Return the curve as plain data, one entry a cohort and checkpoint."""
    return {
        "rate": found.rate,
        "fpr": found.fpr,
        "confidence": found.confidence,
        "chance": found.chance,
        "calibrated": found.calibrated,
        "method": found.method,
        "n_unseen": found.n_unseen,
        "starts": list(study.plan.starts),
        "window": study.plan.window,
        "steps": study.plan.total_steps,
        **{name: _plain(getattr(found, name)) for name in _ROWS},
    }


def _plain(row: NDArray[Any]) -> list[float | None]:
    """A row as plain data; what is not a finite number is absent."""
    return [one if math.isfinite(one) else None for one in row.tolist()]


def _scope(study: OneRunStudy) -> dict[str, list[str]]:
    plan = study.plan
    return {
        "tested": [
            f"STAGGERED: one run of {plan.total_steps} steps of {study.model.name} on "
            f"{study.data.name}, {plan.canaries - plan.never} {study.canaries.kind} canaries "
            f"planted in {len(plan.starts)} windows of {plan.window} steps",
            f"{plan.never} canaries drawn alike and never planted, as controls of every window",
        ],
        "not_tested": [
            "how much another run would differ: there was one",
            "adversaries who know the batch order, see gradients, or query the model while it "
            "trains",
            "whether what the attack no longer finds is gone or only hidden: no weight noise, no "
            "relearning, no scan of later checkpoints was run",
            "lags beyond the end of the run, other models, other data and other kinds of canary",
        ],
    }
