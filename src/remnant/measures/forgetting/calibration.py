"""Scores calibrated by the checkpoint before planting, or by reference models."""

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
