"""Reads the losses from which exposure is computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.measures.statistics.checks import real_numbers

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
