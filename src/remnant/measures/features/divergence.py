"""How far two distributions over classes are apart, with a floor under what a logarithm sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]

FLOOR = 1e-7
"""Probabilities count as at least this, as in the paper's code: 16.1 nats are the most."""


def kl_divergences(clean: ArrayLike, stamped: ArrayLike, *, floor: float = FLOOR) -> Floats:
    r"""Σ p (log p - log q) of each row, in nats; p and q count as at least ``floor`` in logs.

    Args:
        clean: p, shape ``(..., classes)``.
        stamped: q, the same shape.
        floor: At most -log(floor) comes out.

    Guarantees:
        * Finite, also where a probability is exactly 0; 0 where p and q are equal.

    Raises:
        InvalidInput: Shapes that disagree, values outside [0, 1].

    Example:
        >>> kl_divergences([[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]).round(3).tolist()
        [0.144, 16.118]
    """
    faults: list[str] = []
    p, q = read_floats("clean", clean, None, faults), read_floats("stamped", stamped, None, faults)
    require(faults)
    if p is None or q is None or p.shape != q.shape:
        raise InvalidInput(f"clean has shape {np.shape(clean)}, stamped {np.shape(stamped)}.")
    if min(p.min(), q.min()) < 0.0 or max(p.max(), q.max()) > 1.0 + 1e-9:
        raise InvalidInput("clean and stamped are not all between 0 and 1.")
    logs = np.log(np.maximum(p, floor)) - np.log(np.maximum(q, floor))
    return np.asarray((p * logs).sum(axis=-1))
