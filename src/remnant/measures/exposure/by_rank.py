"""Exposure of canaries, by their rank among sampled references."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.exposure.losses import read_losses
from remnant.measures.statistics.checks import check_share
from remnant.measures.statistics.count_interval import count_ends
from remnant.measures.statistics.counting import at_or_under

Floats = NDArray[np.float64]

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
