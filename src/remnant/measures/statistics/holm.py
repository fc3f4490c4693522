"""Holm's correction of several p-values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import read_floats


def holm(pvalues: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values so that "at or under α" keeps the chance of any false claim under α.

    The smallest is multiplied by their number, the next by one less, and so on; none may be smaller
    than the one before it. Nothing is assumed about how the tests depend on each other.

    Guarantees:
        * An adjusted p-value is never under the plain one; their order stays.

    Raises:
        InvalidInput: A p-value outside 0 to 1.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    faults: list[str] = []
    given = read_floats("pvalues", pvalues, 1, faults)
    require(faults)
    if given is None or np.any((given < 0.0) | (given > 1.0)):
        raise InvalidInput("pvalues are not all between 0 and 1.")
    order = np.argsort(given, kind="stable")
    raised = given[order] * np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return adjusted
