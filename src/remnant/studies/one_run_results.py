"""From the scores of one run's canaries to its curve and a verdict; touches no model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from remnant.measures import OneRunForgetting, Success, one_run_forgetting
from remnant.records import Record
from remnant.studies.wording import times

if TYPE_CHECKING:
    from remnant.studies.one_run import OneRunStudy

_ROWS = (
    *("lags", "success", "low", "high", "effect", "effect_low", "effect_high"),
    *("cohort", "repeats", "checkpoint", "n_seen"),
)
_RATES = {
    "tpr": "a true-positive rate",
    "precision": "a precision",
    "auc": "an AUC",
    "accuracy": "an accuracy",
}


def measure_one_run(record: Record, study: OneRunStudy) -> None:
    """Measure the run's curve, judge it, and put both into the record."""
    found = one_run_curve(study, record.array("scores"))
    record.put_result("one_run", one_run_fields(study, found))
    record.put_result("verdict", one_run_verdict(found, study.attack.limit))
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


def one_run_verdict(found: OneRunForgetting, limit: float) -> dict[str, Any]:
    """Judge the canaries planted first, at the last checkpoint: the longest lag of the run.

    Where they were planted more or less often, all of them have to be within the limit. A PASS also
    needs the attack to have found them at some earlier checkpoint, and no later window, at half
    that lag or more, to be still beyond the limit at the end.
    """
    first = found.cohort == found.cohort.min()
    end = found.checkpoint == found.checkpoint.max()
    worst = int(np.flatnonzero(first & end)[np.argmax(found.high[first & end])])
    alike = end & ~first & (found.lags >= found.lags[worst] / 2.0)
    still = np.flatnonzero(alike & (found.low > limit))
    noticed = np.any((found.low > found.chance)[first]) or np.any(found.effect_low[first] > 0.0)
    if float(found.low[first & end].max()) > limit:
        outcome, after = "FAIL", f"all of it above the limit {limit:g}."
    elif float(found.high[worst]) > limit:
        outcome = "INCONCLUSIVE"
        after = f"the limit {limit:g} lies inside it: plant more canaries."
    elif not noticed:
        outcome = "INCONCLUSIVE"
        after = (
            "but the attack did not find them earlier either, so that this says nothing: plant "
            "them more often, or another kind."
        )
    elif still.size:
        outcome = "INCONCLUSIVE"
        after = (
            f"within the limit {limit:g}; but {_told(found, int(still[-1]))}, so that the lag "
            "alone does not decide."
        )
    else:
        outcome, after = "PASS", f"all of it within the limit {limit:g}."
    told = _told(found, worst)
    sentence = f"{told[0].upper()}{told[1:]}: {after}"
    return {
        "outcome": outcome,
        "sentence": sentence,
        "limit": limit,
        "lag": float(found.lags[worst]),
    }


def _told(found: OneRunForgetting, row: int) -> str:
    """One row in words."""
    at = "" if found.fpr is None else f" at a false-positive rate of {found.fpr:.0%}"
    return (
        f"{found.lags[row]:.0f} steps after their last use, canaries planted "
        f"{times(int(found.repeats[row]))} are found with {_RATES[found.rate]} of "
        f"{found.success[row]:.3f}{at} ({found.confidence:.0%} interval {found.low[row]:.3f} to "
        f"{found.high[row]:.3f}, one run)"
    )


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
