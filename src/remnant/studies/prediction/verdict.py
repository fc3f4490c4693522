"""The finding of a prediction study: which samples to protect, or why there is no list."""

from __future__ import annotations

import math
from typing import cast

from remnant.measures.forgetting.verdict import cannot_exclude
from remnant.records.outcomes import RULES
from remnant.studies.prediction.recipe import PredictSettings
from remnant.studies.prediction.result import ProtectList
from remnant.studies.shared.result_parts import Finding


def list_finding(protect: ProtectList, predict: PredictSettings) -> Finding:
    """The finding: which samples to protect, what the list may miss, and what a check showed.

    A list has no limit on harm, so there is no outcome. ``predict.limit`` is the longest list that
    is called short.
    """
    check = protect.check
    unseen = "" if protect.listed == protect.n else f"; {cannot_exclude(protect.runs)}"
    sentence = (
        f"Protect {protect.listed} of {protect.n} samples: misses at most "
        f"{_rounded_up(protect.stated)} of the memorised ones "
        f"({100 * protect.confidence:.0f} % confidence{unseen})."
    )
    if check is not None:
        sentence += f" An independent run missed {check.missed} of {check.memorised}."
        chance = f"{100 * cast(float, check.chance):.1f} %"  # known for every list made today
    if check is None:
        headline = "The protect list is unchecked"
        advice = "Train one more target, so that an independent run checks the list."
    elif check.refuted:
        headline = "The protect list misses more than it states"
        sentence += f" By chance {chance} of runs miss as many."
        advice = "Do not use this list. Make it on more targets, or protect every sample."
    elif not check.held:
        headline = "The protect list may miss more than it states"
        sentence += f" That is more than stated, but {chance} of runs miss as many by chance."
        advice = "Make the list on more targets before you rely on it."
    elif protect.share > predict.limit:
        headline = "Only a long list holds the memorised samples"
        sentence += f" A list of at most {100 * predict.limit:.0f} % was asked for."
        advice = (
            "Protect every sample, for example with DP-SGD, or change the training so that it "
            "memorises less."
        )
    else:
        headline = "A short list holds most memorised samples"
        advice = "Remove, mask or protect the samples on the list, then train again."
    return Finding(headline=headline, sentence=sentence, advice=advice, rules=RULES)


def no_list_finding(reason: str) -> Finding:
    """The finding where no list can be made."""
    return Finding(
        headline="No protect list can be made",
        sentence=f"Prediction cannot be checked: {reason}",
        advice="Change the setting that the sentence names, or train longer, and run it again.",
        rules=RULES,
    )


def _rounded_up(share: float) -> str:
    """A share in whole percent, no smaller: a bound is not rounded down."""
    return f"{math.ceil(100.0 * share - 1e-9)} %"
