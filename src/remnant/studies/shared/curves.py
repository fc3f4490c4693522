"""Curves as a record keeps them and as a page reads them, curves side by side, their gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from remnant.errors import InvalidInput
from remnant.records.typed import optional
from remnant.report.numerals import percent, short_percent

Numbers = tuple[float | None, ...]
_LABELS = {
    "precision": "Precision",
    "tpr": "True positive rate",
    "auc": "AUC",
    "accuracy": "Attack accuracy",
    "exposure": "Mean exposure in bits",
    "stands_out": "Share of models that stand out",
    "error_rate": "Character error rate",
}
_AT_FPR = ("precision", "tpr")


@dataclass(frozen=True, slots=True)
class Point:
    """One lag of a curve; None where that number was not measured."""

    lag: float
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Curve:
    """Attack success against lag.

    Attributes:
        success: The measure's name, such as ``"precision"``.
        points: In order of lag.
        chance: Success of an attacker who guesses, or None where it has no such level.
        fpr: The false positive rate the measure is taken at, or None.
        confidence: Of the interval, such as 0.95, or None.
        trials, n_seen, n_unseen, method: How it was computed, where known.
        steps_to: Level and the lag at which the curve falls to it (None: never while watched).
        smoothed: A moving average of the values, to look at; empty where there is none.
        epsilon: The heuristic epsilon at each lag, in nats; empty where there is none.
        by_construction: Whether the values at lag 0 and before hold by construction: scores are
            calibrated by a checkpoint that the unplanted twin still equals there.
    """

    success: str
    points: tuple[Point, ...]
    chance: float | None
    fpr: float | None
    confidence: float | None
    trials: int | None
    n_seen: int | None
    n_unseen: int | None
    method: str | None
    steps_to: tuple[tuple[float, float | None], ...]
    smoothed: tuple[float | None, ...] = ()
    epsilon: tuple[Point, ...] = ()
    by_construction: bool = False

    @property
    def label(self) -> str:
        """What the curve shows, such as ``Precision at FPR 10 %``."""
        name = _LABELS.get(self.success, self.success)
        at_fpr = self.fpr is not None and self.success in _AT_FPR
        return f"{name} at FPR {short_percent(self.fpr)}" if at_fpr else name

    @property
    def is_share(self) -> bool:
        """Whether values read best as percentages."""
        return self.success in ("precision", "tpr", "accuracy", "stands_out", "error_rate")

    @property
    def highest(self) -> float | None:
        """The largest value the measure can take at a realised FPR of exactly ``fpr``."""
        if self.success == "precision" and self.fpr is not None:
            return 1 / (1 + self.fpr)
        if self.success == "error_rate":
            return None  # more may be heard than was said
        return 1.0 if self.is_share or self.success == "auc" else None

    @property
    def start(self) -> Point:
        """The first lag at which the attack can fail: the first, or the first after 0."""
        if self.by_construction:
            return next((point for point in self.points if point.lag > 0), self.points[-1])
        return self.points[0]

    @property
    def constructed(self) -> Point | None:
        """The point at lag 0 where it holds by construction and a later one was measured."""
        return self.at(0.0) if self.by_construction and self.end.lag > 0 else None

    @property
    def end(self) -> Point:
        """The last lag."""
        return self.points[-1]

    def at(self, lag: float) -> Point | None:
        """The point at exactly this lag, or None."""
        return next((point for point in self.points if point.lag == lag), None)

    def show(self, value: float | None) -> str:
        """A value of this curve in print; a dash where there is none."""
        if value is None:
            return "–"
        if self.is_share:
            return percent(value)
        return f"{value:.{2 if self.success == 'exposure' else 3}f}"

    def show_interval(self, point: Point) -> str:
        """The interval of a point in print, or nothing where there is none."""
        if point.low is None or point.high is None:
            return ""
        return f"{self.show(point.low)} to {self.show(point.high)}"

    def show_point(self, point: Point) -> str:
        """A value with its interval, such as ``74.1 % (68.0 % to 80.2 %)``."""
        interval = self.show_interval(point)
        return self.show(point.value) + (f" ({interval})" if interval else "")

    def chosen(self, count: int = 8) -> tuple[Point, ...]:
        """About ``count`` points that show the shape: first, last, and closer together early."""
        last = len(self.points) - 1
        if last < count:
            return self.points
        origin, span = self.points[0].lag, self.end.lag - self.points[0].lag
        # The root spaces them between evenly and by decades.
        wanted = [origin + span * (i / (count - 1)) ** 2 for i in range(count)]
        indices = {min(range(last + 1), key=lambda i: abs(self.points[i].lag - w)) for w in wanted}
        return tuple(self.points[i] for i in sorted(indices | {0, last}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """A number within a part that was not measured, and why."""

    absent: str

    @property
    def reason(self) -> str:
        """The reason without a full stop."""
        return self.absent.removesuffix(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """A number with its interval.

    Attributes:
        value: None where it is never reached, and where ``reason`` says why there is none.
        low, high: None where that end is unbounded.
        reason: Why there is no number, without a full stop; None where there is one.
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonColumns:
    """The heuristic epsilon at each lag, in nats; None where it is not finite."""

    value: Numbers
    low: Numbers
    high: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveResult:
    """Attack success at each lag; one entry of ``value``, ``low`` and ``high`` a lag.

    Attributes:
        label: A variant's name; None for the study's own curve.
        success: The measure's name, such as ``"precision"``.
        fpr: The false positive rate it is measured at; None for accuracy and AUC.
        chance: Success of an attacker who guesses.
        method: How the interval was made, in words.
        n_seen, n_unseen: Scores of each trial.
        lags: Steps since planting, rising.
        per_trial: Success of each trial, one row a lag.
        steps_to: The lag at which success falls to a level, by level; None where it does not.
        smoothed: A moving average of ``value``.
        epsilon: The heuristic epsilon of each lag, or why there is none.
        found: Whether the attack found the canaries at any lag, by the rule of the gate (its
            positive control); None in older records.
        found_at: The first such lag.
        traditional: A variant's accuracy and loss; None for the study's own curve.
    """

    label: str | None = optional()
    success: str = "attack success"
    fpr: float | None = None
    confidence: float | None = None
    chance: float | None = None
    method: str | None = None
    trials: int | None = None
    n_seen: int | None = None
    n_unseen: int | None = None
    lags: tuple[float, ...]
    value: Numbers
    low: Numbers | None = optional()
    high: Numbers | None = optional()
    per_trial: tuple[Numbers, ...] | None = optional()
    steps_to: dict[str, float | None] | None = optional()
    smoothed: Numbers | None = optional()
    epsilon: Unmeasured | EpsilonColumns | None = optional()
    found: bool | None = optional()
    found_at: float | None = optional()
    traditional: Traditional | None = optional()

    def __post_init__(self) -> None:
        columns: dict[str, Sequence[object] | None] = {
            name: getattr(self, name) for name in ("value", "low", "high", "per_trial", "smoothed")
        }
        if isinstance(self.epsilon, EpsilonColumns):
            for name in ("value", "low", "high"):
                columns[f"epsilon.{name}"] = getattr(self.epsilon, name)
        check_lags(self.lags, columns)
        check_levels(self.steps_to)

    def shown(self, *, by_construction: bool = False) -> Curve:
        """The curve as pages show it.

        Args:
            by_construction: Whether the attack cannot fail at lag 0.
        """
        epsilon = self.epsilon
        return Curve(
            success=self.success,
            points=points(self.lags, self.value, self.low, self.high),
            chance=self.chance,
            fpr=self.fpr,
            confidence=self.confidence,
            trials=self.trials,
            n_seen=self.n_seen,
            n_unseen=self.n_unseen,
            method=self.method or None,
            steps_to=levels(self.steps_to),
            smoothed=self.smoothed or (),
            epsilon=points(self.lags, epsilon.value, epsilon.low, epsilon.high)
            if isinstance(epsilon, EpsilonColumns)
            else (),
            by_construction=by_construction,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A curve that is compared with others; what it measures stands in the comparison."""

    label: str
    lags: tuple[float, ...]
    value: Numbers
    low: Numbers | None = optional()
    high: Numbers | None = optional()

    def __post_init__(self) -> None:
        check_lags(self.lags, {name: getattr(self, name) for name in ("value", "low", "high")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a variant's curve lies above the study's own, averaged over the lags after 0.

    Attributes:
        mean, mean_low, mean_high: In the curve's units.
        p_value: Of that variant alone.
        adjusted_p_value: Corrected for the number of variants.
    """

    label: str
    mean: float
    mean_low: float
    mean_high: float
    p_value: float | None = optional()
    confidence: float | None = optional()
    method: str | None = optional()
    adjusted_p_value: float | None = optional()

    @property
    def ends(self) -> Ends:
        """The mean with its interval."""
        return Ends(value=self.mean, low=self.mean_low, high=self.mean_high)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoDifference:
    """A variant that could not be compared with the study, and why."""

    label: str
    absent: str

    @property
    def reason(self) -> str:
        """The variant and the reason, without a full stop."""
        return f"{self.label}: {self.absent.removesuffix('.')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Several curves side by side, the study's own first, and how far the others lie from it.

    Attributes:
        success, chance: Of all curves; None where they are those of the study's own curve.
    """

    title: str = "Comparison"
    success: str | None = optional()
    chance: float | None = optional()
    series: tuple[Series, ...]
    differences: tuple[NoDifference | Difference, ...] = ()

    def __post_init__(self) -> None:
        if not self.series:
            raise InvalidInput(".series is empty")

    def curves(self, primary: Curve | None) -> tuple[tuple[str, Curve], ...]:
        """Label and curve of each series.

        Args:
            primary: The study's own curve: measure and chance of what has none of its own.
        """
        success = self.success or (primary.success if primary is not None else "attack success")
        chance = self.chance
        if chance is None and primary is not None:
            chance = primary.chance
        return tuple(
            (
                series.label,
                bare_curve(
                    points(series.lags, series.value, series.low, series.high),
                    success=success,
                    chance=chance,
                    fpr=None if primary is None else primary.fpr,
                ),
            )
            for series in self.series
        )

    @property
    def known(self) -> dict[str, Difference]:
        """The differences that could be measured, by label."""
        return {
            difference.label: difference
            for difference in self.differences
            if isinstance(difference, Difference)
        }

    @property
    def unknown(self) -> tuple[NoDifference, ...]:
        """The differences that could not be measured."""
        return tuple(
            difference for difference in self.differences if isinstance(difference, NoDifference)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Traditional:
    """Mean accuracy and loss on the canaries, in the twin that saw them and the one that did not.

    Attributes:
        lags: Steps since planting.
        seen_accuracy, unseen_accuracy: Shares at each lag.
        seen_loss, unseen_loss: Nats at each lag.
    """

    lags: tuple[float, ...]
    seen_accuracy: Numbers | None = optional()
    seen_loss: Numbers | None = optional()
    unseen_accuracy: Numbers | None = optional()
    unseen_loss: Numbers | None = optional()

    def __post_init__(self) -> None:
        columns = self.columns
        if all(column is None for column in columns.values()):
            raise InvalidInput(" has neither accuracy nor loss")
        check_lags(self.lags, columns)

    @property
    def columns(self) -> dict[str, Numbers | None]:
        """The four columns by name."""
        names = ("seen_accuracy", "seen_loss", "unseen_accuracy", "unseen_loss")
        return {name: getattr(self, name) for name in names}

    @property
    def rows(self) -> tuple[TraditionalRow, ...]:
        """One row a lag."""
        blank: Numbers = (None,) * len(self.lags)
        columns = [column or blank for column in self.columns.values()]
        return tuple(
            TraditionalRow(lag, *numbers) for lag, *numbers in zip(self.lags, *columns, strict=True)
        )


@dataclass(frozen=True, slots=True)
class TraditionalRow:
    """Accuracy and loss on the canaries at one lag."""

    lag: float
    seen_accuracy: float | None
    seen_loss: float | None
    unseen_accuracy: float | None
    unseen_loss: float | None


def points(
    lags: Sequence[float], value: Numbers, low: Numbers | None, high: Numbers | None
) -> tuple[Point, ...]:
    """The columns of a curve as its points."""
    blank: Numbers = (None,) * len(lags)
    return tuple(map(Point, lags, value, low or blank, high or blank))


def bare_curve(
    measured: tuple[Point, ...], *, success: str, chance: float | None, fpr: float | None = None
) -> Curve:
    """A curve of which nothing but its points and its measure is known."""
    return Curve(
        success=success,
        points=measured,
        chance=chance,
        fpr=fpr,
        confidence=None,
        trials=None,
        n_seen=None,
        n_unseen=None,
        method=None,
        steps_to=(),
    )


def levels(steps_to: Mapping[str, float | None] | None) -> tuple[tuple[float, float | None], ...]:
    """Levels and the lags at which they are reached, the highest level first."""
    rows = [(float(level), lag) for level, lag in (steps_to or {}).items()]
    return tuple(sorted(rows, key=lambda row: -row[0]))


def check_lags(lags: Sequence[float], columns: Mapping[str, Sequence[object] | None]) -> None:
    """Refuse lags that do not rise and columns of another length.

    Raises:
        InvalidInput: All faults, each with its place.
    """
    faults = [] if lags else [".lags is empty"]
    if any(later <= earlier for earlier, later in pairwise(lags)):
        faults.append(".lags do not rise")
    faults += [
        f".{name} has {len(column)} entries for {len(lags)} lags"
        for name, column in columns.items()
        if column is not None and len(column) != len(lags)
    ]
    if faults:
        raise InvalidInput("; ".join(faults))


def check_levels(steps_to: Mapping[str, float | None] | None) -> None:
    """Refuse levels that are no numbers.

    Raises:
        InvalidInput: A level is none.
    """
    for level in steps_to or {}:
        try:
            float(level)
        except ValueError as fault:
            raise InvalidInput(".steps_to has a level that is no number") from fault
