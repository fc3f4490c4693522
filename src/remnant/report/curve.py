"""A forgetting curve as the record holds it, read once and checked, ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass

SPACE = "\N{NARROW NO-BREAK SPACE}"

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


def plain_spaces(text: str) -> str:
    """A text with plain spaces, as records, JSON and messages have it."""
    return text.replace(SPACE, " ")


def percent(value: float | None, digits: int = 1) -> str:
    """A share in percent, such as ``74.1 %``; a dash where there is none."""
    return "–" if value is None else f"{100 * value:.{digits}f}{SPACE}%"


def short_percent(value: float | None) -> str:
    """A share in percent with the digits it has, such as ``10 %`` or ``0.1 %``.

    Example:
        >>> short_percent(0.1).replace(SPACE, " "), short_percent(0.001).replace(SPACE, " ")
        ('10 %', '0.1 %')
    """
    return "–" if value is None else f"{100 * value:.6g}{SPACE}%"


def lag_text(lag: float) -> str:
    """A lag in print: whole numbers without a point, thousands set apart."""
    if lag != int(lag):
        return f"{lag:.1f}"
    return f"{int(lag):,}".replace(",", SPACE)
