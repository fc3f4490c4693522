"""One test for many canaries: was any of them memorised at all?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.measures.statistics.checks import read_floats

SHARED_PER_CANARY = 20
"""Least number of shared references per canary with which canaries are tested together."""


@dataclass(frozen=True, slots=True)
class PooledExposureTest:
    """Whether the canaries together are more exposed than chance makes them.

    Attributes:
        p_value: Small where they are.
        mean_bits: Their mean exposure.
        null_mean_bits: Upper bound of the mean if nothing was memorised: 1/ln 2 = 1.44 bits.
        n_canaries: How many canaries.
    """

    p_value: float
    mean_bits: float
    null_mean_bits: float
    n_canaries: int


def pooled_exposure_test(
    bits: ArrayLike, *, shared_references: int | None = None
) -> PooledExposureTest:
    """Test "no canary was memorised" on the exposures of all canaries.

    A canary that was not memorised has any rank with the same probability, so that its exposure
    times ln 2 is exponential, but for being rounded down to whole ranks, and

        ln 2 · Σ bits ~ Gamma(canaries, 1).

    The p-value is the probability of as large a sum. It holds for exact exposure, and for sampled
    exposure where each canary has references of its own; both are slightly conservative. Bits of
    ``extrapolated_exposure`` have no such law: do not pass them.

    Canaries that share ``n`` references err together, and the variance of the sum grows from ``m``
    to ``m (1 + m/n)``. With ``n = 20 m`` that is 5 % more, which takes a test at 5 % to 5.4 % at
    most, and under 5 % in small samples by the rounding down; with ``n = m`` the variance is twice
    as large and the size goes to 12 %. So fewer than twenty a canary are refused.

    Args:
        bits: Exposures of all canaries, one dimension; a number is one canary.
        shared_references: How many references all canaries were ranked among; None where the bits
            are exact or each canary had its own.

    Guarantees:
        * Under the null, ``p_value <= a`` has probability at most ``a``, if no reference is shared.
        * Uniform p-values for exact exposure in a large space.

    Raises:
        InvalidInput: Empty, NaN, infinite or negative bits.
        NotEnoughEvidence: Fewer than twenty shared references a canary.

    Example:
        >>> found = pooled_exposure_test([6.0, 1.0, 4.5, 3.0], shared_references=1000)
        >>> round(found.mean_bits, 2), round(found.p_value, 3)
        (3.62, 0.01)
    """
    faults: list[str] = []
    exposures = read_floats("bits", np.atleast_1d(bits), 1, faults)
    if exposures is not None and np.any(exposures < 0.0):
        faults.append(f"bits holds {np.count_nonzero(exposures < 0.0)} negative value(s)")
    counted = isinstance(shared_references, (int, np.integer)) and shared_references > 0
    if shared_references is not None and (isinstance(shared_references, bool) or not counted):
        faults.append(f"shared_references={shared_references!r} is not a positive whole number")
    require(faults)
    if exposures is None:
        raise InvalidInput("bits must be an array of numbers.")
    m = exposures.size
    if shared_references is not None and shared_references < SHARED_PER_CANARY * m:
        raise NotEnoughEvidence(
            f"shared_references={shared_references} are too few to test {m} canaries together; it "
            f"takes at least {SHARED_PER_CANARY * m}.",
            hint="Draw more references, give each canary its own, or rank exactly.",
        )
    return PooledExposureTest(
        p_value=float(special.gammaincc(m, math.log(2.0) * exposures.sum())),
        mean_bits=float(exposures.mean()),
        null_mean_bits=NULL_MEAN_BITS,
        n_canaries=m,
    )
