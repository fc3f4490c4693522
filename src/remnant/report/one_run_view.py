"""The view of a run whose canaries were planted in windows along the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from remnant.records import Record
from remnant.report.curve import Curve, Point
from remnant.report.fields import Fields
from remnant.report.run_view import NotMeasured, Results, RunView, run_fields

_RATES = ("tpr", "precision", "auc", "accuracy")
_SUCCESS = ("success", "low", "high")
_EFFECT = ("effect", "effect_low", "effect_high")


@dataclass(frozen=True, slots=True)
class Cohort:
    """Canaries planted in one window, and equally often.

    Attributes:
        window: Number of the window, counted from 0.
        start: Step at which the window begins.
        repeats: How often each canary was used.
        n: How many canaries they are.
        curve: Attack success against lag, which is counted from each canary's own last use.
        effect: How much planting raised the mean log-odds, in nats, at the same lags.
        checkpoints: Steps trained at each of these lags.
    """

    window: int
    start: int
    repeats: int
    n: int
    curve: Curve
    effect: tuple[Point, ...]
    checkpoints: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class OneRun:
    """Success against lag within one training run.

    Attributes:
        cohorts: By window, then by repeats.
        starts: Steps at which the windows begin.
        window: Steps of each window.
        steps: Steps of the whole run.
        n_unseen: Canaries that were never planted.
        calibrated: Whether the attacker also holds the model from before the window.
    """

    cohorts: tuple[Cohort, ...]
    starts: tuple[int, ...]
    window: int
    steps: int
    n_unseen: int
    calibrated: bool

    @property
    def repeats(self) -> tuple[int, ...]:
        """The numbers of repeats, rising."""
        return tuple(sorted({one.repeats for one in self.cohorts}))

    @property
    def first(self) -> tuple[Cohort, ...]:
        """The cohorts of the first window, whose lags are the longest: those that are judged."""
        return tuple(one for one in self.cohorts if one.window == self.cohorts[0].window)

    @property
    def judged(self) -> Cohort:
        """Of the first window the cohort whose interval ends highest at the last checkpoint."""
        return max(self.first, key=lambda one: (one.curve.end.high or 0.0, one.repeats))

    @property
    def curve(self) -> Curve:
        """Any of the curves, for what all of them share."""
        return self.cohorts[0].curve

    @property
    def planted(self) -> int:
        """How many canaries were planted at all."""
        return sum(one.n for one in self.cohorts)

    @property
    def effect_known(self) -> bool:
        """Whether the effect was measured anywhere."""
        return any(point.value is not None for one in self.cohorts for point in one.effect)


@dataclass(frozen=True, slots=True)
class OneRunView(RunView):
    """Everything a report shows of one run that carried canaries and their controls."""

    one_run: OneRun | NotMeasured


def read_one_run(record: Record) -> OneRunView:
    """Read a one-run record into a view.

    Raises:
        RecordError: A result is there but not in the form it should have.
    """
    results = Results(record)
    return OneRunView(**run_fields(record, results), one_run=results.read("one_run", _one_run))


def _one_run(found: Mapping[str, Any]) -> OneRun | NotMeasured:
    fields = Fields(found, name="one_run")
    starts, window = fields.wholes("starts"), fields.whole("window")
    steps, n_unseen = fields.whole("steps"), fields.whole("n_unseen")
    calibrated = fields.flag("calibrated")
    if any(later <= earlier for earlier, later in pairwise(starts)):
        fields.note(".starts", "do not rise")
    if starts and starts[-1] + window > steps:
        fields.note(".steps", "end before the last window does")
    shared = _shared(fields) | {"n_unseen": n_unseen}
    rows = _rows(fields)
    if any(not 0 <= row.checkpoint < max(steps, 1) for row in rows):
        fields.note(".checkpoint", "lies outside the run")
    if any(row.cohort >= len(starts) for row in rows):
        fields.note(".cohort", f"names a window that is none of the {len(starts)} in starts")
    cells: dict[tuple[int, int], list[_Row]] = {}
    for row in rows:
        cells.setdefault((row.cohort, row.repeats), []).append(row)
    for (number, repeats), mine in cells.items():
        if any(later.success.lag <= earlier.success.lag for earlier, later in pairwise(mine)):
            fields.note(".lags", f"do not rise in window {number}, {repeats} repeats")
    fields.check()
    if not rows:
        return NotMeasured("no canary was scored after its window")
    cohorts = tuple(_cohort(cells[cell], starts, shared) for cell in sorted(cells))
    return OneRun(cohorts, starts, window, steps, n_unseen, calibrated)


@dataclass(frozen=True, slots=True)
class _Row:
    cohort: int
    repeats: int
    n: int
    checkpoint: float
    success: Point
    effect: Point


def _rows(fields: Fields) -> list[_Row]:
    """One row a cohort and checkpoint; too few where columns differ in length, which is noted."""
    lags, checkpoints = fields.numbers("lags"), fields.numbers("checkpoint")
    counts = {key: fields.wholes(key) for key in ("cohort", "repeats", "n_seen")}
    measured = {key: fields.numbers_or_none(key) for key in (*_SUCCESS, *_EFFECT)}
    fields.same_length(lags=lags, checkpoint=checkpoints, **counts, **measured)
    successes, effects = (
        [Point(*row) for row in zip(lags, *(measured[key] for key in keys), strict=False)]
        for keys in (_SUCCESS, _EFFECT)
    )
    columns = zip(*counts.values(), checkpoints, successes, effects, strict=False)
    return [_Row(*row) for row in columns]


def _shared(fields: Fields) -> dict[str, Any]:
    """What all curves have in common."""
    rate = fields.text("rate")
    if rate not in _RATES:
        fields.note(".rate", f"is none of {', '.join(_RATES)}")
    return {
        "success": rate,
        "chance": fields.number("chance"),
        "fpr": fields.number_or_none("fpr"),
        "confidence": fields.number("confidence"),
        "method": fields.text("method"),
        "trials": None,
        "steps_to": (),
    }


def _cohort(rows: list[_Row], starts: tuple[int, ...], shared: Mapping[str, Any]) -> Cohort:
    first = rows[0]
    return Cohort(
        window=first.cohort,
        start=starts[first.cohort],
        repeats=first.repeats,
        n=first.n,
        curve=Curve(points=tuple(row.success for row in rows), n_seen=first.n, **shared),
        effect=tuple(row.effect for row in rows),
        # A row is scored after the step it names, and steps are counted from 0.
        checkpoints=tuple(row.checkpoint + 1 for row in rows),
    )
