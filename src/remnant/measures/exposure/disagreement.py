"""Sanitising by disagreement: text that one of two models finds much likelier than the other.

Two models are trained on disjoint halves of a text. What both find equally likely is what any such
text teaches. What one of them finds much likelier is memorised from its own half, and a candidate
for removal (The Secret Sharer, section on sanitising).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import require
from remnant.measures.exposure.by_rank import read_losses
from remnant.measures.statistics.checks import check_share


def disagreeing_windows(
    costs_a: ArrayLike, costs_b: ArrayLike, *, share: float = 0.01, width: int = 32
) -> NDArray[np.int64]:
    r"""Return the windows of a text on which two models disagree most.

    Window :math:`w` is the tokens from :math:`w \cdot width` on, the last one may be shorter. Its
    disagreement is :math:`\left|\sum_i (a_i - b_i)\right|` over its tokens: the log-ratio of the
    probabilities that the models give it.

    Args:
        costs_a: Cost of each token under the first model (minus the log-probability, in bits or
            nats), shape ``(tokens,)``. ``+inf`` is legal.
        costs_b: The same under the second model.
        share: The share of windows to return, rounded up.
        width: Tokens of a window.

    Returns:
        Numbers of the windows, ascending; of equal disagreements the earlier window first counts.

    Guarantees:
        * Windows on which the models agree exactly are never returned, so that two equal models
          give none.
        * The models can be swapped.
        * A secret that both halves hold, or that no model memorised, is not detected: the result
          is not proof that the rest of the text is safe.

    Raises:
        InvalidInput: Costs that are NaN or differ in length, a share outside (0, 1), a width
            under 1.

    Example:
        >>> a = [3.0, 3.0, 3.0, 0.1, 0.1, 3.0]
        >>> b = [3.0, 3.0, 3.0, 9.0, 9.0, 3.0]
        >>> disagreeing_windows(a, b, share=0.3, width=2).tolist()
        [1]
    """
    faults: list[str] = []
    first = read_losses("costs_a", costs_a, faults)
    second = read_losses("costs_b", costs_b, faults)
    if first is not None and second is not None and first.size != second.size:
        faults.append(f"costs_a has {first.size} tokens, and costs_b has {second.size}")
    check_share("share", share, faults)
    if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
        faults.append(f"width={width!r} is not a whole number of at least 1")
    require(faults)
    a, b = np.asarray(first), np.asarray(second)
    # Tokens that are impossible under both models are no disagreement.
    differences = np.subtract(a, b, out=np.zeros(a.size), where=a != b)
    starts = np.arange(0, differences.size, width)
    gaps = np.abs(_sums(differences, starts))
    wanted = int(np.ceil(share * starts.size))
    most = np.argsort(-gaps, kind="stable")[:wanted]
    return np.sort(most[gaps[most] > 0]).astype(np.int64)


def _sums(differences: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of windows; infinities of both signs in one window count as infinite."""
    infinite = np.isinf(differences)
    finite = np.add.reduceat(np.where(infinite, 0.0, differences), starts)
    return np.where(np.logical_or.reduceat(infinite, starts), np.inf, finite)
