"""What a run with canaries planted along the way measured: attack success at every checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

from remnant.errors import require
from remnant.measures.forgetting.one_run_attackers import MODEL_ALONE, TWO_CHECKPOINTS
from remnant.records.typed import Absent, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.curves import Curve, Point
from remnant.studies.shared.result_parts import (
    ClassifierTask,
    Gate,
    LanguageTask,
    SpeechTask,
    Task,
    Tested,
)

COLUMNS = (
    *("success", "low", "high", "effect", "effect_low", "effect_high"),
    *("cohort", "repeats", "checkpoint", "n_seen"),
)


@dataclass(frozen=True, slots=True)
class Cohort:
    """Canaries planted in one window, and equally often.

    Attributes:
        window: Number of the window, counted from 0.
        start: Step at which the window begins.
        repeats: How often each canary was used.
        n: How many canaries they are.
        curve: Attack success against lag, which is counted from each canary's own last use.
        effect: How much planting raised the mean score, at the same lags.
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
class Disagreement:
    """Two windows whose intervals do not overlap at about the same lag."""

    later: Cohort
    later_point: Point
    first: Cohort
    first_point: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerAtEnd:
    """The success of one more attacker on what is judged.

    Attributes:
        name: What the attacker has, in words.
        success: On the group of canaries whose upper bound is the highest.
        low, high: One-sided bounds of the same group.
    """

    name: str
    success: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRunCurves:
    """Success against lag within one training run; one row per cohort and later checkpoint.

    Attributes:
        rate: Which success.
        fpr: Of ``tpr`` and ``precision``; None otherwise.
        calibrated: Whether each canary's score before the window was subtracted.
        method: How the intervals were made, in words.
        n_unseen: Canaries that were never planted.
        starts: Steps at which the windows begin.
        window: Steps of each window.
        steps: Steps of the whole run.
        lags: Mean number of steps since the last use, one a row.
        success, low, high: Attack success with its interval.
        effect, effect_low, effect_high: Rise of the mean score by planting: of a classifier, of
            the log-odds in nats; of a language model or recogniser, bits that a sequence or
            transcript costs less.
        cohort, repeats, n_seen: Number of the window, uses of each canary, canaries.
        checkpoint: The step after which the row was scored, counted from 0.
        ends: Where windows are those of the last uses of logged examples: the step after the last
            of each, and ``window`` is the longest. None where all windows are ``window`` steps.
        found, found_at: Whether the attack found the canaries planted first at any checkpoint, and
            at which lag; None in older records.
        attacker: Whose success it is, in words; None in older records.
        references: Reference models that scores are compared with.
        others: Other attackers at the end of the run; None in older records.
    """

    rate: Literal["tpr", "precision", "auc", "accuracy"]
    fpr: float | None
    confidence: float
    chance: float
    calibrated: bool
    method: str
    n_unseen: int
    starts: tuple[int, ...]
    window: int
    steps: int
    lags: tuple[float, ...]
    success: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    effect: tuple[float | None, ...]
    effect_low: tuple[float | None, ...]
    effect_high: tuple[float | None, ...]
    cohort: tuple[int, ...]
    repeats: tuple[int, ...]
    checkpoint: tuple[float, ...]
    n_seen: tuple[int, ...]
    ends: tuple[int, ...] | None = optional()
    found: bool | None = optional()
    found_at: float | None = optional()
    attacker: str | None = optional()
    references: int | None = optional()
    others: tuple[AttackerAtEnd, ...] | None = optional()

    def __post_init__(self) -> None:
        rows, windows = len(self.lags), len(self.starts)
        faults = [
            f".{name} has {len(getattr(self, name))} entries for {rows} lags"
            for name in COLUMNS
            if len(getattr(self, name)) != rows
        ]
        if any(later <= earlier for earlier, later in pairwise(self.starts)):
            faults.append(".starts do not rise")
        if self.ends is not None and len(self.ends) != windows:
            faults.append(f".ends has {len(self.ends)} entries for {windows} starts")
        elif windows and self.window_end(windows - 1) > self.steps:
            faults.append(".steps end before the last window does")
        if any(not 0 <= step < max(self.steps, 1) for step in self.checkpoint):
            faults.append(".checkpoint lies outside the run")
        if any(number >= windows for number in self.cohort):
            faults.append(f".cohort names a window that is none of the {windows} in starts")
        for (number, repeats), indices in self._cells().items():
            if any(self.lags[later] <= self.lags[i] for i, later in pairwise(indices)):
                faults.append(f".lags do not rise in window {number}, {repeats} repeats")
        require(faults)

    @property
    def rows(self) -> tuple[dict[str, float | None], ...]:
        """One row a cohort and checkpoint."""
        names = ("lags", *COLUMNS)
        rows = zip(*(getattr(self, name) for name in names), strict=True)
        return tuple(dict(zip(names, row, strict=True)) for row in rows)

    @property
    def who(self) -> str:
        """Whose success it is, in words."""
        return self.attacker or (TWO_CHECKPOINTS if self.calibrated else MODEL_ALONE)

    @property
    def less(self) -> str:
        """What an attack takes from a score, to be put after the score; empty for nothing."""
        if self.references:
            return ", compared with the same in models that did not see it"
        return ", less the same from before the window" if self.calibrated else ""

    def window_end(self, number: int) -> int:
        """The step after the last of a window."""
        return self.starts[number] + self.window if self.ends is None else self.ends[number]

    @property
    def used(self) -> str:
        """What happened to canaries in a window: they were planted, or last used."""
        return "planted" if self.ends is None else "last used"

    def _cells(self) -> dict[tuple[int, int], list[int]]:
        """Indices of the rows of each cohort, by window and repeats; of whole rows alone."""
        cells: dict[tuple[int, int], list[int]] = {}
        rows = zip(self.lags, self.cohort, self.repeats, strict=False)
        for index, (_, number, repeats) in enumerate(rows):
            cells.setdefault((number, repeats), []).append(index)
        return cells

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        """All cohorts, by window, then by repeats."""
        return tuple(
            self._cohort(number, repeats, indices)
            for (number, repeats), indices in sorted(self._cells().items())
        )

    def _cohort(self, number: int, repeats: int, indices: list[int]) -> Cohort:
        def points(*columns: tuple[float | None, ...]) -> tuple[Point, ...]:
            return tuple(Point(self.lags[i], *(column[i] for column in columns)) for i in indices)

        canaries = self.n_seen[indices[0]]
        curve = Curve(
            success=self.rate,
            points=points(self.success, self.low, self.high),
            chance=self.chance,
            fpr=self.fpr,
            confidence=self.confidence,
            trials=None,
            n_seen=canaries,
            n_unseen=self.n_unseen,
            method=self.method,
            steps_to=(),
        )
        effect = points(self.effect, self.effect_low, self.effect_high)
        # A row is scored after the step it names, and steps are counted from 0.
        checkpoints = tuple(self.checkpoint[i] + 1 for i in indices)
        return Cohort(number, self.starts[number], repeats, canaries, curve, effect, checkpoints)

    @property
    def levels(self) -> tuple[int, ...]:
        """The numbers of repeats, rising."""
        return tuple(sorted(set(self.repeats)))

    @property
    def first(self) -> tuple[Cohort, ...]:
        """The cohorts of the first window, whose lags are the longest: those that are judged."""
        cohorts = self.cohorts
        return tuple(cohort for cohort in cohorts if cohort.window == cohorts[0].window)

    @property
    def judged(self) -> Cohort:
        """Of the first window the cohort whose interval ends highest at the last checkpoint."""
        return max(self.first, key=lambda cohort: (cohort.curve.end.high or 0.0, cohort.repeats))

    @property
    def curve(self) -> Curve:
        """Any of the curves, for what all of them share."""
        return self.cohorts[0].curve

    @property
    def planted(self) -> int:
        """How many canaries were planted."""
        return sum(cohort.n for cohort in self.cohorts)

    @property
    def effect_known(self) -> bool:
        """Whether the effect was measured anywhere."""
        return any(value is not None for value in self.effect)

    @property
    def disagreement(self) -> Disagreement | None:
        """Of all windows that disagree with the first at about the same lag, the furthest off.

        A later window's last point is compared with the first window's point of the nearest lag,
        planted as often. They disagree where their intervals do not overlap.
        """
        furthest, most = None, 0.0
        cohorts = self.cohorts
        for first in self.first:
            for later in cohorts:
                if later.repeats != first.repeats or later.window == first.window:
                    continue
                end = later.curve.end
                near = min(first.curve.points, key=lambda point: abs(point.lag - end.lag))
                gap = _gap(end, near)
                if gap > most:
                    furthest, most = Disagreement(later, end, first, near), gap
        return furthest


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneRunParts(QuestionResult):
    """What one run recorded, whatever it trained.

    Attributes:
        one_run: Attack success at every checkpoint, and what planting did to the scores.
        task: How well the model does what it was trained for.
    """

    ROWS: ClassVar[tuple[str, ...]] = ("one_run.rows",)

    verdict: Gate | Absent
    one_run: OneRunCurves | Absent
    task: Task | Absent
    scope: Tested | Absent

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Return the parts; a curve without a row is one that was not measured."""
        curves = parts.get("one_run")
        if isinstance(curves, Mapping) and curves.get("lags") == []:
            absent = {"absent": "no canary was scored after its window"}
            return parts | {"one_run": absent}
        return parts


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OneRunResult(OneRunParts):
    """What a run of the question ``one-run`` recorded."""

    task: ClassifierTask | Absent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TextOneRunResult(OneRunParts):
    """What a run of the question ``text-one-run`` recorded."""

    task: LanguageTask | Absent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SpeechOneRunResult(OneRunParts):
    """What a run of the question ``speech-one-run`` recorded."""

    task: SpeechTask | Absent


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TranslationOneRunResult(OneRunParts):
    """What a run of the question ``translation-one-run`` recorded."""

    task: LanguageTask | Absent


def _gap(point: Point, other: Point) -> float:
    """How far two intervals are apart; not at all where one is not known."""
    if point.low is None or point.high is None or other.low is None or other.high is None:
        return 0.0
    return max(point.low - other.high, other.low - point.high)
