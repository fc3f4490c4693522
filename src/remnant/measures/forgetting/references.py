"""Scores against those of reference models: what is usual for an example that was not planted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput

Floats = NDArray[np.float64]
_LEAST = 0.01  # of the median deviation: the least by which a score is divided


def against_references(values: Floats, references: Floats, *, deviation: bool) -> Floats:
    """Return scores less their mean over reference models, or also divided by their deviation.

    Args:
        values: Scores, shape ``(..., examples)``, higher = more likely seen.
        references: The same scores in models that saw none of the examples, shape ``(models, ...,
            examples)``: one more leading axis than ``values``. An axis between may have length 1.
        deviation: Divide by the standard deviation over models (``ddof=1``). One that is less than
            a hundredth of the median over examples is raised to it; where that median is 0, one
            that is less than 1 is raised to 1.

    Guarantees:
        * A constant added to an example's score in all models, the attacked one too, changes
          nothing; with ``deviation``, neither does a positive factor on all scores.
        * The order of the reference models does not matter.

    Raises:
        InvalidInput: The shapes do not fit, there is no reference model, there is one alone and
            ``deviation`` is asked for, or a reference score is not finite.

    Example:
        >>> against_references(np.array([3.0, 4.0]), np.array([[0.0, 1.0], [2.0, 3.0]]),
        ...                    deviation=False).tolist()
        [2.0, 2.0]
    """
    per_model = references.shape[1:]
    fits = references.ndim == values.ndim + 1 >= 2 and per_model[-1] == values.shape[-1]
    if not fits or any(n not in (1, m) for n, m in zip(per_model, values.shape, strict=True)):
        raise InvalidInput(
            f"references have shape {references.shape} and values have shape {values.shape}.",
            hint="Give references one more axis, the models, before those of values.",
        )
    if references.shape[0] < 1 + deviation:
        least = "two reference models" if deviation else "one reference model"
        raise InvalidInput(f"{references.shape[0]} reference models are given; it takes {least}.")
    if not np.isfinite(references).all():
        raise InvalidInput("references holds values that are not finite.")
    less_mean = np.asarray(values - references.mean(axis=0))
    if not deviation:
        return less_mean
    # Equal numbers have a computed deviation of a rounding error, so it is set to 0 for them.
    equal = np.ptp(references, axis=0) == 0.0
    spread = np.where(equal, 0.0, references.std(axis=0, ddof=1))
    median = np.median(spread, axis=-1, keepdims=True)
    return np.asarray(less_mean / np.maximum(spread, np.where(median > 0.0, _LEAST * median, 1.0)))
