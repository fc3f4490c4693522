r"""The mean of a bounded number over independent trials, with its interval.

Exposure lies between 0 and the bits of the whole space, and trials often sit at that end. As a
share c of the bound, the trials' variance v = S²/T, widened by Student's t over the normal
quantile, makes an effective size c(1-c)/v, and Clopper-Pearson with this size the interval (as in
``exposure_curve``): Student's in the middle, longer away from a bound that is near. Trials that
agree to the last digit show no variance; they are then T trials of which all had it so, and the
size is T.
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


@dataclass(frozen=True, slots=True)
class TrialMean:
    """A mean over trials.

    Attributes:
        value: The mean.
        low, high: The interval; ``None`` for one trial, which shows nothing of how trials differ.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How far one mean lies above another whose trials are its pairs.

    Attributes:
        value: Mean of the trials' differences.
        low, high: Student's interval; ``None`` for one trial, and for differences that are all the
            same, which show nothing of how trials differ.
        p_value: That they are this far from zero or farther, two-sided; ``None`` for one trial. Of
            differences that are all the same, what a sign test says.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None


def trial_mean(
    values: ArrayLike, *, most: float | None = None, confidence: float = 0.95
) -> TrialMean:
    """The mean of what each trial gave.

    Args:
        values: One a trial.
        most: The number lies between 0 and this; without it the interval is Student's.
        confidence: Of the interval.

    Guarantees:
        * ``low <= value <= high``; with ``most``, both ends are between 0 and it.

    Raises:
        InvalidInput: Not a row of numbers, or one outside the bounds.

    Example:
        >>> found = trial_mean([4.0, 5.0, 6.0], most=20.0)
        >>> found.value, round(found.low, 1), round(found.high, 1)
        (5.0, 2.7, 8.0)
    """
    row = _row("values", values, confidence)
    value, trials = float(row.mean()), row.size
    if most is not None and not (most > 0.0 and row.min() >= 0.0 and row.max() <= most + 1e-9):
        raise InvalidInput(f"values must lie between 0 and most={most!r}.")
    if trials == 1:
        return TrialMean(value, None, None)
    if most is None:
        reach = float(stats.t.isf((1.0 - confidence) / 2.0, trials - 1)) * _error(row)
        return TrialMean(value, value - reach, value + reach)
    share = min(value / most, 1.0)
    variance = (_error(row) / most) ** 2
    size = float(trials)
    if variance > _AGREE:
        size = share * (1.0 - share) / (variance * student_inflation(trials, confidence) ** 2)
    low, high = beta_ends(np.array(share * size), np.array(size), confidence)
    return TrialMean(value, min(float(low) * most, value), max(float(high) * most, value))


def paired_difference(
    values: ArrayLike, base: ArrayLike, *, confidence: float = 0.95
) -> PairedDifference:
    """How far the mean of ``values`` lies above that of ``base``, trial by trial.

    Args:
        values, base: One a trial, in the same order: a pair has what the two have in common.
        confidence: Of the interval.

    Guarantees:
        * Exchanging the two changes the sign and nothing else; a row less itself is 0, with a
          p-value of 1.

    Raises:
        InvalidInput: Not two rows of numbers of one length.

    Example:
        >>> found = paired_difference([4.0, 5.0, 7.0], [1.0, 3.0, 4.0])
        >>> round(found.value, 2), round(found.p_value, 3)
        (2.67, 0.015)
    """
    one, other = _row("values", values, confidence), _row("base", base, confidence)
    if one.size != other.size:
        raise InvalidInput(f"values has {one.size} trials, and base {other.size}.")
    gaps = one - other
    value, trials = float(gaps.mean()), gaps.size
    if trials == 1:
        return PairedDifference(value, None, None, None)
    error = _error(gaps)
    if error <= 1e-12 * max(float(np.abs(gaps).max()), 1.0):
        return PairedDifference(value, None, None, 1.0 if value == 0.0 else 2.0 ** (1 - trials))
    reach = float(stats.t.isf((1.0 - confidence) / 2.0, trials - 1)) * error
    p_value = float(2.0 * stats.t.sf(abs(value) / error, trials - 1))
    return PairedDifference(value, value - reach, value + reach, p_value)


def _row(name: str, values: ArrayLike, confidence: float) -> Floats:
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    row = read_floats(name, np.asarray(values, dtype=np.float64), 1, faults)
    require(faults)
    if row is None or row.size == 0:
        raise InvalidInput(f"{name} must be a row of numbers.")
    return row


def _error(row: Floats) -> float:
    return float(row.std(ddof=1)) / float(np.sqrt(row.size))
