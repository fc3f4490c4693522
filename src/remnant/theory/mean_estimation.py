"""Mean estimation by SGD on random samples: how far apart twins still are after k steps.

Each step moves ``theta`` to ``theta - 2 eta (theta - x)`` with a fresh ``x`` from a normal law. The
twins first step on different points; the noise of the later samples then hides which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from remnant.errors import InvalidInput, require

Floats = NDArray[np.float64]


def renyi_divergence(*, k: int, eta: float, alpha: float, v: ArrayLike, sigma: ArrayLike) -> float:
    r"""The exact Rényi divergence of twins stepped on ``+v`` and ``-v``, ``k`` steps later.

    With :math:`u = (1 - 2\eta)^2`,

    .. math:: D_\alpha = \frac{2 \alpha u^k}{1 + u + \dots + u^{k-1}} \, v^T \Sigma^{-1} v.

    Args:
        k: Steps since the twins differed, at least 1: before the first random step each twin is a
            single point and the divergence is infinite.
        eta: Learning rate, in (0, 1). At 0.5 a step forgets everything.
        alpha: Order of the divergence, above 0; 1 is Kullback and Leibler's.
        v: The point, as seen from the mean; one twin stepped on it, the other on its mirror image.
        sigma: Covariance of the samples, positive definite, of the shape ``(d, d)``.

    Guarantees:
        * Falls with ``k`` and never passes ``renyi_bound``, which does not know ``eta``.
        * No loss of digits at tiny rates or after many steps.

    Raises:
        InvalidInput: An argument outside its range; all faults at once.

    Example:
        >>> round(renyi_divergence(k=10, eta=0.1, alpha=2.0, v=[1.0], sigma=[[1.0]]), 6)
        0.016796
    """
    faults = _faults_of(k=k, eta=eta, alpha=alpha)
    squared = _squared_length(v, sigma, faults)
    return 2.0 * alpha * _kept(k, eta) * squared


def renyi_divergence_of_seen(
    *, k: int, eta: float, alpha: float, v: ArrayLike, sigma: ArrayLike
) -> float:
    """The same for a twin that stepped on a point and one that took no step: a quarter of it.

    Args:
        k, eta, alpha, sigma: As for ``renyi_divergence``.
        v: The point, as seen from where the twins stood before that step.

    Raises:
        InvalidInput: An argument outside its range; all faults at once.
    """
    return renyi_divergence(k=k, eta=eta, alpha=alpha, v=v, sigma=sigma) / 4.0


def renyi_bound(*, k: int, alpha: float, v: ArrayLike, sigma: ArrayLike) -> float:
    """The bound ``(2 alpha / k) v' sigma^-1 v`` on ``renyi_divergence``, at any learning rate.

    Args:
        k, alpha, v, sigma: As for ``renyi_divergence``.

    Raises:
        InvalidInput: An argument outside its range; all faults at once.

    Example:
        >>> renyi_bound(k=10, alpha=2.0, v=[1.0], sigma=[[1.0]])
        0.4
    """
    faults = _faults_of(k=k, eta=0.25, alpha=alpha)
    return 2.0 * alpha / k * _squared_length(v, sigma, faults)


@dataclass(frozen=True, slots=True)
class SimulatedDivergence:
    """The divergence as seen in simulated twins.

    Attributes:
        value: Estimated from the final positions.
        low, high: Its interval, from the exact law of normal positions; it always holds ``value``.
        runs: How many of each twin were run.
        confidence: Of the interval.
    """

    value: float
    low: float
    high: float
    runs: int
    confidence: float


def simulate_mean_estimation(
    *,
    k: int,
    eta: float,
    alpha: float,
    v: ArrayLike,
    sigma: ArrayLike,
    runs: int,
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> SimulatedDivergence:
    """Run the twins and measure their divergence from where they end.

    Both twins start at the mean, step on ``+v`` or ``-v``, and take ``k`` random steps of their
    own. Normal laws of one covariance differ along one direction only; the positions along it are
    two samples whose distance in standard deviations is a non-central t.

    Args:
        k, eta, alpha, v, sigma: As for ``renyi_divergence``.
        runs: Of each twin, at least 2.
        rng: Where the samples come from.
        confidence: Of the interval.

    Raises:
        InvalidInput: An argument outside its range; all faults at once.
    """
    faults = _faults_of(k=k, eta=eta, alpha=alpha)
    if isinstance(runs, bool) or not isinstance(runs, (int, np.integer)) or runs < 2:
        faults.append(f"runs={runs!r} is not a whole number of at least 2")
    if not 0.0 < confidence < 1.0:
        faults.append(f"confidence={confidence!r} is not between 0 and 1")
    _squared_length(v, sigma, faults)
    point, covariance = np.asarray(v, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    root = np.linalg.cholesky(covariance)
    direction = np.linalg.solve(covariance, point)
    ends = []
    for sign in (1.0, -1.0):
        position = np.tile(sign * 2.0 * eta * point, (runs, 1))
        for _ in range(k):
            sample = rng.standard_normal((runs, point.size)) @ root.T
            position += 2.0 * eta * (sample - position)
        ends.append(position @ direction)
    distance, low, high = _distance(ends[0], ends[1], confidence)
    half = alpha / 2.0
    return SimulatedDivergence(
        value=half * distance**2,
        low=half * low**2,
        high=half * high**2,
        runs=int(runs),
        confidence=float(confidence),
    )


def _distance(first: Floats, second: Floats, confidence: float) -> tuple[float, float, float]:
    """The distance of two normal samples in standard deviations, and its interval."""
    n = first.size
    spread = math.sqrt((float(first.var(ddof=1)) + float(second.var(ddof=1))) / 2.0)
    scale, freedom = math.sqrt(n / 2.0), 2 * n - 2
    seen = abs(float(first.mean() - second.mean())) / spread * scale
    tail = (1.0 - confidence) / 2.0

    def at_most_seen(shift: float) -> float:
        """How probable a distance at or under the one seen is, its sign left out."""
        return float(special.ncfdtr(1.0, freedom, shift**2, seen**2))

    def where(level: float) -> float:
        if at_most_seen(0.0) <= level:
            return 0.0
        far = seen + 10.0 * math.sqrt(1.0 + seen**2 / (2.0 * freedom))
        return float(optimize.brentq(lambda shift: at_most_seen(shift) - level, 0.0, far))

    # A distance near 0 is seen as more than it is: the interval takes it in as well.
    low, high = min(where(1.0 - tail), seen), max(where(tail), seen)
    return seen / scale, low / scale, high / scale


def _kept(k: int, eta: float) -> float:
    """u^k / (1 + u + ... + u^(k-1)) with u = (1 - 2 eta)^2."""
    if eta == 0.5:
        return 0.0
    log_u = 2.0 * math.log(abs(1.0 - 2.0 * eta)) if eta > 0.25 else 2.0 * math.log1p(-2.0 * eta)
    total = -math.expm1(k * log_u) / (4.0 * eta * (1.0 - eta))
    return math.exp(k * log_u) / total


def _squared_length(v: ArrayLike, sigma: ArrayLike, faults: list[str]) -> float:
    """``v' sigma^-1 v``, or all faults found so far."""
    point, covariance = np.asarray(v, dtype=np.float64), np.asarray(sigma, dtype=np.float64)
    d = point.size
    if point.ndim != 1 or d == 0 or not np.all(np.isfinite(point)):
        faults.append("v is not a row of finite numbers")
    elif covariance.shape != (d, d):
        faults.append(f"sigma has the shape {covariance.shape}; v needs ({d}, {d})")
    elif not np.all(np.isfinite(covariance)) or not np.allclose(covariance, covariance.T):
        faults.append("sigma is not a symmetric matrix of finite numbers")
    require(faults)
    try:
        whitened = np.linalg.solve(np.linalg.cholesky(covariance), point)
    except np.linalg.LinAlgError:
        raise InvalidInput(
            "sigma is not positive definite.",
            hint="Along a direction without noise nothing is forgotten; leave it out.",
        ) from None
    return float(whitened @ whitened)


def _faults_of(*, k: object, eta: float, alpha: float) -> list[str]:
    faults = []
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        faults.append(f"k={k!r} is not a whole number of at least 1")
    if not 0.0 < eta < 1.0:
        faults.append(f"eta={eta!r} is not between 0 and 1")
    if not 0.0 < alpha < math.inf:
        faults.append(f"alpha={alpha!r} is not above 0")
    return faults
