"""What a study of training choices or of defences measured, variant by variant.

No secret is in it: a canary is its exposure and the variant it was planted in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from remnant.errors import require
from remnant.records.typed import Absent, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.result_parts import Finding, Gate, LanguageTask, Tested

Ends = tuple[float, float | None, float | None]
"""A number and the two ends of its interval, which are None where one trial shows none."""
Status = Literal["as planned", "holds", "fails", "useless model", "not shown"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with both ends of its interval; None where one trial shows none.

    Attributes:
        at_least: True if the number is a lower bound; for a difference, if one side of it is.
    """

    value: float
    low: float | None
    high: float | None
    at_least: bool = False

    def below(self, other: Interval) -> bool:
        """Whether this interval ends before another begins; a lower bound has no upper end."""
        if self.high is None or other.low is None or self.at_least:
            return False
        return self.high < other.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a variant's mean is above that of the first, trial by trial.

    Attributes:
        label: Of the variant; None where the difference stands in the variant's own row.
        difference: With its interval.
        at_least: Whether one side of the difference is a lower bound.
        p_value, adjusted_p_value: Two-sided; adjusted by Holm for the number of variants.
        differs: Whether the difference is significant.
    """

    label: str | None = optional()
    difference: Ends
    at_least: bool = False
    p_value: float | None
    adjusted_p_value: float | None
    differs: bool

    @property
    def interval(self) -> Interval:
        """The difference with its interval."""
        return Interval(*self.difference, at_least=self.at_least)


class MeasuredVariant:
    """A variant of the training, one with a remedy among them: its exposure and its usefulness.

    Attributes:
        label: What it is called.
        exposure: Mean over models; a lower bound where ``saturated``.
        saturated: How many canaries' exposures are lower bounds.
        validation_bits: Bits a token of held-out text.
    """

    __slots__ = ()
    label: str
    exposure: Ends
    saturated: int
    validation_bits: Ends

    @property
    def mean_exposure(self) -> Interval:
        """Mean exposure over models; a lower bound where a canary is saturated."""
        return Interval(*self.exposure, at_least=self.saturated > 0)

    @property
    def validation(self) -> Interval:
        """Bits a token of held-out text."""
        return Interval(*self.validation_bits)


@dataclass(frozen=True, slots=True)
class Look:
    """A variant's models at one time of their training."""

    step: int
    epoch: float
    exposure: Interval
    validation: Interval
    training: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """How a variant's models changed while they were trained.

    Attributes:
        step, epoch: When they were measured.
        exposure, validation_bits, training_bits: Bits at each time.
        at_least: Whether each exposure is a lower bound; empty in older records.
        uses: Updates done when the first trial's first canary had been used.
        method: How exposure was measured on the way; None where older records do not say.
        ceiling_bits: The maximum exposure that this method can show.
    """

    step: tuple[int, ...]
    epoch: tuple[float, ...]
    exposure: tuple[Ends, ...]
    at_least: tuple[bool, ...] = ()
    validation_bits: tuple[Ends, ...]
    training_bits: tuple[Ends, ...]
    uses: tuple[int, ...]
    method: str | None = None
    ceiling_bits: float

    def __post_init__(self) -> None:
        columns = {
            name: getattr(self, name)
            for name in ("epoch", "exposure", "validation_bits", "training_bits")
        }
        columns |= {"at_least": self.at_least} if self.at_least else {}
        faults = _unequal("step", self.step, columns)
        require(faults + ([] if self.step else [".step is empty"]))

    @property
    def looks(self) -> tuple[Look, ...]:
        """One row a time."""
        bounds = self.at_least or (False,) * len(self.step)
        return tuple(
            Look(
                step,
                self.epoch[i],
                Interval(*self.exposure[i], at_least=bounds[i]),
                Interval(*self.validation_bits[i]),
                Interval(*self.training_bits[i]),
            )
            for i, step in enumerate(self.step)
        )

    @property
    def epoch_steps(self) -> float | None:
        """Steps of one pass over the text; None where only the start was measured."""
        last = self.epoch[-1]
        return self.step[-1] / last if last > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedVariant(MeasuredVariant):
    """One way to train, and how exposed the canaries of its models are.

    Attributes:
        changes: Fields in which its recipe differs from the first variant's.
        cell: Its values in the grid, by the fields' names; None where it is in none.
        repeats: How often each canary of a model was planted.
        models, steps, parameters: How many, trained how long, how large.
        exposure: Mean over models; ``each`` has every canary's, model by model.
        exact: Whether all exposures are ranks in the whole space; ``exact_each`` of each.
        saturated: Canaries whose exposure is a lower bound; ``saturated_each`` of each.
        ranked_first: Share of canaries that no secret but other canaries is likelier than.
        controls, twin: Exposure of secrets that the models did not see.
        validation_bits, training_bits: Bits a token, of held-out text and of that trained on.
        extracted: Share of canaries that a search extracted; ``extracted_each`` of each.
        nodes: Median over models of the search's nodes; ``nodes_each`` has every model's.
        searches_ended: Models whose search the budget ended before it was certain.
        skew_normal: Exposure estimated by a skew-normal law, in the order of ``each``.
        through: How models changed while they were trained; None where that was not measured.
    """

    label: str
    changes: dict[str, Any] | None = None
    cell: dict[str, Any] | None
    repeats: tuple[int, ...]
    models: int
    steps: int
    exposure: Ends
    each: tuple[float, ...]
    exact: bool | None = None
    exact_each: tuple[bool, ...]
    saturated: int
    saturated_each: tuple[bool, ...] | None = None
    ranked_first: Ends | None
    controls: Ends | None
    twin: Ends | None
    validation_bits: Ends
    training_bits: Ends
    extracted: Ends | None
    extracted_each: tuple[bool, ...] | None
    nodes: float | None
    nodes_each: tuple[int, ...] | None
    searches_ended: int = 0
    skew_normal: tuple[float, ...] | None
    parameters: int
    through: Through | None

    def __post_init__(self) -> None:
        columns: dict[str, tuple[Any, ...]] = {"exact_each": self.exact_each}
        if self.saturated_each is not None:
            columns["saturated_each"] = self.saturated_each
        if self.skew_normal:
            columns["skew_normal"] = self.skew_normal
        faults: list[str] = []
        if self.extracted is not None:
            columns["extracted_each"] = self.extracted_each or ()
            nodes = self.nodes_each or ()
            if not nodes or len(self.each) % len(nodes):
                faults.append(f".nodes_each has {len(nodes)} entries for {len(self.each)} canaries")
        require(faults + _unequal("each", self.each, columns))

    @property
    def planted(self) -> int | None:
        """How often its canaries were planted, where that is one number."""
        return self.repeats[0] if len(set(self.repeats)) == 1 else None

    @property
    def estimates(self) -> tuple[tuple[float, float], ...]:
        """Exact and estimated exposure of each canary of which both are known."""
        if not self.skew_normal:
            return ()
        rows = zip(self.each, self.skew_normal, self.exact_each, strict=True)
        return tuple((bits, estimate) for bits, estimate, exact in rows if exact)

    @property
    def searches(self) -> tuple[tuple[float, bool, float], ...]:
        """Exposure of each canary, whether it was extracted, and the nodes of its model's search.

        Empty where no search was made.
        """
        if self.extracted is None or self.extracted_each is None or self.nodes_each is None:
            return ()
        share = len(self.each) // len(self.nodes_each)
        return tuple(
            (bits, extracted, self.nodes_each[i // share])
            for i, (bits, extracted) in enumerate(zip(self.each, self.extracted_each, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One value of one field of a grid: the mean over all cells that have it.

    Attributes:
        cells: How many these are.
        along: Fields that move with it.
        at_least: Whether the exposure is a lower bound.
        difference: How far it is above the field's first value, trial by trial; None for that.
        difference_at_least: Whether one side of the difference is a lower bound.
        p_value, adjusted_p_value: Of the difference; adjusted for the number of all of them.
    """

    field: str
    value: str
    cells: int
    along: tuple[str, ...] = ()
    exposure: Ends
    at_least: bool = False
    validation_bits: Ends
    difference: Ends | None
    difference_at_least: bool = False
    p_value: float | None
    adjusted_p_value: float | None

    @property
    def mean_exposure(self) -> Interval:
        """Mean exposure over the cells."""
        return Interval(*self.exposure, at_least=self.at_least)

    @property
    def change(self) -> Interval | None:
        """The difference from the field's first value."""
        if self.difference is None:
            return None
        return Interval(*self.difference, at_least=self.difference_at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Canaries whose exposure lies between two numbers of bits.

    Attributes:
        low, high: The ends; equal for canaries that are ranked first.
        searched, read_out: Canaries of models that were searched, and those that were extracted.
        nodes: Median of the searches.
        estimated: Canaries of which both the rank and a skew-normal estimate are known.
        error: Estimate less exact exposure: the mean, the lowest and the highest.
    """

    low: float
    high: float
    canaries: int
    searched: int
    read_out: int
    nodes: float | None
    estimated: int
    error: Ends | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GridAxes:
    """The two fields of a grid that make a table."""

    rows: str
    columns: str


@dataclass(frozen=True, slots=True)
class GridRow:
    """A row of the table that a grid of two fields makes; None where a cell has no variant."""

    name: str
    cells: tuple[TrainedVariant | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingChoices:
    """All variants, the study itself first.

    Attributes:
        space_bits: The maximum exposure.
        null_mean_bits: Mean exposure of secrets that nobody planted.
        repeats: How often each canary of the first variant was planted.
        models: How many were trained; variants that only measure otherwise share theirs. None in
            older records.
        effects: What each field of a grid does on its own; none where there is no grid of two.
        by_exposure: Canaries of all variants by exposure.
        table: The fields of a table, where the variants make one.
        pareto: Labels of the variants on the Pareto front of validation bits and exposure.
    """

    title: str
    space_bits: float
    null_mean_bits: float
    repeats: tuple[int, ...] = ()
    trials: int
    models: int | None = None
    confidence: float
    token: str
    variants: tuple[TrainedVariant, ...]
    effects: tuple[Effect, ...] | None = None
    by_exposure: tuple[Band, ...] | None = None
    table: GridAxes | None
    pareto: tuple[str, ...]

    def __post_init__(self) -> None:
        faults = []
        if self.table is not None:
            axes = {self.table.rows, self.table.columns}
            cells = [variant.cell for variant in self.variants if variant.cell is not None]
            if not all(axes <= set(cell) for cell in cells):
                faults.append(".variants have cells without the table's fields")
        if not set(self.pareto) <= {variant.label for variant in self.variants}:
            faults.append(".pareto names what is no variant")
        require(faults)

    @property
    def trained(self) -> int:
        """How many models were trained; in older records, those of all variants."""
        if self.models is None:
            return sum(variant.models for variant in self.variants)
        return self.models

    @property
    def by_insertions(self) -> bool:
        """Whether variants differ in how often their canaries were planted."""
        planted = {variant.planted for variant in self.variants}
        return len(planted) > 1 and None not in planted

    @property
    def ranked(self) -> tuple[TrainedVariant, ...]:
        """The variants by mean exposure, the lowest first."""
        return tuple(sorted(self.variants, key=lambda variant: variant.exposure[0]))

    @property
    def followed(self) -> tuple[tuple[TrainedVariant, Through], ...]:
        """Variants that were measured while they were trained."""
        return tuple((own, own.through) for own in self.variants if own.through is not None)

    @property
    def searched(self) -> tuple[TrainedVariant, ...]:
        """Variants whose models were searched."""
        return tuple(variant for variant in self.variants if variant.extracted is not None)

    @property
    def estimated(self) -> tuple[TrainedVariant, ...]:
        """Variants of which both ranks and skew-normal estimates are known."""
        return tuple(variant for variant in self.variants if variant.estimates)

    @property
    def highest_controls(self) -> float | None:
        """The highest mean exposure of never-planted controls; None where there are none."""
        means = [variant.controls[0] for variant in self.variants if variant.controls is not None]
        return max(means, default=None)

    def grid(self) -> tuple[tuple[str, ...], tuple[GridRow, ...]]:
        """Heads of the columns, and the rows; both empty where variants make no table."""
        if self.table is None:
            return (), ()
        placed = {}
        for variant in self.variants:
            if variant.cell is not None:
                row, column = variant.cell[self.table.rows], variant.cell[self.table.columns]
                placed[_printed(row), _printed(column)] = variant
        heads = tuple(dict.fromkeys(column for _, column in placed))
        names = dict.fromkeys(row for row, _ in placed)
        return heads, tuple(
            GridRow(name, tuple(placed.get((name, head)) for head in heads)) for name in names
        )

    def significantly_best(self) -> tuple[str, bool, bool] | None:
        """The variant with the lowest means in both, if it is significantly below all others.

        Returns:
            Its label, whether its exposure is below all others', and whether its bits on held-out
            text are; None where neither is, or where several variants are on the front.
        """
        if len(self.pareto) != 1:
            return None
        best = next(variant for variant in self.variants if variant.label == self.pareto[0])
        others = [variant for variant in self.variants if variant is not best]
        exposes = all(best.mean_exposure.below(other.mean_exposure) for other in others)
        predicts = all(best.validation.below(other.validation) for other in others)
        return (best.label, exposes, predicts) if others and (exposes or predicts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFinding(Finding):
    """The finding about variants, and how far each is above the first."""

    differences: tuple[Difference, ...]

    def difference_of(self, label: str) -> Difference | None:
        """A variant's difference; None for the first."""
        return next((row for row in self.differences if row.label == label), None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExposureTrainingResult(QuestionResult):
    """What a run of the question ``exposure-training`` recorded."""

    ROWS: ClassVar[tuple[str, ...]] = ("training.variants",)

    verdict: TrainingFinding | Absent
    training: TrainingChoices | Absent
    task: LanguageTask | Absent
    scope: Tested | Absent

    @classmethod
    def upgrade(cls, parts: dict[str, Any], version: int) -> dict[str, Any]:
        """Return the parts; choices without a variant were not measured."""
        training = parts.get("training")
        if isinstance(training, Mapping) and training.get("variants") == []:
            return parts | {"training": {"absent": "it holds no variant"}}
        return parts


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
class MeasuredRemedy(MeasuredVariant):
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
    exposure_change: Difference | None
    cost: Difference | None
    status: Status
    reason: str

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

    ROWS: ClassVar[tuple[str, ...]] = ("defences.remedies",)

    verdict: DefencesVerdict | Absent
    defences: Defences | Absent
    task: LanguageTask | Absent
    scope: Tested | Absent


def _unequal(
    name: str, first: tuple[Any, ...], columns: Mapping[str, tuple[Any, ...]]
) -> list[str]:
    return [
        f".{key} has {len(column)} entries for {len(first)} {name}"
        for key, column in columns.items()
        if len(column) != len(first)
    ]


def _printed(value: Any) -> str:
    """A value of a recipe as a table shows it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_printed, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_printed(entry)}" for name, entry in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
