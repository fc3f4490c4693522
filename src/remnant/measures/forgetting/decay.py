"""A decay law fitted to a forgetting curve: half-life, floor, and a forecast marked as such.

Two laws, both with a floor f and a start s: exponential, f + (s - f) exp(-lag / scale), and a power
law, f + (s - f) (1 + lag / scale) ** -shape. For a given scale and shape, s and f follow linearly,
so the search is over the rest alone: a grid over all magnitudes that the lags can show, then a
local search from its best point. Nothing depends on a starting guess.

A law can be fitted to anything. It has no half-life where success rises first, where no fall is
shown, where its start or floor leaves [0, 1], and where half of the drop is left at the last lag.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_share

Floats = NDArray[np.float64]
Law = Literal["exponential", "power"]
LAWS: tuple[Law, ...] = ("exponential", "power")
_SHAPES = (0.25, 0.5, 1.0, 2.0, 4.0)
_SCALES = 40
# A rise that counts as one where trials are too few to test it.
_RISE = 0.05
# Trials from which on there are intervals and tests.
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class Fitted:
    """One law with its numbers."""

    law: Law
    start: float
    floor: float
    scale: float
    shape: float
    error: float

    def kept(self, lags: Floats | float) -> Floats:
        """The share of the drop that is still there."""
        return _kept(self.law, np.asarray(lags, dtype=np.float64), self.scale, self.shape)

    def value(self, lags: Floats | float) -> Floats:
        """Success at these lags."""
        return np.asarray(self.floor + (self.start - self.floor) * self.kept(lags))

    def lag_of(self, share: float) -> float:
        """The lag at which ``share`` of the drop is left."""
        if share >= 1.0:
            return 0.0
        if share <= 0.0:
            return math.inf
        if self.law == "exponential":
            return -self.scale * math.log(share)
        return self.scale * math.expm1(-math.log(share) / self.shape)


@dataclass(frozen=True, slots=True)
class Forecast:
    """A number read off a decay law.

    Attributes:
        value: The estimate; None where the law never comes there.
        low, high: Its interval.
        beyond: True where it lies past the last measured lag: a forecast, not a measurement.
    """

    value: float | None
    low: float
    high: float
    beyond: bool


@dataclass(frozen=True, slots=True, eq=False)
class Decay:
    """How attack success decays with the lag.

    Attributes:
        law: "exponential" or "power".
        start, floor: Success at lag 0 and after infinitely many steps, as the law has it.
        drop, drop_low, drop_high: Start less floor. Where ``drop_low`` is not above 0, no decay has
            been shown.
        half_life, half_life_low, half_life_high: Steps until half of the drop is gone; None where
            ``no_half_life`` says why.
        no_half_life: Success rises first, no fall is shown, the law leaves [0, 1], half of the
            drop is left at the last lag, or most of it is gone before the second one, where no lag
            can show it. None where there is a half-life.
        misfit: Why nothing may be forecast by the law: success rises first or the law leaves
            [0, 1]. None where it describes the curve.
        scale, shape: Of the law; ``shape`` is 1 for the exponential.
        error: Root mean square of what the law leaves over, at the measured lags.
        held_out_error: The same at lags left out of the fit, for each law that was tried.
        last_lag: The last one measured.
        trials: Behind the intervals; under three they are infinite.
        confidence: Of the intervals.
    """

    law: Law
    start: float
    floor: float
    drop: float
    drop_low: float
    drop_high: float
    half_life: float | None
    half_life_low: float | None
    half_life_high: float | None
    no_half_life: str | None
    misfit: str | None
    scale: float
    shape: float
    error: float
    held_out_error: dict[str, float]
    last_lag: float
    trials: int
    confidence: float
    fits: tuple[Fitted, ...] = field(repr=False)

    def steps_to(self, alpha: float) -> Forecast:
        """The lag at which the law comes down to ``alpha``.

        Raises:
            InvalidInput: ``alpha`` is outside (0, 1).
            NotEnoughEvidence: The law does not describe the curve (``misfit``).
        """
        faults: list[str] = []
        check_share("alpha", alpha, faults)
        require(faults)
        if self.misfit is not None:
            raise NotEnoughEvidence(self.misfit)

        def lag(fit: Fitted) -> float:
            drop = fit.start - fit.floor
            return math.inf if drop <= 0.0 else fit.lag_of((alpha - fit.floor) / drop)

        value, low, high = self._interval(lag, scale="log")
        if self.drop_low <= 0.0:
            low, high = 0.0, math.inf
        reached = math.isfinite(value)
        return Forecast(
            value if reached else None, low, high, beyond=not reached or value > self.last_lag
        )

    def value_at(self, lag: float) -> Forecast:
        """Success at ``lag``, measured there or not.

        A law that leaves [0, 1] is cut off there, value and interval alike.

        Raises:
            InvalidInput: ``lag`` is negative or not a number.
        """
        if not (isinstance(lag, int | float | np.integer | np.floating) and lag >= 0):
            raise InvalidInput(f"lag={lag!r} is not a number of steps, 0 or more.")
        ends = self._interval(lambda fit: float(fit.value(lag)), scale="plain")
        value, low, high = (min(max(end, 0.0), 1.0) for end in ends)
        return Forecast(value, low, high, beyond=bool(float(lag) > self.last_lag))

    def _interval(
        self, read: Callable[[Fitted], float], *, scale: Literal["log", "plain"]
    ) -> tuple[float, float, float]:
        return jackknife([read(fit) for fit in self.fits], scale=scale, confidence=self.confidence)


def fit_decay(
    *,
    lags: Floats,
    per_trial: Floats,
    law: Law | Literal["auto"] = "auto",
    confidence: float = 0.95,
) -> Decay:
    """Fit a decay law to the mean of trials; intervals from leaving out one trial at a time.

    Args:
        lags: Strictly increasing; those before planting are left out.
        per_trial: Success, shape ``(lags, trials)``.
        law: "auto" takes the law with the smaller error at held-out lags, each lag but the first
            left out in turn; the other one where that one leaves [0, 1] or shows no fall and the
            other does neither.
        confidence: Of the intervals, and of the test of a rise.

    Guarantees:
        * Curves that never rise are called rising in 1 - ``confidence`` of cases at most; under
          three trials a rise of five points counts.
        * Where trials follow an exponential law within [0, 1] and half of its drop is gone by the
          last lag, nine of ten fits have a half-life.

    Raises:
        InvalidInput: An unknown law, a confidence outside (0, 1).
        NotEnoughEvidence: Fewer than four lags after planting (five for the power law).
    """
    faults: list[str] = []
    check_share("confidence", confidence, faults)
    if law not in (*LAWS, "auto"):
        faults.append(f"law={law!r} is not one of {', '.join(LAWS)}, auto")
    require(faults)
    after = lags >= 0
    steps, rates = lags[after], per_trial[after]
    needed = 5 if law == "power" else 4
    if steps.size < needed:
        raise NotEnoughEvidence(
            f"{steps.size} lags after planting are too few for a decay law; it takes {needed}.",
            hint="Score the canaries at more checkpoints.",
        )
    tried: tuple[Law, ...] = LAWS if law == "auto" and steps.size >= 5 else ("exponential",)
    tried = tried if law == "auto" else (law,)
    mean = rates.mean(axis=1)
    held_out: dict[str, float] = {name: _held_out_error(name, steps, mean) for name in tried}
    fitted = (
        _decay(name, steps, rates, confidence=float(confidence), held_out=held_out)
        for name in sorted(tried, key=lambda name: held_out[name])
    )
    first = next(fitted)
    if _usable(first):
        return first
    return next((decay for decay in fitted if _usable(decay)), first)


def _usable(decay: Decay) -> bool:
    """Whether the law describes the curve and shows a fall, however long that takes."""
    return decay.misfit is None and _falls(decay.drop, decay.drop_low, decay.trials)


def _falls(drop: float, drop_low: float, trials: int) -> bool:
    return drop > 0.0 and (trials < _FEWEST or drop_low > 0.0)


def _decay(
    law: Law, lags: Floats, rates: Floats, *, confidence: float, held_out: dict[str, float]
) -> Decay:
    """Fit one law to all lags and trials."""
    whole = _fit(law, lags, rates.mean(axis=1))
    trials, last_lag = rates.shape[1], float(lags[-1])
    left_out = range(trials if trials >= _FEWEST else 0)
    without = [np.delete(rates, trial, axis=1).mean(axis=1) for trial in left_out]
    fits = (whole, *(_fit(law, lags, part) for part in without))
    drop = jackknife([f.start - f.floor for f in fits], scale="plain", confidence=confidence)
    half = jackknife([f.lag_of(0.5) for f in fits], scale="log", confidence=confidence)
    half_low, half_high = half[1:] if drop[1] > 0.0 else (0.0, math.inf)
    rise = _rise(lags, rates, confidence)
    outside = _outside(whole)
    no_fall = None if _falls(*drop[:2], trials) else "No fall is shown."
    no_half_life = rise or no_fall or outside
    misfit = no_half_life if rise or outside else None
    if no_half_life is None and half[0] > last_lag:
        no_half_life = f"Half of the fall is not over at the last lag, {last_lag:g}."
    elif no_half_life is None and half[0] < (gap := float(lags[1] - lags[0])) / 2.0:
        no_half_life = f"Most of the fall is over before the second lag, {gap:g} after the first."
    return Decay(
        law=law,
        start=whole.start,
        floor=whole.floor,
        drop=drop[0],
        drop_low=drop[1],
        drop_high=drop[2],
        half_life=half[0] if no_half_life is None else None,
        half_life_low=half_low if no_half_life is None else None,
        half_life_high=half_high if no_half_life is None else None,
        no_half_life=no_half_life,
        misfit=misfit,
        scale=whole.scale,
        shape=whole.shape,
        error=whole.error,
        held_out_error=held_out,
        last_lag=last_lag,
        trials=trials,
        confidence=confidence,
        fits=fits,
    )


def _rise(lags: Floats, rates: Floats, confidence: float) -> str | None:
    """What shows that success rises after the first lag, or None.

    Each later lag is tested against the first by Student's lower bound of the paired difference
    over trials, corrected for the number of lags. Under three trials the mean is compared.
    """
    gains = rates[1:] - rates[:1]
    lower = gains.mean(axis=1)
    later, trials = gains.shape
    if trials < _FEWEST:
        lower = lower - _RISE
    else:
        wide = float(stats.t.isf((1.0 - confidence) / later, trials - 1))
        lower = lower - wide * gains.std(axis=1, ddof=1) / math.sqrt(trials)
    if lower.max() <= 1e-9:
        return None
    mean = rates.mean(axis=1)
    peak = 1 + int(np.where(lower > 1e-9, mean[1:], -math.inf).argmax())
    return (
        f"Success rises first: it is {mean[0]:.3f} at lag {lags[0]:g} and {mean[peak]:.3f} at lag "
        f"{lags[peak]:g}, so no law of decay holds."
    )


def _outside(fit: Fitted) -> str | None:
    """Which end of the law leaves [0, 1] by more than the law misses the curve by, or None."""
    for name, value in (("start", fit.start), ("plateau", fit.floor)):
        if not -fit.error <= value <= 1.0 + fit.error:
            return (
                f"The fitted law has its {name} at {value:.3g}, where success cannot be, so the "
                "lags show no law of decay."
            )
    return None


def jackknife(
    readings: list[float], *, scale: Literal["log", "plain"], confidence: float
) -> tuple[float, float, float]:
    """The whole fit's reading, and Student's interval from those without one trial each.

    Args:
        readings: The whole fit's first. Alone, it has an infinite interval.
        scale: "log" for what is positive and spans magnitudes.
        confidence: Of the interval.
    """
    whole, parts = readings[0], np.array(readings[1:], dtype=np.float64)
    unknown = (whole, 0.0 if scale == "log" else -math.inf, math.inf)
    if parts.size < 3:
        return unknown
    if scale == "log":
        if whole <= 0.0 or np.any(parts <= 0.0):
            return whole, 0.0, float(max(whole, parts.max()))
        if not (math.isfinite(whole) and np.all(np.isfinite(parts))):
            return unknown
        whole, parts = math.log(whole), np.log(parts)
    n = parts.size
    error = math.sqrt((n - 1) / n * float(((parts - parts.mean()) ** 2).sum()))
    half = float(stats.t.isf((1.0 - confidence) / 2.0, n - 1)) * error
    ends = (whole, whole - half, whole + half)
    if scale == "plain":
        return ends
    return math.exp(ends[0]), math.exp(ends[1]), math.exp(min(ends[2], 700.0))


def _kept(law: Law, lags: Floats, scale: Floats | float, shape: Floats | float) -> Floats:
    if law == "exponential":
        return np.asarray(np.exp(-lags / scale))
    return np.asarray((1.0 + lags / scale) ** -shape)


def _solve(kept: Floats, value: Floats) -> tuple[Floats, Floats, Floats]:
    """Start, floor and squared error of the best line through the shares kept, for each row."""
    spread = kept - kept.mean(axis=-1, keepdims=True)
    squares = (spread**2).sum(axis=-1)
    slope = np.divide(spread @ value, squares, out=np.zeros_like(squares), where=squares > 0.0)
    floor = value.mean() - slope * kept.mean(axis=-1)
    left = value - floor[..., None] - slope[..., None] * kept
    return floor + slope, floor, (left**2).sum(axis=-1)


def _fit(law: Law, lags: Floats, value: Floats) -> Fitted:
    gap, last = float(np.diff(lags).min()), float(lags[-1])
    shapes = _SHAPES if law == "power" else (1.0,)
    ends = math.log(gap / 4.0), math.log(4.0 * last)
    grid = np.array([(s, math.log(h)) for s in np.linspace(*ends, _SCALES) for h in shapes])
    limits = np.array([ends, (math.log(0.1), math.log(10.0))]).T

    def solved(points: Floats) -> tuple[Floats, Floats, Floats]:
        scale, shape = np.exp(np.clip(points, *limits)).T[..., None]
        return _solve(_kept(law, lags, scale, shape), value)

    def error(point: Floats) -> float:
        outside = float(np.abs(point - np.clip(point, *limits)).sum())
        return float(solved(point[None])[2][0]) * (1.0 + outside)

    best = grid[np.argmin(solved(grid)[2])]
    if law == "exponential":
        step = (ends[1] - ends[0]) / (_SCALES - 1)
        best_scale = optimize.minimize_scalar(
            lambda log_scale: error(np.array([log_scale, 0.0])),
            bounds=(best[0] - step, best[0] + step),
            method="bounded",
        )
        point = np.array([best_scale.x, 0.0])
    else:
        point = optimize.minimize(error, best, method="Nelder-Mead").x
    point = np.clip(point if error(point) <= error(best) else best, *limits)
    start, floor, squares = (float(part[0]) for part in solved(point[None]))
    scale, shape = (float(part) for part in np.exp(point))
    return Fitted(law, start, floor, scale, shape, math.sqrt(squares / lags.size))


def _held_out_error(law: Law, lags: Floats, value: Floats) -> float:
    """Root mean square error at lags that were left out, one after the other."""
    missed = []
    for out in range(1, lags.size):
        fit = _fit(law, np.delete(lags, out), np.delete(value, out))
        missed.append(float(fit.value(lags[out])) - value[out])
    return math.sqrt(float(np.mean(np.square(missed))))
