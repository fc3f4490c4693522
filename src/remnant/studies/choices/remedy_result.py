"""What a study of defences measured, remedy by remedy.

No secret is in it: a canary is its exposure and the remedy under which it was trained on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from remnant.errors import require
from remnant.records.typed import Absent
from remnant.studies.choices.result import Ends, Interval
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.result_parts import Gate, LanguageTask, Tested

Status = Literal["as planned", "holds", "fails", "useless model", "not shown"]


def fewest_trials(remedies: int, confidence: float) -> int:
    """How many trials the sign test takes to distinguish one of the remedies from doing nothing.

    Example:
        >>> fewest_trials(17, 0.95)
        10
    """
    return math.ceil(1.0 + math.log2(remedies / (1.0 - confidence)) - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """The privacy that a training promises.

    Attributes:
        epsilon: An upper bound; None where none is known.
        delta: The probability with which the promise may fail.
        reason: Why there is no epsilon; empty where there is one.
    """

    epsilon: float | None
    delta: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How far a remedy's mean lies above that of doing nothing, trial by trial.

    Attributes:
        difference: With its interval, corrected for the number of remedies.
        at_least: Whether one side of the difference is a lower bound.
        p_value, adjusted_p_value: Two-sided; adjusted by Holm for the number of remedies.
        differs: Whether the difference is significant.
    """

    difference: Ends
    at_least: bool = False
    p_value: float | None
    adjusted_p_value: float | None
    differs: bool

    @property
    def interval(self) -> Interval:
        """The difference as an interval."""
        return Interval(*self.difference, at_least=self.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRemedy:
    """A remedy: how exposed canaries are under it, and how useful the models.

    Attributes:
        name: Of its arrays in the record.
        kind: Of remedy; empty for the training as planned.
        settings: The fields of its kind.
        changes: Fields of the recipe that it changes.
        models, steps: Models that were measured, and steps of their training.
        exposure: Mean over models; a lower bound where ``saturated``.
        each: Of every canary, trial by trial.
        exact: How many of them are exact ranks.
        saturated: How many of them are lower bounds.
        ranked_first: Share of canaries that no other secret is likelier than; None where that is
            not known.
        controls: Mean exposure of secrets that were never planted; None where there are none.
        validation_bits: What a token of held-out text costs.
        relearnt: Mean exposure after some more clean steps; None where that was not measured.
        privacy: Of private training; None for others.
        exposure_change, cost: Differences of exposure and of validation bits from doing nothing;
            None for the training as planned.
        status: Whether it holds the limit.
        reason: Why, in a sentence.
    """

    name: str
    label: str
    kind: str
    settings: dict[str, Any]
    changes: dict[str, Any]
    models: int
    steps: int
    exposure: Ends
    each: tuple[float, ...]
    exact: int
    saturated: int
    ranked_first: Ends | None
    controls: Ends | None
    validation_bits: Ends
    relearnt: Ends | None
    privacy: Privacy | None
    exposure_change: Change | None
    cost: Change | None
    status: Status
    reason: str

    @property
    def mean_exposure(self) -> Interval:
        """Mean exposure over models; a lower bound where a canary is saturated."""
        return Interval(*self.exposure, at_least=self.saturated > 0)

    @property
    def validation(self) -> Interval:
        """Bits a token of held-out text."""
        return Interval(*self.validation_bits)

    @property
    def like_nothing(self) -> bool:
        """Whether its exposure does not differ significantly from that of doing nothing."""
        return self.exposure_change is not None and not self.exposure_change.differs


@dataclass(frozen=True, slots=True, kw_only=True)
class Defences:
    """All remedies, the training as planned first.

    Attributes:
        limit: Bits that every canary must stay below.
        space_bits: The maximum exposure.
        null_mean_bits: Mean exposure of secrets that nobody planted.
        repeats: How often each canary was planted.
        trials: Seeds of each remedy.
        confidence: Of the intervals.
        token: What a token is.
        unigram_bits: What a token of held-out text costs by the frequencies of the training text
            alone: a model that needs about as many bits is useless.
        remedies: The training as planned, then the remedies.
        pareto: Labels on the Pareto front of validation bits and exposure.
    """

    title: str
    limit: float
    space_bits: float
    null_mean_bits: float
    repeats: tuple[int, ...]
    trials: int
    confidence: float
    token: str
    unigram_bits: float
    remedies: tuple[MeasuredRemedy, ...]
    pareto: tuple[str, ...]

    def __post_init__(self) -> None:
        known = {remedy.label for remedy in self.remedies}
        faults = [] if set(self.pareto) <= known else [".pareto names what is no remedy"]
        faults += [] if self.remedies else [".remedies is empty"]
        require(faults)

    @property
    def nothing(self) -> MeasuredRemedy:
        """The training as planned."""
        return self.remedies[0]

    @property
    def trials_needed(self) -> int:
        """Trials that it takes to distinguish one of so many remedies from doing nothing."""
        return fewest_trials(max(len(self.tried), 1), self.confidence)

    @property
    def tried(self) -> tuple[MeasuredRemedy, ...]:
        """All others."""
        return self.remedies[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefencesVerdict(Gate):
    """Whether a remedy holds the limit, and which is the cheapest.

    Attributes:
        cheapest: The remedy that holds the limit at the lowest cost of usefulness; None where none
            does.
        holding: All remedies that hold it, the cheapest first.
        as_cheap: Those whose cost does not differ significantly from that of the cheapest.
        like_nothing: Remedies whose exposure does not differ significantly from doing nothing; none
            where there are too few trials to show a difference.
        useless: Remedies whose models hardly predict better than the frequencies of the tokens do.
    """

    cheapest: str | None = None
    holding: tuple[str, ...] = ()
    as_cheap: tuple[str, ...] = ()
    like_nothing: tuple[str, ...] = ()
    useless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DefencesResult(QuestionResult):
    """What a run of the question ``defences`` recorded."""

    verdict: DefencesVerdict | Absent
    defences: Defences | Absent
    task: LanguageTask | Absent
    scope: Tested | Absent
