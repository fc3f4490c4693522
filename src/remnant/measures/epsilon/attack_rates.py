r"""A lower bound on epsilon from the hits and false alarms of an attack.

An (ε, δ)-differentially private training keeps the true positive rate t and the false positive
rate f of every attack in the region

    t <= e^ε f + δ,   1 - f <= e^ε (1 - t) + δ,   f <= e^ε t + δ,   1 - t <= e^ε (1 - f) + δ,

so rates outside of it show that ε is larger. The bounds take the counts' uncertainty in.

The method "joint-beta" takes the posterior of epsilon when both rates have Jeffreys posteriors.

P[ε-DP region] = E_t[F(high(t)) − F(low(t))], with t the true positive rate, F the posterior
distribution function of the false positive rate, and low(t) to high(t) the false positive rates
that (ε, δ) allows beside t: a one-dimensional integral. The integrand in θ, t = sin² θ, is smooth
between the points where a border of the region has a corner or F rises, also for Beta densities
that are infinite at 0 or 1. Gauss-Legendre rules on the panels between these points give it to
about 1e-8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from remnant.errors import require
from remnant.measures.epsilon.arguments import check_count, check_delta
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


Floats = NDArray[np.float64]
_NODES, _WEIGHTS = (
    np.asarray(array, dtype=np.float64) for array in np.polynomial.legendre.leggauss(12)
)
_TAILS = np.array([1e-12, 1e-7, 1e-4, 0.01, 0.1])
_LEVELS = np.concatenate([_TAILS, [0.5], 1.0 - _TAILS[::-1]])


def joint_beta_bound(
    hits: int, seen: int, alarms: int, unseen: int, *, delta: float, confidence: float
) -> float:
    """The ``1 - confidence`` quantile of ε under independent Jeffreys posteriors."""
    tpr = (hits + 0.5, seen - hits + 0.5)
    fpr = (alarms + 0.5, unseen - alarms + 0.5)
    levels = (quantiles(tpr), quantiles(fpr))
    wanted = float(special.ndtri(1.0 - confidence))

    @cache
    def excess(epsilon: float) -> float:
        """In normal quantiles, in which the posterior of ε is nearly a straight line."""
        private = private_probability(epsilon, tpr=tpr, fpr=fpr, delta=delta, levels=levels)
        return float(special.ndtri(min(max(private, 1e-250), 1.0 - 1e-16))) - wanted

    if excess(0.0) >= 0.0:
        return 0.0
    high = _epsilon_of_means(tpr, fpr)
    while excess(high) < 0.0:
        high *= 2.0
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-7))


def _epsilon_of_means(tpr: tuple[float, float], fpr: tuple[float, float]) -> float:
    """ε at the posteriors' means with δ = 0: near the median, so above most lower bounds."""
    seen, unseen = sum(tpr), sum(fpr)
    ratios = (tpr[0] / seen) / (fpr[0] / unseen), (fpr[1] / unseen) / (tpr[1] / seen)
    return max(0.1, *(abs(math.log(ratio)) for ratio in ratios))


def quantiles(posterior: tuple[float, float]) -> Floats:
    """Rates at which a Beta posterior is cut into panels."""
    return np.asarray(special.betaincinv(*posterior, _LEVELS))


def private_probability(
    epsilon: float,
    *,
    tpr: tuple[float, float],
    fpr: tuple[float, float],
    delta: float,
    levels: tuple[Floats, Floats] | None = None,
) -> float:
    """The posterior probability that the rates are ones that (ε, δ) allows.

    Args:
        epsilon: The ε, at least 0.
        tpr, fpr: Parameters of the rates' Beta posteriors, each at least 0.5.
        delta: The δ.
        levels: ``quantiles`` of both posteriors, where they are known already.
    """
    ratio = math.exp(min(epsilon, 700.0))
    by_tpr, by_fpr = levels or (quantiles(tpr), quantiles(fpr))
    edges = _panel_edges(ratio, by_tpr, by_fpr, delta)
    middles, halves = (edges[1:] + edges[:-1]) / 2.0, (edges[1:] - edges[:-1]) / 2.0
    angles = middles[:, None] + halves[:, None] * _NODES
    sines, cosines = np.sin(angles), np.cos(angles)
    density = 2.0 * np.exp(
        special.xlogy(2.0 * tpr[0] - 1.0, sines)
        + special.xlogy(2.0 * tpr[1] - 1.0, cosines)
        - special.betaln(*tpr)
    )
    hit_rate, miss_rate = sines**2, cosines**2
    low = np.maximum((hit_rate - delta) / ratio, 1.0 - delta - ratio * miss_rate)
    high = np.minimum(ratio * hit_rate + delta, 1.0 - (miss_rate - delta) / ratio)
    inside = special.betainc(*fpr, np.clip(high, 0.0, 1.0)) - special.betainc(
        *fpr, np.clip(low, 0.0, 1.0)
    )
    return float(np.clip(np.sum(halves[:, None] * _WEIGHTS * density * inside), 0.0, 1.0))


def _panel_edges(ratio: float, by_tpr: Floats, by_fpr: Floats, delta: float) -> Floats:
    """Angles between which the integrand is smooth and the Gauss rule is exact enough."""
    corner = (1.0 - delta) / (ratio + 1.0)
    edges = np.concatenate(
        [
            by_tpr,
            ratio * by_fpr + delta,  # where each border passes these false positive rates
            1.0 - (1.0 - delta - by_fpr) / ratio,
            (by_fpr - delta) / ratio,
            1.0 - delta - ratio * (1.0 - by_fpr),
            [corner, 1.0 - corner, delta, 1.0 - delta, (1.0 - delta) / ratio, 1.0],
            [1.0 - (1.0 - delta) / ratio],
        ]
    )
    inside = np.clip(edges, by_tpr[0], by_tpr[-1])
    return np.asarray(np.arcsin(np.sqrt(np.unique(np.clip(inside, 0.0, 1.0)))))
