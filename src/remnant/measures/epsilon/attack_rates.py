r"""A lower bound on epsilon from the hits and false alarms of an attack.

An (ε, δ)-differentially private training keeps the true positive rate t and the false positive
rate f of every attack in the region

    t <= e^ε f + δ,   1 - f <= e^ε (1 - t) + δ,   f <= e^ε t + δ,   1 - t <= e^ε (1 - f) + δ,

so rates outside of it show that ε is larger. The bounds take the counts' uncertainty in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from remnant.errors import require
from remnant.measures.epsilon.arguments import check_count, check_delta
from remnant.measures.epsilon.joint_beta import joint_beta_bound
from remnant.measures.statistics.checks import check_share
from remnant.measures.statistics.intervals import clopper_pearson

Method = Literal["clopper-pearson", "joint-beta"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True, slots=True)
class EpsilonLowerBound:
    """A lower bound on ε, and the counts it was computed from.

    Attributes:
        value: The bound, in nats; 0 where the counts show no leak. Finite.
        estimate: ε at the observed rates, without uncertainty; infinite where a rate is 0 or 1 in
            a way that no finite ε allows. Never a bound.
        true_positives, seen: Hits of the attack among examples that were in the training.
        false_positives, unseen: Alarms among examples that were not.
        delta: The δ of the claim that is tested.
        confidence: One-sided confidence (credibility for "joint-beta") of ``value``.
        method: "clopper-pearson" or "joint-beta".
    """

    value: float
    estimate: float
    true_positives: int
    seen: int
    false_positives: int
    unseen: int
    delta: float
    confidence: float
    method: Method


def epsilon_lower_bound(
    *,
    true_positives: int,
    seen: int,
    false_positives: int,
    unseen: int,
    delta: float,
    confidence: float = 0.95,
    method: Method = "clopper-pearson",
) -> EpsilonLowerBound:
    """Bound ε from below by the counts of an attack with a fixed threshold.

    When it holds:
        * The threshold was fixed before these scores were seen. For a threshold that is chosen on
          the same scores use ``epsilon_from_scores``.
        * The counts are binomial: each of the ``seen + unseen`` decisions comes from a training of
          its own (or a canary whose coin and trace are independent of all others'). Canaries of
          one training share its randomness; use ``one_run_epsilon`` for them.
        * "clopper-pearson" is a confidence bound: it exceeds the true ε in at most
          ``1 - confidence`` of audits, whatever the rates. Each rate is taken at the level
          ``(1 + confidence) / 2``.
        * "joint-beta" is a credible bound (Zanella-Béguelin et al. 2023): the ``1 - confidence``
          quantile of ε when both rates have Jeffreys posteriors. It is higher, and has its error
          rate only on average over rates drawn from the prior. Two posterior rates are never
          equal, so that it is above 0 (up to 0.15 from 100 beside 100) even for an attack
          that sees nothing: compare it with the ε that was claimed, never with 0.

    Args:
        true_positives: Hits among the seen.
        seen: Decisions about examples that were in the training.
        false_positives: Alarms among the unseen.
        unseen: Decisions about examples that were not in the training.
        delta: The δ of the claim.
        confidence: One-sided.
        method: "clopper-pearson" or "joint-beta".

    Guarantees:
        * Never negative, never infinite; "clopper-pearson" is 0 where the rates' intervals overlap
          and never above ``estimate``.
        * An attack and its opposite (alarms and silence swapped) have the same bound.
        * Falls with ``delta`` and ``confidence``.

    Raises:
        InvalidInput: Counts that are not whole or exceed their totals, no seen or no unseen, a
            ``delta`` or ``confidence`` out of range, an unknown method.

    Example:
        >>> bound = epsilon_lower_bound(true_positives=90, seen=100, false_positives=5,
        ...     unseen=100, delta=1e-5)
        >>> round(bound.value, 3)
        1.988
    """
    faults: list[str] = []
    check_count("seen", seen, 1, None, faults)
    check_count("unseen", unseen, 1, None, faults)
    require(faults)
    check_count("true_positives", true_positives, 0, seen, faults)
    check_count("false_positives", false_positives, 0, unseen, faults)
    check_delta(delta, faults)
    check_share("confidence", confidence, faults)
    if method not in METHODS:
        faults.append(f"method={method!r} is not one of {', '.join(METHODS)}")
    require(faults)
    hits, n_seen = int(true_positives), int(seen)
    alarms, n_unseen = int(false_positives), int(unseen)
    value = (
        rates_bound(hits, n_seen, alarms, n_unseen, delta=delta, confidence=confidence)
        if method == "clopper-pearson"
        else joint_beta_bound(hits, n_seen, alarms, n_unseen, delta=delta, confidence=confidence)
    )
    estimate = max(
        epsilon_of_rates(hits / n_seen, alarms / n_unseen, delta),
        epsilon_of_rates(alarms / n_unseen, hits / n_seen, delta),
    )
    return EpsilonLowerBound(
        value, estimate, hits, n_seen, alarms, n_unseen, float(delta), float(confidence), method
    )


def rates_bound(
    hits: int, seen: int, alarms: int, unseen: int, *, delta: float, confidence: float
) -> float:
    """The Clopper-Pearson bound, in both directions, without checks."""
    tpr_low, tpr_high = (float(end) for end in clopper_pearson(hits, seen, confidence=confidence))
    fpr_low, fpr_high = (
        float(end) for end in clopper_pearson(alarms, unseen, confidence=confidence)
    )
    return max(
        epsilon_of_rates(tpr_low, fpr_high, delta), epsilon_of_rates(fpr_low, tpr_high, delta)
    )


def epsilon_of_rates(tpr: float, fpr: float, delta: float) -> float:
    """The smallest ε >= 0 for which ``tpr`` is not too high beside ``fpr``."""
    epsilon = 0.0
    for large, small in ((tpr - delta, fpr), (1.0 - fpr - delta, 1.0 - tpr)):
        if large > 0.0:
            epsilon = max(epsilon, math.log(large / small) if small > 0.0 else math.inf)
    return epsilon
