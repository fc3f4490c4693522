"""Which examples are still exposed? The last ones that training used."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from remnant.errors import InvalidInput
from remnant.measures.forgetting.safe_after import SafeAfter


@dataclass(frozen=True, slots=True)
class ProtectLast:
    """The most recent examples, which cannot be called safe.

    Attributes:
        steps: Examples used in the last so many steps are exposed; None where no lag holds, so that
            every example that was ever used has to be counted as exposed.
        examples: ``steps`` times the batch, at most so many examples; None likewise.
        reason: In a sentence, what this rests on.
        limit: The success that may not be passed.
        confidence: Of the claim behind it.
    """

    steps: int | None
    examples: int | None
    reason: str
    limit: float
    confidence: float


def protect_last(found: SafeAfter, *, batch: int) -> ProtectLast:
    """Turn "safe from this lag on" into "protect the last examples".

    An example used in the last update has a lag of 0, so those of the last k updates have lags
    under k. What is safe from lag k on leaves exactly these.

    Args:
        found: Where it is safe.
        batch: Examples a step.

    Guarantees:
        * Every example that is left out was last used ``found.lag`` steps ago or more.

    Raises:
        InvalidInput: ``batch`` is not a whole number from 1.

    Example:
        >>> found = SafeAfter(lag=200.0, reason="", limit=0.6, confidence=0.95, tested=3)
        >>> kept = protect_last(found, batch=64)
        >>> kept.steps, kept.examples
        (200, 12800)
    """
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise InvalidInput(
            f"batch={batch!r} is not a whole number from 1.", hint="Pass the examples of one step."
        )
    if found.lag is None:
        reason = (
            f"No measured lag is shown to be within {found.limit:g}, so every example that was "
            f"ever used counts as exposed. {found.reason}"
        )
        return ProtectLast(None, None, reason, found.limit, found.confidence)
    steps = math.ceil(found.lag)
    if steps == 0:
        reason = f"Success is shown to be within {found.limit:g} at every lag measured, 0 included."
        return ProtectLast(0, 0, reason, found.limit, found.confidence)
    reason = (
        f"Success is shown to be within {found.limit:g} at every lag measured from {found.lag:g} "
        f"on; what was used in the last {steps} steps ({steps} x {batch} examples) is not shown to "
        "be."
    )
    return ProtectLast(steps, steps * int(batch), reason, found.limit, found.confidence)
