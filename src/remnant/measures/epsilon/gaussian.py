"""The privacy curve of a Gaussian mechanism: one number μ, and ε as a function of δ."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from remnant.errors import require
from remnant.measures.epsilon.arguments import check_delta, check_positive

Floats = NDArray[np.float64]


def gaussian_delta(*, mu: float, epsilon: ArrayLike) -> Floats:
    r"""Return the smallest δ at which a Gaussian mechanism is (ε, δ)-differentially private.

    An observer has to distinguish N(0, 1) from N(μ, 1), where μ is the sensitivity of one release
    in standard deviations of its noise: δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). It is exact (Balle
    and Wang 2018).

    Raises:
        InvalidInput: ``mu`` is not positive.

    Example:
        >>> float(gaussian_delta(mu=1.0, epsilon=1.0).round(4))
        0.1269
    """
    faults: list[str] = []
    check_positive("mu", mu, faults)
    require(faults)
    nats = np.asarray(epsilon, dtype=np.float64)
    missed = np.exp(nats + special.log_ndtr(-mu / 2.0 - nats / mu))
    return np.asarray(np.maximum(special.ndtr(mu / 2.0 - nats / mu) - missed, 0.0))


def gaussian_epsilon(*, mu: float, delta: float) -> float:
    """Return the ε of a Gaussian mechanism at δ; the inverse of ``gaussian_delta``.

    Args:
        mu: Distance of the two laws in standard deviations of the noise; 0 gives 0.
        delta: The δ, above 0.

    Returns:
        ε, at least 0 and finite.

    Raises:
        InvalidInput: ``mu`` is negative, or ``delta`` is not between 0 and 1.

    Example:
        >>> round(gaussian_epsilon(mu=1.0, delta=1e-5), 3)
        4.377
    """
    faults: list[str] = []
    check_delta(delta, faults, zero=False)
    if mu != 0.0:
        check_positive("mu", mu, faults)
    require(faults)
    if mu == 0.0 or float(gaussian_delta(mu=mu, epsilon=0.0)) <= delta:
        return 0.0
    # Φ(μ/2 − ε/μ) alone is at least δ(ε): where it equals δ, ε is not too small.
    high = mu * (mu / 2.0 - float(special.ndtri(delta)))
    return float(
        optimize.brentq(
            lambda nats: math.log(max(float(gaussian_delta(mu=mu, epsilon=nats)), 1e-320) / delta),
            0.0,
            high + 1e-9,
            xtol=1e-12,
        )
    )
