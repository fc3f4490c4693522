"""Exposure of canaries by their rank among sampled references, calibrated, and tested together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share, read_floats, real_numbers
from remnant.measures.statistics.counting import at_or_under
from remnant.measures.statistics.intervals import count_ends

Floats = NDArray[np.float64]


def read_losses(name: str, given: ArrayLike, faults: list[str]) -> Floats | None:
    """The 1-D float64 array in ``given``; or None, with the reason added to ``faults``.

    A single number is one loss. ``+inf``, the loss of a secret with probability 0, is legal;
    NaN and ``-inf`` are not.

    Args:
        name: The argument's name, for the message.
        given: Anything array-like.
        faults: Grows by one sentence part where something is wrong.
    """
    try:
        array = np.atleast_1d(np.asarray(real_numbers(given), dtype=np.float64))
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor with a gradient
        faults.append(f"{name} is not an array of numbers")
        return None
    if array.ndim != 1:
        faults.append(f"{name} has shape {array.shape}, not 1 dimension")
        return None
    if array.size == 0:
        faults.append(f"{name} is empty")
        return None
    # The minimum is NaN where anything is, and costs one pass.
    if not np.min(array) > -np.inf:
        bad = np.count_nonzero(~(array > -np.inf))
        faults.append(f"{name} holds {bad} value(s) that are NaN or -inf")
        return None
    return array


NULL_MEAN_BITS = 1.0 / math.log(2.0)
"""The mean exposure of a canary that nobody planted: 1.44 bits. Two bits are noise."""

FOUND = 0.01
"""Canaries count as found if their p-value against chance is at most this."""


def is_found(p_value: float | None) -> bool:
    """Whether a p-value, if there is one, is at most ``FOUND``."""
    return p_value is not None and p_value <= FOUND


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """Exposure of each canary, and how far the references could have shown it.

    Attributes:
        bits: Exposure per canary, shape ``(canaries,)``, in the order given.
        low, high: The interval of each canary's exact exposure, for that canary alone; it always
            holds ``bits``. ``high`` is ``inf`` where no reference was at or under the canary and
            no ``space`` was given. References that cost exactly as much as a canary count as
            dearer in ``high``: costs that are capped or rounded tie like this.
        saturated: True where no reference was at or under the canary: read ``bits`` as "at least".
        at_or_under: How many references were.
        tied: How many of them cost exactly as much.
        n_references: How many references there were.
        ceiling: ``log2(n_references + 1)``, the maximum of ``bits``.
        space: How many secrets there are; None where it was not given.
        confidence: Of each interval.
        method: "sampled".
    """

    bits: Floats
    low: Floats
    high: Floats
    saturated: NDArray[np.bool_]
    at_or_under: NDArray[np.int64]
    tied: NDArray[np.int64]
    n_references: int
    ceiling: float
    space: int | None
    confidence: float
    method: str = "sampled"


def exposure(
    *,
    canary_losses: ArrayLike,
    reference_losses: ArrayLike,
    space: int | None = None,
    confidence: float = 0.95,
) -> Exposure:
    r"""Rank each canary among references it could have been.

    The exact exposure of a canary is ``-log2(rank / space)``, where ``rank`` counts the secrets
    that cost no more than it, itself included. Of ``n`` references drawn from the space, ``k`` cost
    no more, and

    .. math:: \mathrm{bits} = \log_2(n + 1) - \log_2(1 + k).

    The interval is Clopper and Pearson's of ``k`` in ``n``, in bits. It is for one canary. Canaries
    ranked among the same references err together: do not read all intervals at once, or average
    their ends.

    References may be drawn with or without replacement from the whole space, or without replacement
    from the space less the canary: the interval holds as it is. Two cases need ``space``: other
    canaries were left out of the draw as well (they may all be cheaper, and no reference shows it),
    or the canary was left out and there are nearly as many references as secrets, with repeats.
    The interval then allows for any of the canaries given here having been left out, and never
    passes ``log2(space)``. In a space much larger than references times canaries none of this
    matters.

    Args:
        canary_losses: One loss a canary, in any unit; a number is one canary. ``+inf`` is legal.
        reference_losses: Losses of secrets drawn from the same space, under the same model.
        space: The number of secrets, ``Template.space``.
        confidence: Of each canary's interval.

    Guarantees:
        * A model that scores everything alike exposes nothing (ties count against the canary);
          ``high`` then says nothing.
        * Any strictly increasing map of all losses leaves the result unchanged.
        * The order of the references does not matter; the canaries keep theirs.
        * Each interval covers its canary's exact exposure with at least ``confidence``.

    Raises:
        InvalidInput: Empty, NaN or ``-inf`` losses, more than one dimension, a ``confidence``
            outside (0, 1), a ``space`` smaller than the number of canaries; all listed at once.

    Example:
        >>> found = exposure(canary_losses=[0.5, 9.0], reference_losses=[1.0, 2.0, 3.0])
        >>> found.bits.tolist(), found.saturated.tolist()
        ([2.0, 0.0], [True, False])
    """
    faults: list[str] = []
    canaries = read_losses("canary_losses", canary_losses, faults)
    references = read_losses("reference_losses", reference_losses, faults)
    _check_space(space, canaries, faults)
    check_share("confidence", confidence, faults)
    require(faults)
    if canaries is None or references is None:
        raise InvalidInput("canary_losses and reference_losses must be arrays of numbers.")

    n, k = references.size, at_or_under(canaries, references)
    bits = np.log2(n + 1.0) - np.log2(k + 1.0)
    cheaper = at_or_under(np.nextafter(canaries, -math.inf), references)
    most = count_ends(k, n, float(confidence))[1]
    least = count_ends(cheaper, n, float(confidence))[0]
    top = math.inf
    if space is not None:
        upto = at_or_under(canaries, canaries)
        # Python divides whole numbers of any size; NumPy does not.
        least = least * (1.0 - (canaries.size - upto) * (1 / int(space)))
        most = most + (1.0 - most) * upto * (1 / int(space))
        top = math.log2(space)
    with np.errstate(divide="ignore"):
        # Adding zero turns the -0.0 of a share of 1 into 0.0.
        low, high = -np.log2(most) + 0.0, -np.log2(least) + 0.0
    return Exposure(
        bits=bits,
        low=np.minimum(low, bits),
        high=np.maximum(np.minimum(high, top), bits),
        saturated=k == 0,
        at_or_under=k,
        tied=k - cheaper,
        n_references=n,
        ceiling=math.log2(n + 1),
        space=None if space is None else int(space),
        confidence=float(confidence),
    )


def references_to_show(bits: float, *, confidence: float = 0.95) -> int:
    """Return how many references it takes to show that an exposure is at least so many bits.

    It is the least ``n`` with which ``low`` reaches ``bits`` where no reference is as cheap as the
    canary, in a space much larger than ``n``: some ``3.7 * 2**bits``.

    Raises:
        InvalidInput: ``bits`` is not above 0 and finite, or ``confidence`` is outside (0, 1).

    Example:
        >>> references_to_show(10.0), references_to_show(20.0)
        (3776, 3868069)
    """
    faults: list[str] = []
    if not 0.0 < bits < math.inf:
        faults.append(f"bits={bits!r} is not above 0 and finite")
    check_share("confidence", confidence, faults)
    require(faults)
    # Nobody can draw more than this, and 2**bits ends at 1024.
    share = 2.0 ** -min(float(bits), 1000.0)
    return math.ceil(math.log((1.0 - confidence) / 2.0) / math.log1p(-share))


def limit_for(canaries: int) -> float:
    """Return the least limit, in tenths of a bit, that chance alone seldom reaches.

    A canary that was never memorised has ``b`` bits or more with probability ``2**-b``. One or more
    of so many canaries have the limit with a probability of at most 1 %.

    Example:
        >>> limit_for(1), limit_for(20), limit_for(60)
        (6.7, 11.0, 12.6)
    """
    share = -math.expm1(math.log1p(-FOUND) / canaries)
    return math.ceil(-10.0 * math.log2(share)) / 10.0


def _check_space(space: object, canaries: Floats | None, faults: list[str]) -> None:
    if space is None:
        return
    if isinstance(space, bool) or not isinstance(space, (int, np.integer)):
        faults.append(f"space={space!r} is not a whole number")
    elif space < (1 if canaries is None else canaries.size):
        held = "one secret" if canaries is None else f"{canaries.size} canaries"
        faults.append(f"space={space} cannot hold {held}")


def calibrated_losses(*, losses: ArrayLike, reference_model_losses: ArrayLike) -> Floats:
    """Subtract the mean loss over models that never saw a canary.

    Some secrets are cheap under any model ("1111"); what is left after subtraction is what this
    model learned. Calibrate canaries and references alike, with the same models, and pass both to
    ``exposure``. Only sampling can rank calibrated losses: they may fall as a secret grows longer,
    so no prefix can be ruled out, and no law is known to fit them.

    Args:
        losses: The model's, shape ``(secrets,)``.
        reference_model_losses: Of the same secrets in the same unit, shape ``(models, secrets)``.

    Returns:
        Shape ``(secrets,)``; negative where this model finds a secret cheaper than they do.

    Guarantees:
        * The order of the models does not matter (up to rounding).
        * What makes a secret cheaper for all models alike does not expose it.

    Raises:
        InvalidInput: NaN or infinite losses, or shapes that disagree; all listed at once.

    Example:
        >>> calibrated_losses(losses=[9.0, 4.0], reference_model_losses=[[9.0, 5.0], [11.0, 5.0]])
        array([-1., -1.])
    """
    faults: list[str] = []
    own = read_floats("losses", losses, 1, faults)
    others = read_floats("reference_model_losses", reference_model_losses, 2, faults)
    if own is not None and others is not None and others.shape[1] != own.size:
        faults.append(
            f"reference_model_losses have shape {others.shape}, not (models, {own.size}) as the "
            "losses ask for"
        )
    require(faults)
    if own is None or others is None:
        raise InvalidInput("losses and reference_model_losses must be arrays of numbers.")
    return np.asarray(own - others.mean(axis=0))


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
