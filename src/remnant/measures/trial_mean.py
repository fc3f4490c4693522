r"""The mean of a bounded number over independent trials, with its interval.

Exposure lies between 0 and the bits of the whole space, and trials often sit at that end. As a
share c of the bound, the trials' variance v = S²/T, widened by Student's t over the normal
quantile, makes an effective size c(1-c)/v, and Clopper-Pearson with this size the interval (as in
``exposure_curve``): Student's in the middle, longer away from a bound that is near. Trials that
agree to the last digit show no variance; they are then T trials of which all had it so, and the
size is T. Trials within two bits of the bound differ by luck among the first few ranks, which says
nothing of a seed in ten that remembers little: their size is at most 4T.

Some trials are known as "at least" only. The low end is then that of the least they can be, and the
high end that of the most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, require
from remnant.measures.checks import check_share, read_floats
from remnant.measures.intervals import beta_ends, student_inflation

Floats = NDArray[np.float64]
_AGREE = 1e-16  # a variance, as a share of the bound squared, that is rounding
_NEAR = 2.0  # bits from the bound, where trials pile up


@dataclass(frozen=True, slots=True)
class TrialMean:
    """A mean over trials.

    Attributes:
        value: The mean; of the least that trials can be, where some are known as "at least" only.
        low, high: The interval; ``None`` for one trial, which shows nothing of how trials differ.
    """

    value: float
    low: float | None
    high: float | None


def trial_mean(
    values: ArrayLike,
    *,
    most: float | None = None,
    highest: ArrayLike | None = None,
    confidence: float = 0.95,
) -> TrialMean:
    """The mean of what each trial gave.

    Args:
        values: One a trial.
        most: The number lies between 0 and this; without it the interval is Student's.
        highest: The most that each can be, where that is more than ``values``.
        confidence: Of the interval.

    Guarantees:
        * ``low <= value <= high``; with ``most``, both ends are between 0 and it.

    Raises:
        InvalidInput: Not a row of numbers, or one outside the bounds; ``highest`` below ``values``.

    Example:
        >>> found = trial_mean([4.0, 5.0, 6.0], most=20.0)
        >>> found.value, round(found.low, 1), round(found.high, 1)
        (5.0, 2.7, 8.0)
    """
    row = trial_row("values", values, confidence)
    found = _mean(row, most, confidence)
    if highest is None:
        return found
    upper = trial_row("highest", highest, confidence)
    if upper.size != row.size or (upper < row - 1e-9).any():
        raise InvalidInput("highest must have a number for each of values, and none below it.")
    return TrialMean(found.value, found.low, _mean(upper, most, confidence).high)


def piled_up(row: Floats, most: float) -> bool:
    """Whether half of the trials or more lie within two bits of the bound."""
    return bool(np.median(row) >= most - _NEAR)


def _mean(row: Floats, most: float | None, confidence: float) -> TrialMean:
    value, trials = float(row.mean()), row.size
    if most is not None and not (most > 0.0 and row.min() >= 0.0 and row.max() <= most + 1e-9):
        raise InvalidInput(f"values must lie between 0 and most={most!r}.")
    if trials == 1:
        return TrialMean(value, None, None)
    if most is None:
        reach = float(stats.t.isf((1.0 - confidence) / 2.0, trials - 1)) * standard_error(row)
        return TrialMean(value, value - reach, value + reach)
    share = min(value / most, 1.0)
    variance = (standard_error(row) / most) ** 2
    size = float(trials)
    if variance > _AGREE:
        size = share * (1.0 - share) / (variance * student_inflation(trials, confidence) ** 2)
        if piled_up(row, most):
            size = min(size, 4.0 * trials)
    low, high = beta_ends(np.array(share * size), np.array(size), confidence)
    return TrialMean(value, min(float(low) * most, value), max(float(high) * most, value))


def trial_row(name: str, values: ArrayLike, confidence: float) -> Floats:
    """Read one number a trial, and refuse anything else."""
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    row = read_floats(name, np.asarray(values, dtype=np.float64), 1, faults)
    require(faults)
    if row is None or row.size == 0:
        raise InvalidInput(f"{name} must be a row of numbers.")
    return row


def standard_error(row: Floats) -> float:
    """Of the mean of independent trials."""
    return float(row.std(ddof=1)) / float(np.sqrt(row.size))
