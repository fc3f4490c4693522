"""The protect list: a rule made on some targets, checked on another, and what to do with it."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from remnant.errors import NotEnoughEvidence
from remnant.measures import ProtectRule, clopper_pearson, protect_rule
from remnant.records import finding_row
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
    """The finding: which samples to protect, what the list may miss, and what a check showed.

    A list has no limit on harm, so there is no outcome. ``predict.limit`` is the longest list that
    is called short.
    """
    share, check = protect["share"], protect["check"]
    sentence = (
        f"Protect {protect['listed']} of {protect['n']} samples: misses at most "
        f"{_rounded_up(protect['stated'])} of the memorised ones "
        f"({100 * protect['confidence']:.0f} % confidence)."
    )
    if check is not None:
        sentence += f" An independent run missed {check['missed']} of {check['memorised']}."
    if check is None:
        headline = "The protect list is unchecked"
        advice = "Train one more target, so that an independent run checks the list."
    elif check["refuted"]:
        headline = "The protect list misses more than it states"
        sentence += f" By chance {100 * check['chance']:.1f} % of runs miss as many."
        advice = "Do not use this list. Make it on more targets, or protect every sample."
    elif not check["held"]:
        headline = "The protect list may miss more than it states"
        sentence += (
            f" That is more than stated, but {100 * check['chance']:.1f} % of runs miss as many "
            "by chance."
        )
        advice = "Make the list on more targets before you rely on it."
    elif share > predict.limit:
        headline = "Only a long list holds the memorised samples"
        sentence += f" A list of at most {100 * predict.limit:.0f} % was asked for."
        advice = (
            "Protect every sample, for example with DP-SGD, or change the training so that it "
            "memorises less."
        )
    else:
        headline = "A short list holds most memorised samples"
        advice = "Remove, mask or protect the samples on the list, then train again."
    return finding_row(headline=headline, sentence=sentence, advice=advice)


def _rounded_up(share: float) -> str:
    """A share in whole percent, no smaller: a bound is not rounded down."""
    return f"{math.ceil(100.0 * share - 1e-9)} %"


def no_list_fields(reason: str) -> dict[str, Any]:
    """The finding where no list can be made."""
    return finding_row(
        headline="No protect list can be made",
        sentence=f"Prediction cannot be checked: {reason}",
        advice="Change the setting that the sentence names, or train longer, and run it again.",
    )
