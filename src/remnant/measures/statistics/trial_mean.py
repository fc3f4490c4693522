r"""The mean of a bounded number over independent trials, with its interval.

Exposure lies between 0 and the bits of the whole space, and trials often sit at that end. As a
share c of the bound, the trials' variance v = S²/T, widened by Student's t over the normal
quantile, makes an effective size c(1-c)/v, and Clopper-Pearson with this size the interval (as in
``exposure_curve``): Student's in the middle, longer away from a bound that is near. Trials that
agree to the last digit show no variance; they are then T trials of which all had it so, and the
size is T. Trials within two bits of the bound differ by luck among the first few ranks, which says
nothing of a seed in ten that remembers little: their size is at most 4T.

No spread shows a kind of trial that is not among the T. A share p of such trials is missed with
probability (1-p)^T: one in five by 33 % of 5 trials, and by 17 % of 8. So both ends also leave room
for a share f of trials that are as far away as the bounds allow: a fifth, or 1 - a^(1/T) where that
is less (from 17 trials on, a being one side's error). The low end is at most (1-f) L, and the high
end at least (1-f) H plus f of the bound, L and H being the ends of the interval above at four times
the error (80 % for 95 %), since trials of the other kind are missed in a part of cases only. Trials
that agree to the last digit have this room already. This covers any kind of up to one trial in
five, and skewed trials, for which Student's t falls short. A kind of more than one trial in five,
and as far away, may still be missed: T trials that are all of one kind do not exclude that
1 - 0.05^(1/T) of trials are of another (63 % for 3 trials, 45 % for 5, 31 % for 8). ``method`` says
so.

Without a bound there is no such room. Student's interval then holds for normal trials; it covers
88 to 90 % where trials are exponential, 82 to 84 % where they are lognormal, and anything less
where one in five or ten behaves differently.

Some trials are known as "at least" only. The low end is then that of the least they can be, and the
high end that of the most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import check_share, read_floats
from remnant.measures.statistics.intervals import beta_ends, student_inflation

Floats = NDArray[np.float64]
_AGREE = 1e-16  # a variance, as a share of the bound squared, that is rounding
_NEAR = 2.0  # bits from the bound, where trials pile up
RARE = 0.2  # share of trials that may be of a kind that none of a few trials shows


@dataclass(frozen=True, slots=True)
class TrialMean:
    """A mean over trials.

    Attributes:
        value: The mean; of the least that trials can be, where some are known as "at least" only.
        low, high: The interval; ``None`` for one trial, which shows nothing of how trials differ.
        method: The interval's construction, and what it does not cover, in words.
    """

    value: float
    low: float | None
    high: float | None
    method: str = ""


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
        * With ``most``, at least 95 % of intervals of 3, 5 and 8 trials hold the mean of normal,
          exponential, lognormal and integer trials, and of trials of which any share up to one in
          five is of another kind (simulated, ``benchmarks/trial_intervals.py``).

    Raises:
        InvalidInput: Not a row of numbers, or one outside the bounds; ``highest`` below ``values``.

    Example:
        >>> found = trial_mean([4.0, 5.0, 6.0], most=20.0)
        >>> found.value, round(found.low, 1), round(found.high, 1)
        (5.0, 2.7, 9.0)
    """
    row = trial_row("values", values, confidence)
    mean = _allowing_for_rare(row, most, confidence)
    if highest is None:
        return mean
    upper = trial_row("highest", highest, confidence)
    if upper.size != row.size or (upper < row - 1e-9).any():
        raise InvalidInput("highest must have a number for each of values, and none below it.")
    above = _allowing_for_rare(upper, most, confidence)
    return TrialMean(mean.value, mean.low, above.high, mean.method)


def unseen_share(trials: int, confidence: float = 0.95) -> float:
    """The share of trials of another kind that ``trials`` of one kind do not exclude.

    Example:
        >>> round(unseen_share(8), 2)
        0.31
    """
    return float(1.0 - (1.0 - confidence) ** (1.0 / trials))


def _allowing_for_rare(row: Floats, most: float | None, confidence: float) -> TrialMean:
    """The interval with room for trials of a kind that was not seen, where there is a bound."""
    mean, trials = _mean_of_alike(row, most, confidence), row.size
    if mean.low is None or mean.high is None:
        return replace(mean, method="one trial shows nothing of how trials differ")
    missed = (
        f"{trials} trials that behave the same do not exclude that up to "
        f"{unseen_share(trials):.0%} of trials behave otherwise"
    )
    if most is None:
        return replace(mean, method=f"Student t over {trials} trials; {missed}")
    if _agree(row, most):
        return replace(mean, method=f"Clopper-Pearson over {trials} equal trials; {missed}")
    room = min(RARE, unseen_share(trials, (1.0 + confidence) / 2.0))
    inner = _mean_of_alike(row, most, 1.0 - min(4.0 * (1.0 - confidence), 0.5))
    low = mean.low if inner.low is None else min(mean.low, (1.0 - room) * inner.low)
    high = mean.high
    if inner.high is not None:
        high = max(high, (1.0 - room) * inner.high + room * most)
    method = (
        f"Student t over {trials} trials, Clopper-Pearson ends at the effective size, with room "
        f"for {room:.0%} of trials of another kind; {missed}"
    )
    return TrialMean(mean.value, low, high, method)


def _agree(row: Floats, most: float) -> bool:
    """Whether the trials are equal but for rounding."""
    return bool((standard_error(row) / most) ** 2 <= _AGREE)


def piled_up(row: Floats, most: float) -> bool:
    """Whether half of the trials or more lie within two bits of the bound."""
    return bool(np.median(row) >= most - _NEAR)


def _mean_of_alike(row: Floats, most: float | None, confidence: float) -> TrialMean:
    """The mean and its interval as if the trials at hand showed every kind of trial."""
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
    if not _agree(row, most):
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
