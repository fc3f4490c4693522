"""Exposure beyond the cheapest reference, by a law fitted to the references."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, require
from remnant.measures.exposure.by_rank import read_losses
from remnant.measures.statistics.checks import check_rng, read_floats
from remnant.measures.statistics.skew_normal import SkewNormal
from remnant.measures.statistics.skew_normal_fit import SkewNormalFit, fit_checked

Floats = NDArray[np.float64]

DOUBTFUL_PVALUE = 0.1
"""At or under this p-value of the Kolmogorov-Smirnov test, the references do not follow the fit."""


@dataclass(frozen=True, slots=True, eq=False)
class ExtrapolatedExposure:
    """What a law fitted to the references says of each canary. An estimate without an interval.

    Attributes:
        bits: Exposure per canary, shape ``(canaries,)``, in the order given; it has no upper bound.
        extrapolated: True where the canary is cheaper than every reference, so that nothing but
            the form of the law speaks for ``bits``.
        doubtful: The law does not describe the references: a p-value of 0.1 or less, a fit at the
            boundary of the family or one that did not come to rest.
        ks_pvalue: Kolmogorov-Smirnov p-value of the references against their own fit, too lenient.
        bootstrap_pvalue: The same with the fit allowed for; None where it was not asked for.
        fit: The fitted law.
        n_references: How many references there were.
        method: "skew-normal".
    """

    bits: Floats
    extrapolated: NDArray[np.bool_]
    doubtful: bool
    ks_pvalue: float
    bootstrap_pvalue: float | None
    fit: SkewNormalFit
    n_references: int
    method: str = "skew-normal"


def extrapolated_exposure(
    *,
    canary_losses: ArrayLike,
    reference_losses: ArrayLike,
    bootstrap_draws: int = 0,
    rng: np.random.Generator | None = None,
) -> ExtrapolatedExposure:
    """Read each canary's exposure off a skew-normal law fitted to the references.

    ``bits = -log2 F(canary)``, F the distribution function of the fit. Use it where ``exposure`` is
    saturated and the space too large to rank exactly, and only next to its p-value: nothing in the
    references tells how the law goes on below the cheapest of them, and an estimate may be bits off
    either way. A fit that is not rejected is not thereby right.

    ``ks_pvalue`` is computed as in the Secret Sharer, by the two-sided one-sample test against the
    law fitted to the same values. The test takes the law for one fixed beforehand, so its p-values
    are too large: a small one rejects the fit, a large one says little. ``bootstrap_draws`` asks
    for an honest one: so many samples are drawn from the fit and fitted anew, and the p-value is
    the share of them (the references counted among them) that lie as far from their own fit.

    Args:
        canary_losses: One loss a canary; a number is one canary. ``+inf`` is legal.
        reference_losses: Losses of secrets drawn from the same space; finite.
        bootstrap_draws: 0, or at least 20.
        rng: Where the draws come from; needed for them alone.

    Guarantees:
        * Finite for every finite loss, thousands of bits out.
        * A map ``c x + t`` of all losses, ``c > 0``, leaves the bits unchanged, up to rounding.
        * The cheaper of two canaries is not exposed less.

    Raises:
        InvalidInput: Faulty losses or settings, all listed at once.
        NotEnoughEvidence: Fewer than ten references, or fewer than three different ones.

    Example:
        The exact exposure of the second canary is 39.5 bits, and no alarm goes off.

        >>> references = np.random.default_rng(0).normal(30.0, 3.0, size=10_000)
        >>> found = extrapolated_exposure(canary_losses=[30.0, 9.0], reference_losses=references)
        >>> found.bits.round().tolist(), found.extrapolated.tolist(), found.doubtful
        ([1.0, 37.0], [False, True], False)
    """
    faults: list[str] = []
    canaries = read_losses("canary_losses", canary_losses, faults)
    references = read_floats("reference_losses", reference_losses, 1, faults)
    _check_bootstrap(bootstrap_draws, rng, faults)
    require(faults)
    if canaries is None or references is None:
        raise InvalidInput("canary_losses and reference_losses must be arrays of numbers.")

    fit = fit_checked("reference_losses", references)
    distance = _distance(fit, references)
    ks_pvalue = float(np.clip(stats.kstwo.sf(distance, references.size), 0.0, 1.0))
    honest = None
    if rng is not None and bootstrap_draws:
        redrawn = [_redrawn(fit, references.size, rng) for _ in range(bootstrap_draws)]
        honest = (1 + sum(drawn >= distance for drawn in redrawn)) / (bootstrap_draws + 1)
    least = min(ks_pvalue, 1.0 if honest is None else honest)
    return ExtrapolatedExposure(
        # Adding zero turns the -0.0 of a probability of 1 into 0.0.
        bits=-fit.log_cdf(canaries) / math.log(2.0) + 0.0,
        extrapolated=canaries < references.min(),
        doubtful=least <= DOUBTFUL_PVALUE or fit.at_boundary or not fit.converged,
        ks_pvalue=ks_pvalue,
        bootstrap_pvalue=honest,
        fit=fit,
        n_references=references.size,
    )


def _distance(law: SkewNormal, values: Floats) -> float:
    """The largest gap between the law and the steps of the sample, from either side."""
    share = law.cdf(np.sort(values))
    steps = np.arange(values.size + 1) / values.size
    return float(max((steps[1:] - share).max(), (share - steps[:-1]).max()))


def _redrawn(law: SkewNormal, n: int, rng: np.random.Generator) -> float:
    sample = law.sample(n, rng=rng)
    return _distance(fit_checked("sample", sample), sample)


def _check_bootstrap(draws: object, rng: object, faults: list[str]) -> None:
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)):
        faults.append(f"bootstrap_draws={draws!r} is not a whole number")
    elif draws and draws < 20:
        faults.append(f"bootstrap_draws={draws} is neither 0 nor at least 20")
    elif draws:
        check_rng(rng, faults)
