"""The view of a run that trained one canary format under several variants.

No secret is in it: a canary is its exposure and the variant it was planted in.
"""

from __future__ import annotations

from dataclasses import dataclass

from remnant.report.run_view import NotMeasured, RunView


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with both ends of its interval; None where one trial shows none.

    Attributes:
        at_least: The number is what the mean is at least; for a difference, that one side of it is.
    """

    value: float
    low: float | None
    high: float | None
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Through:
    """What a variant's models were seen to do while they were trained.

    Attributes:
        step, epoch: When they were looked at.
        exposure, validation, training: Bits at each time.
        uses: Updates done when the first trial's first canary had been used.
        ceiling: The most exposure that this look can show.
    """

    step: tuple[int, ...]
    epoch: tuple[float, ...]
    exposure: tuple[Interval, ...]
    validation: tuple[Interval, ...]
    training: tuple[Interval, ...]
    uses: tuple[int, ...]
    ceiling: float

    @property
    def epoch_steps(self) -> float | None:
        """Steps of one pass over the text, where a look after the start tells."""
        last = self.epoch[-1]
        return self.step[-1] / last if last > 0 else None


@dataclass(frozen=True, slots=True)
class TrainedVariant:
    """One way to train, and what its models gave away.

    Attributes:
        cell: Its place in a table, by the fields' names; None where it has none.
        repeats: How often each canary of a model was planted.
        models, steps, parameters: How many, trained how long, how large.
        exposure: Mean over models; ``each`` has every canary's, model by model.
        exact: Whether each exposure is a rank in the whole space, in the order of ``each``.
        saturated: Canaries whose exposure is at least what is told.
        ranked_first: Share of canaries that nothing but other canaries is likelier than.
        controls, twin: Exposure of secrets that the models did not see.
        validation, training: Bits a token costs, of the text kept back and of that trained on.
        extracted: Share of canaries that a search read out.
        read_out: Whether each was, in the order of ``each``.
        nodes, nodes_each: Of the search: their median, and every model's.
        searches_ended: Models whose search a budget ended before it was certain.
        skew_normal: Exposure as a skew-normal law has it, in the order of ``each``.
    """

    label: str
    cell: dict[str, str] | None
    repeats: tuple[int, ...]
    models: int
    steps: int
    parameters: int
    exposure: Interval
    each: tuple[float, ...]
    exact: tuple[bool, ...]
    saturated: int
    ranked_first: Interval | None
    controls: Interval | None
    twin: Interval | None
    validation: Interval
    training: Interval
    extracted: Interval | None
    read_out: tuple[bool, ...]
    nodes: float | None
    nodes_each: tuple[float, ...]
    searches_ended: int
    skew_normal: tuple[float, ...]
    through: Through | None

    @property
    def planted(self) -> int | None:
        """How often its canaries were planted, where that is one number."""
        return self.repeats[0] if len(set(self.repeats)) == 1 else None

    @property
    def estimates(self) -> tuple[tuple[float, float], ...]:
        """Exact and estimated exposure of each canary of which both are known."""
        if not self.skew_normal:
            return ()
        rows = zip(self.each, self.skew_normal, self.exact, strict=True)
        return tuple((bits, guess) for bits, guess, exact in rows if exact)


@dataclass(frozen=True, slots=True)
class Difference:
    """How far a variant's exposure lies above the first's, trial by trial."""

    label: str
    value: Interval
    p_value: float | None
    adjusted_p_value: float | None
    differs: bool


@dataclass(frozen=True, slots=True)
class Effect:
    """One value of one field of a grid: the mean over all cells that have it.

    Attributes:
        cells: How many these are.
        along: Fields that move with it.
        difference: How far it lies above the field's first value, trial by trial; None for that.
    """

    field: str
    value: str
    cells: int
    along: tuple[str, ...]
    exposure: Interval
    validation: Interval
    difference: Interval | None
    adjusted_p_value: float | None


@dataclass(frozen=True, slots=True)
class Band:
    """Canaries whose exposure lies between two numbers of bits.

    Attributes:
        low, high: The ends; the same for canaries that are ranked first.
        searched, read_out: Canaries in models that a search was made in, and those it came upon.
        nodes: Median of the searches.
        estimated: Canaries of which both the rank and a skew-normal estimate are known.
        error: Estimate less exact exposure: the mean, the least and the most.
    """

    low: float
    high: float
    canaries: int
    searched: int
    read_out: int
    nodes: float | None
    estimated: int
    error: Interval | None


@dataclass(frozen=True, slots=True)
class Training:
    """All variants, the study itself first.

    Attributes:
        space_bits: The most that a canary can have.
        null_mean: Mean exposure, in bits, of canaries that nobody planted.
        models: How many were trained; those of variants that only ask otherwise count once.
        rows, columns: The fields of a table, where the variants make one.
        front: Labels of the variants that no other beats in both validation bits and exposure.
        effects: What each field of a grid does on its own; none where there is no grid of two.
        bands: Canaries of all variants by exposure.
    """

    title: str
    space_bits: float
    null_mean: float
    trials: int
    models: int
    confidence: float
    token: str
    variants: tuple[TrainedVariant, ...]
    rows: str | None
    columns: str | None
    front: tuple[str, ...]
    effects: tuple[Effect, ...]
    bands: tuple[Band, ...]

    @property
    def by_insertions(self) -> bool:
        """Whether variants differ in how often their canaries were planted."""
        return len({one.planted for one in self.variants}) > 1 and all(
            one.planted is not None for one in self.variants
        )

    @property
    def followed(self) -> tuple[TrainedVariant, ...]:
        """Variants that were looked at while they were trained."""
        return tuple(one for one in self.variants if one.through is not None)

    @property
    def searched(self) -> tuple[TrainedVariant, ...]:
        """Variants that a search was made in."""
        return tuple(one for one in self.variants if one.extracted is not None)

    @property
    def estimated(self) -> tuple[TrainedVariant, ...]:
        """Variants of which both ranks and skew-normal estimates are known."""
        return tuple(one for one in self.variants if one.estimates)

    def table(
        self,
    ) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[TrainedVariant | None, ...]], ...]]:
        """Heads of the columns, and each row's name with its variants; empty without a table."""
        if self.rows is None or self.columns is None:
            return (), ()
        placed = [
            (one.cell[self.rows], one.cell[self.columns], one)
            for one in self.variants
            if one.cell is not None
        ]
        heads = tuple(dict.fromkeys(column for _, column, _ in placed))
        names = tuple(dict.fromkeys(row for row, _, _ in placed))
        found = {(row, column): one for row, column, one in placed}
        return heads, tuple(
            (name, tuple(found.get((name, head)) for head in heads)) for name in names
        )


@dataclass(frozen=True, slots=True)
class TrainingView(RunView):
    """Everything a report shows of a run about training choices."""

    training: Training | NotMeasured
    differences: tuple[Difference, ...]
