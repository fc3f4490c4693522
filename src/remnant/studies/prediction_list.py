"""The protect list: a rule made on some targets, checked on another, and what the verdict says."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from remnant.errors import NotEnoughEvidence
from remnant.measures import ProtectRule, clopper_pearson, protect_rule
from remnant.studies.prediction_evidence import Bools, Evidence, Floats
from remnant.studies.prediction_settings import PredictSettings, TruthSettings
from remnant.studies.prediction_truth import Truth

SHOWN = 25


class RiskOf(Protocol):
    """What gives the risk of a target's own training samples, at its stop."""

    def __call__(self, predictor: str, target: int) -> Floats:
        """Return one number a sample."""
        ...


def protect_fields(
    risk: RiskOf,
    predict: PredictSettings,
    settings: TruthSettings,
    evidence: Evidence,
    truth: Truth,
) -> tuple[dict[str, Any], Bools]:
    """Make the rule on the fit targets but the last, check it there, list the first one's samples.

    A target is fit where its truth has few false alarms.

    Returns:
        The list as plain data, and which of all examples are on it.

    Raises:
        NotEnoughEvidence: A target memorised nothing.
    """
    seen = evidence.pool.seen[list(evidence.targets)]
    fit = np.flatnonzero(truth.false_alarms <= settings.false_alarms).tolist()
    if not fit:
        raise NotEnoughEvidence(
            "every target calls too many samples memorised that it never saw.",
            hint="Let the learning rate fall to 0, so that models end alike, or train more models.",
        )
    risks = {target: risk(predict.predictor, target) for target in {0, *fit}}
    memorised = {
        target: truth.local[target, seen[target]] >= settings.threshold for target in risks
    }
    made_on = fit[:-1] or fit
    rule = protect_rule(
        risks=[risks[target] for target in made_on],
        memorised=[memorised[target] for target in made_on],
        miss=predict.miss,
        confidence=predict.list_confidence,
    )
    listed = np.zeros(seen.shape[1], dtype=bool)
    listed[seen[0]] = rule.listed(risks[0])
    check = None
    if len(fit) > 1:
        last = fit[-1]
        check = _check(rule, risks[last], memorised[last], predict)
        check["model"] = evidence.targets[last]
    places = np.flatnonzero(seen[0])
    riskiest = np.argsort(-risks[0], kind="stable")[:SHOWN]
    return {
        "predictor": predict.predictor,
        "miss": predict.miss,
        "confidence": predict.list_confidence,
        "stated": rule.stated,
        "share": rule.share,
        "listed": int(listed.sum()),
        "n": int(seen[0].sum()),
        "runs": rule.runs,
        "missed": rule.missed.tolist(),
        "unfit": [one for place, one in enumerate(evidence.targets) if place not in fit],
        "check": check,
        "samples": [
            {
                "example": int(places[row]),
                "kind": str(evidence.kinds[places[row]]),
                "label": int(evidence.labels[places[row]]),
                "risk": float(risks[0][row]),
                "memorised": bool(memorised[0][row]),
            }
            for row in riskiest
        ],
    }, listed


def _check(
    rule: ProtectRule, risk: Floats, memorised: Bools, predict: PredictSettings
) -> dict[str, Any]:
    """Hold the rule against a run that it was not made on.

    It is refuted where fewer than one less ``predict.confidence`` of runs like those that made it
    would miss as many; a rate above the stated one alone befalls some honest rules.
    """
    n = int(memorised.sum())
    if n == 0:
        raise NotEnoughEvidence("the last target memorised nothing, so that the list is unchecked.")
    missed = int(np.sum(memorised & ~rule.listed(risk)))
    low, high = clopper_pearson(missed, n, confidence=predict.confidence)
    held, chance = missed / n <= rule.stated, rule.chance(missed=missed, memorised=n)
    return {
        "memorised": n,
        "missed": missed,
        "rate": [missed / n, float(low), float(high)],
        "held": held,
        "chance": chance,
        "refuted": not held and chance < 1.0 - predict.confidence,
    }


def verdict_fields(protect: dict[str, Any], predict: PredictSettings) -> dict[str, Any]:
    """Say whether a list short enough leaves out as little as was asked for."""
    share, check = protect["share"], protect["check"]
    told = (
        f"Protecting the riskiest {share:.1%} of samples, known early by {predict.predictor}, is "
        f"stated to leave out at most {protect['stated']:.1%} of those that are memorised"
    )
    checked = ""
    if check is not None:
        rate, low, high = check["rate"]
        checked = (
            f"; on a model of another seed it left out {rate:.1%} of {check['memorised']} "
            f"({predict.confidence:.0%} interval {low:.1%} to {high:.1%})"
        )
    if check is None:
        outcome, after = "INCONCLUSIVE", "no other seed was there to check it."
    elif check["refuted"]:
        outcome = "FAIL"
        after = f"more than was stated; {check['chance']:.1%} of such runs would by chance."
    elif not check["held"]:
        outcome = "INCONCLUSIVE"
        after = (
            f"more than was stated, but {check['chance']:.1%} of such runs would by chance, and "
            f"the list allows for {1.0 - protect['confidence']:.0%}; let more targets make it."
        )
    elif share > predict.limit:
        outcome = "FAIL"
        after = f"a list longer than the limit of {predict.limit:.0%}."
    else:
        outcome, after = "PASS", f"within the limit of {predict.limit:.0%} of samples."
    sentence = f"{told}{checked}: {after}"
    return {"outcome": outcome, "sentence": sentence, "limit": predict.limit, "lag": None}
