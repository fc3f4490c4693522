r"""The posterior of epsilon when both rates of an attack have Jeffreys posteriors.

P[ε-DP region] = E_t[F(high(t)) − F(low(t))], with t the true positive rate, F the posterior
distribution function of the false positive rate, and low(t) to high(t) the false positive rates
that (ε, δ) allows beside t: a one-dimensional integral. The integrand in θ, t = sin² θ, is smooth
between the points where a border of the region has a corner or F rises, also for Beta densities
that are infinite at 0 or 1. Gauss-Legendre rules on the panels between these points give it to
about 1e-8.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

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
