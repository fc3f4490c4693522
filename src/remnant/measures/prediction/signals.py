"""What a model's logits say about a label, computed so that a saturated softmax stays finite."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]


def log_odds(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """log p/(1-p) of the true class: its logit minus the logsumexp of the others.

    Args:
        logits: Shape ``(..., n, classes)``, with at least two classes.
        labels: Whole numbers, shape ``(n,)`` or ``(..., n)``.

    Returns:
        Shape ``(..., n)``, in nats; higher = more certain of the label.

    Guarantees:
        * Finite for finite logits, also where p rounds to 0 or 1.
        * A constant added to all logits of an example changes nothing (up to rounding).

    Raises:
        InvalidInput: Logits that are not finite, labels outside the classes, shapes that disagree.

    Example:
        >>> float(log_odds([[800.0, 0.0]], [0])[0])
        800.0
    """
    true, others = _split(logits, labels)
    return np.asarray(true - logsumexp(others, axis=-1))


def cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """-log p of the true class, in nats: log(1 + exp(-log-odds)); lower = more certain.

    Shapes and faults as in ``log_odds``. Does not round to zero where p rounds to one.

    Example:
        >>> float(cross_entropy([[0.0, 0.0]], [1])[0]) == float(np.log(2.0))
        True
    """
    return np.asarray(np.logaddexp(0.0, -log_odds(logits, labels)))


def logit_gap(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """The true class's logit minus the best other one; positive where the label is predicted.

    Shapes and faults as in ``log_odds``.

    Example:
        >>> float(logit_gap([[1.0, 3.0, 2.5]], [1])[0])
        0.5
    """
    true, others = _split(logits, labels)
    return np.asarray(true - others.max(axis=-1))


def _split(logits: ArrayLike, labels: ArrayLike) -> tuple[Floats, Floats]:
    """The true class's logits ``(..., n)`` and the others' ``(..., n, classes - 1)``."""
    faults: list[str] = []
    scores = read_floats("logits", logits, None, faults)
    wanted = read_floats("labels", labels, None, faults)
    if scores is not None and (scores.ndim < 2 or scores.shape[-1] < 2):
        faults.append(f"logits have shape {scores.shape}, not (..., n, classes) with 2 or more")
    require(faults)
    if scores is None or wanted is None:
        raise InvalidInput("logits and labels must be arrays of numbers.")
    classes = scores.shape[-1]
    if np.any(wanted != np.floor(wanted)) or np.any(wanted < 0) or np.any(wanted >= classes):
        raise InvalidInput(
            f"labels must be whole numbers from 0 to {classes - 1}: logits have {classes} columns."
        )
    leading = scores.shape[:-1]
    if wanted.ndim > len(leading) or wanted.shape != leading[len(leading) - wanted.ndim :]:
        raise InvalidInput(f"labels have shape {wanted.shape}, but the logits have {leading}.")
    chosen = np.broadcast_to(wanted.astype(np.int64), leading)[..., None]
    true = np.take_along_axis(scores, chosen, axis=-1)[..., 0]
    rest = np.arange(classes - 1)
    return true, np.take_along_axis(scores, rest + (rest >= chosen), axis=-1)
