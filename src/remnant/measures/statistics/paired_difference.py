r"""How far one mean lies above another whose trials are its pairs.

The mean difference has an interval by Student's t over the trials' differences. Two things make it
say too much, and are seen to here:

* A trial may be known as "at least" only. "More" is then said of the least that one side can be
  against the most that the other can be, and "less" the other way round.
* Where the trials of a side pile up at the bound, their spread says nothing of a rare one that does
  not: the wider of this interval and of the difference of the two means' own intervals (Newcombe's
  square-and-add) is reported.

The p-value is that of an exact sign-flip test of no difference in law (``no_difference_p_value``),
which holds for any law and takes six trials. It says that the two differ, not that their means do:
one training in ten that remembers, against none, is a difference in law.

The *interval* does not hold for a difference that is skewed itself: Student's t with 3 to 8 trials
covers 88 to 90 % of exponential differences and 82 to 84 % of lognormal ones, and less where the
difference is of another kind in one trial of ten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput
from remnant.measures.statistics.crossed_interval import CrossedInterval, crossed_difference
from remnant.measures.statistics.sign_flips import no_difference_p_value
from remnant.measures.statistics.trial_mean import piled_up, standard_error, trial_mean, trial_row

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How far one mean lies above another whose trials are its pairs.

    Attributes:
        value: Mean of the trials' differences; of the least that each can be, where some trials are
            known as "at least" only.
        low, high: The interval; ``None`` for one trial, and for differences that are all the same,
            which show nothing of how trials differ.
        p_value: Of no difference in law, two-sided; ``None`` under six trials.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None


def paired_difference(
    values: ArrayLike,
    base: ArrayLike,
    *,
    most: float | None = None,
    highest: ArrayLike | None = None,
    base_highest: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PairedDifference:
    """How far the mean of ``values`` lies above that of ``base``, trial by trial.

    Args:
        values, base: One a trial, in the same order: a pair has what the two have in common.
        most: The numbers lie between 0 and this, and may pile up there.
        highest, base_highest: The most that each can be, where that is more.
        confidence: Of the interval.

    Guarantees:
        * Exchanging the two changes the sign of the interval and nothing else; a row less itself is
          0, with a p-value of 1 from six trials on.

    Raises:
        InvalidInput: Not rows of numbers of one length.

    Example:
        >>> base = [1.0, 3.0, 4.0, 3.0, 4.0, 4.0]
        >>> found = paired_difference([4.0, 5.0, 7.0, 5.0, 6.0, 5.0], base)
        >>> round(found.value, 2), found.p_value
        (2.17, 0.03125)
    """
    row, base_row = trial_row("values", values, confidence), trial_row("base", base, confidence)
    if row.size != base_row.size:
        raise InvalidInput(f"values has {row.size} trials, and base {base_row.size}.")
    upper = row if highest is None else trial_row("highest", highest, confidence)
    above = (
        base_row if base_highest is None else trial_row("base_highest", base_highest, confidence)
    )
    if upper.size != row.size or above.size != row.size:
        raise InvalidInput("highest and base_highest must have a number for each trial.")
    least, most_of = (
        _compared(a, b, most, confidence) for a, b in ((row, above), (upper, base_row))
    )
    value = float((row - base_row).mean())
    if (upper == row).all() and (above == base_row).all():
        return least
    p_value = None if least.p_value is None else 1.0
    if least.value > 0.0:
        p_value = least.p_value
    elif most_of.value < 0.0:
        p_value = most_of.p_value
    return PairedDifference(value, least.low, most_of.high, p_value)


def _compared(
    row: Floats, base_row: Floats, most: float | None, confidence: float
) -> PairedDifference:
    student = _student(row - base_row, confidence)
    if most is None or student.low is None or student.high is None:
        return student
    if not piled_up(row, most) and not piled_up(base_row, most):
        return student
    low, high = _square_and_add(row, base_row, most, confidence)
    return replace(student, low=min(low, student.low), high=max(high, student.high))


def _student(gaps: Floats, confidence: float) -> PairedDifference:
    value, trials = float(gaps.mean()), gaps.size
    p_value = no_difference_p_value(gaps)
    error = standard_error(gaps) if trials > 1 else 0.0
    if error <= 1e-12 * max(float(np.abs(gaps).max()), 1.0):
        return PairedDifference(value, None, None, p_value)
    reach = float(stats.t.isf((1.0 - confidence) / 2.0, trials - 1)) * error
    return PairedDifference(value, value - reach, value + reach, p_value)


def _square_and_add(
    row: Floats, base_row: Floats, most: float, confidence: float
) -> tuple[float, float]:
    """The interval of a difference from those of both means, as if these were independent."""
    a, b = (trial_mean(side, most=most, confidence=confidence) for side in (row, base_row))
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return -math.inf, math.inf
    difference = crossed_difference(
        CrossedInterval(a.value, a.low, a.high), CrossedInterval(b.value, b.low, b.high)
    )
    return difference.low, difference.high
