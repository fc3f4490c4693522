"""What the losses along a training run say: when to stop and look, and which samples wavered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share, read_floats

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class StoppingPoint:
    """When the median training loss had dropped far enough.

    Attributes:
        index: The first moment at which it had; None where it never did.
        closest: The moment at which the drop came closest to the one asked for; the paper's choice
            among few checkpoints.
        medians: Median loss at each moment.
        dropped: Share of the first median that had gone by then; negative where it had risen.
        drop: The share asked for.
    """

    index: int | None
    closest: int
    medians: Floats
    dropped: Floats
    drop: float


def stopping_point(*, losses: ArrayLike, drop: float = 0.95) -> StoppingPoint:
    """The first moment at which the median training loss had dropped by ``drop``.

    Dentan et al. stop there, and predict from the hidden states of that moment.

    Args:
        losses: Losses of the same samples at moments in order, shape ``(moments, n)``; or their
            medians, shape ``(moments,)``. The first is the start of training.
        drop: Share of the first median.

    Guarantees:
        * What comes after ``index`` does not move it: the rule can be asked as training goes on.

    Raises:
        InvalidInput: Faulty losses, negative ones, a first median of 0, a ``drop`` outside (0, 1).

    Example:
        >>> point = stopping_point(losses=[2.0, 1.0, 0.08, 0.01])
        >>> point.index, point.dropped.tolist()
        (2, [0.0, 0.5, 0.96, 0.995])
    """
    faults: list[str] = []
    check_share("drop", drop, faults)
    given = read_floats("losses", losses, None, faults)
    if given is not None and given.ndim > 2:
        faults.append(f"losses has shape {given.shape}, not (moments, n) or (moments,)")
    if given is not None and given.min() < 0.0:
        faults.append("losses holds negative values, of which no share can be gone")
    require(faults)
    if given is None:
        raise InvalidInput("losses must be an array of numbers.")
    medians = given.copy() if given.ndim == 1 else np.median(given, axis=1)
    if medians[0] == 0.0:
        raise InvalidInput("the median loss at the start is 0: it cannot drop.")
    dropped = 1.0 - medians / medians[0]
    # One minus a ratio may miss the share by a rounding.
    reached = np.flatnonzero(dropped >= drop - 1e-12)
    return StoppingPoint(
        index=int(reached[0]) if reached.size else None,
        closest=int(np.argmin(np.abs(dropped - drop))),
        medians=medians,
        dropped=dropped,
        drop=float(drop),
    )


def loss_trace_iqr(losses: ArrayLike) -> Floats:
    """LT-IQR: the interquartile range of each sample's loss over the epochs of one run.

    A sample that was learnt late or forgotten on the way has a wide range; it costs nothing but
    keeping the losses. Quartiles are interpolated linearly between epochs.

    Args:
        losses: Shape ``(epochs, n)``.

    Returns:
        Shape ``(n,)``, higher = more likely memorised.

    Guarantees:
        * The order of epochs is of no account; a constant added to a sample's losses neither.

    Raises:
        InvalidInput: Faulty losses.
        NotEnoughEvidence: Fewer than four epochs.

    Example:
        >>> loss_trace_iqr([[4.0, 1.0], [3.0, 1.0], [2.0, 1.0], [1.0, 1.0], [0.0, 1.0]]).tolist()
        [2.0, 0.0]
    """
    faults: list[str] = []
    given = read_floats("losses", losses, 2, faults)
    require(faults)
    if given is None:
        raise InvalidInput("losses must be an array of numbers.")
    if given.shape[0] < 4:
        raise NotEnoughEvidence(
            f"{given.shape[0]} epoch(s) have no quartiles; it takes four.",
            hint="Keep the losses of more epochs.",
        )
    low, high = np.quantile(given, [0.25, 0.75], axis=0)
    return np.asarray(high - low)
