"""The protect list: a rule made on some targets and checked on another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence
from remnant.measures import ProtectRule, protect_rule
from remnant.measures.prediction.quality import miss_rate
from remnant.studies.prediction.result import ListCheck, Predictor, ProtectList, RiskySample
from remnant.studies.shared.estimates import Estimate

if TYPE_CHECKING:
    from remnant.studies.prediction.early_looks import Bools, EarlyLooks, Floats
    from remnant.studies.prediction.pool_labels import Truth
    from remnant.studies.prediction.recipe import PredictSettings, TruthSettings

SHOWN = 25


class RiskOf(Protocol):
    """What gives the risk of a target's own training samples, at its stop."""

    def __call__(self, predictor: str, target: int) -> Floats:
        """Return one number a sample."""
        ...


def make_list(
    risk: RiskOf,
    predict: PredictSettings,
    settings: TruthSettings,
    evidence: EarlyLooks,
    truth: Truth,
) -> tuple[ProtectList, Bools]:
    """Make the rule on the fit targets but the last, check it there, list the first one's samples.

    A target is fit where its truth has few false alarms.

    Returns:
        The list, and which of all examples are on it.

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
    check, last = None, fit[-1]
    if len(fit) > 1:
        check = _check(rule, risks[last], memorised[last], predict, evidence.targets[last])
    protect = ProtectList(
        predictor=cast(Predictor, predict.predictor),
        miss=predict.miss,
        confidence=predict.list_confidence,
        stated=rule.stated,
        share=rule.share,
        listed=int(listed.sum()),
        n=int(seen[0].sum()),
        runs=rule.runs,
        missed=tuple(rule.missed.tolist()),
        unfit=tuple(model for place, model in enumerate(evidence.targets) if place not in fit),
        check=check,
        samples=_riskiest(risks[0], memorised[0], np.flatnonzero(seen[0]), evidence),
    )
    return protect, listed


def _riskiest(
    risk: Floats, memorised: Bools, places: NDArray[np.int64], evidence: EarlyLooks
) -> tuple[RiskySample, ...]:
    """The first target's samples of highest risk, the riskiest first."""
    return tuple(
        RiskySample(
            example=int(places[row]),
            kind=str(evidence.kinds[places[row]]),
            label=int(evidence.labels[places[row]]),
            risk=float(risk[row]),
            memorised=bool(memorised[row]),
        )
        for row in np.argsort(-risk, kind="stable")[:SHOWN]
    )


def _check(
    rule: ProtectRule, risk: Floats, memorised: Bools, predict: PredictSettings, model: int
) -> ListCheck:
    """Test the rule on a run that it was not made on.

    It is refuted where fewer than one less ``predict.confidence`` of runs like those that made it
    would miss as many; a rate above the stated one alone befalls some honest rules.
    """
    n = int(memorised.sum())
    if n == 0:
        raise NotEnoughEvidence("the last target memorised nothing, so that the list is unchecked.")
    listed = rule.listed(risk)
    missed = int(np.sum(memorised & ~listed))
    rate = Estimate.of(miss_rate(listed=listed, memorised=memorised, confidence=predict.confidence))
    held, chance = rate.value <= rule.stated, rule.chance(missed=missed, memorised=n)
    return ListCheck(
        memorised=n,
        missed=missed,
        rate=rate,
        held=held,
        chance=chance,
        refuted=not held and chance < 1.0 - predict.confidence,
        model=model,
    )
