"""Scores of the attack on images: what changed since the checkpoint both twins started from."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]
Calibration = Literal["logit", "loss", "none"]


def calibrated_scores(
    *,
    signal: ArrayLike,
    checkpoint_signal: ArrayLike | None = None,
    method: Calibration = "logit",
) -> Floats:
    """Turn a model's signal into attack scores, higher = more likely seen.

    An easy example has a high log-odds whether it was seen or not; subtracting what the common
    checkpoint already gave it leaves what later training added.

    ========  ==================  =====================================
    method    signal              score
    ========  ==================  =====================================
    logit     log-odds, nats      log-odds minus the checkpoint's
    loss      loss, nats          the checkpoint's loss minus the loss
    none      log-odds, nats      the log-odds themselves
    ========  ==================  =====================================

    Args:
        signal: Log-odds (``log_odds``) or losses (``cross_entropy``), by ``method``; any shape.
        checkpoint_signal: The same quantity at the checkpoint; its shape broadcasts to the
            signal's (one checkpoint serves all lags). Must be absent for "none".
        method: Which calibration.

    Guarantees:
        * A constant added to signal and checkpoint of an example leaves its score unchanged
          (logit, loss).

    Raises:
        InvalidInput: NaN or infinite input, an unknown method, a checkpoint that is missing,
            superfluous, or of a shape that does not broadcast.

    Example:
        >>> calibrated_scores(signal=[2.0, 1.0], checkpoint_signal=[0.5, 1.5]).tolist()
        [1.5, -0.5]
    """
    faults: list[str] = []
    if method not in get_args(Calibration):
        faults.append(f"method={method!r} is not one of {', '.join(get_args(Calibration))}")
    now = read_floats("signal", signal, None, faults)
    before = None
    if checkpoint_signal is not None:
        before = read_floats("checkpoint_signal", checkpoint_signal, None, faults)
        if method == "none":
            faults.append("method='none' takes no checkpoint_signal")
    elif method != "none":
        faults.append(f"method={method!r} needs the checkpoint_signal")
    require(faults)
    if now is None:
        raise InvalidInput("signal must be an array of numbers.")
    if before is None:
        return now.copy()
    try:
        before = np.broadcast_to(before, now.shape)
    except ValueError:
        raise InvalidInput(
            f"checkpoint_signal has shape {before.shape}, which does not broadcast to the "
            f"signal's {now.shape}."
        ) from None
    return now - before if method == "logit" else before - now
