"""The result of a study that stamps a patch on single training images: which models react to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal

from remnant.errors import InvalidInput
from remnant.records.typed import Absent, optional
from remnant.studies.question_result import QuestionResult
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import ClassifierTask, Finding, Gate, Tested

if TYPE_CHECKING:
    from remnant.canaries import Patch

PictureKind = Literal["clean", "patched", "random", "image", "image patched", "image random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPlace:
    """The patch: its kind, size and position. Never what is written on it."""

    what: str
    row: int
    column: int
    height: int
    width: int
    opacity: float

    def __post_init__(self) -> None:
        require_shares(opacity=(self.opacity,))

    @classmethod
    def of(cls, patch: Patch, what: str) -> PatchPlace:
        """The place of a patch; ``what`` is its kind in words."""
        _, height, width = patch.pixels.shape
        place = {"row": patch.row, "column": patch.column, "height": height, "width": width}
        return cls(what=what, opacity=float(patch.opacity), **place)


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureRow:
    """Images of one kind that the record holds as an array.

    Attributes:
        what: The kind; those that begin with "image" were used for testing, the others are
            training images.
        title: The kind in words.
        array: Name of the array, shape ``(images, channels, height, width)``.
    """

    what: PictureKind
    title: str
    array: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeImages:
    """The images that models were tested on: the name of the data, and how many."""

    name: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Models that were trained the same way, with the patch or without it.

    Attributes:
        n: How many.
        share_positive: Share with M > 0.
        share_significant: Share that reacts: M is significant among patches never planted.
        share_t_test: Share that the paper's t-test over images calls significant.
        mean_positive: Mean M over models with M > 0; None where there is none.
        mean: Mean M over all of them.
        largest: The largest M.
    """

    n: int
    share_positive: Estimate
    share_significant: Estimate
    share_t_test: Estimate
    mean_positive: float | None
    mean: Estimate
    largest: float

    def __post_init__(self) -> None:
        require_shares(
            share_positive=self.share_positive,
            share_significant=self.share_significant,
            share_t_test=self.share_t_test,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """Planted models whose canary was chosen for a high self-influence, or for a low one.

    Attributes:
        canaries, n: How many canaries, and how many models.
        share_significant, mean: As in ``Models``.
        beyond_m: Mean M less that of the twins.
    """

    canaries: int
    n: int
    share_significant: Estimate
    mean: Estimate
    beyond_m: Estimate

    def __post_init__(self) -> None:
        require_shares(share_significant=self.share_significant)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoHalf:
    """A half without canaries, and why."""

    absent: str

    @property
    def reason(self) -> str:
        """Why, without a full stop."""
        return self.absent.removesuffix(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class ByInfluence:
    """Both halves of the planted models, where canaries were chosen by self-influence."""

    high: NoHalf | Half
    low: NoHalf | Half

    @property
    def named(self) -> tuple[tuple[str, NoHalf | Half], ...]:
        """Both with their names, the high one first."""
        return ("high", self.high), ("low", self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhiteBox:
    """The score that uses the canary's label: of the planted models and of their twins."""

    planted: Estimate
    twins: Estimate
    largest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One training image that had the patch.

    Attributes:
        example: Its number in the data.
        high: Whether it was chosen for a high self-influence; None where it was drawn at random.
        influence: Its self-influence; None where that was not measured.
        m, p: Score and p-value of the planted models, one a seed.
        twin_m: Score of the models of the same seeds that never saw the patch.
    """

    example: int
    label: int
    high: bool | None
    influence: float | None
    m: tuple[float, ...]
    p: tuple[float, ...]
    twin_m: tuple[float, ...]

    def __post_init__(self) -> None:
        require_length("p", self.p, "m", self.m)
        require_shares(p=self.p)
        require_magnitudes(influence=self.influence)

    @property
    def mean(self) -> float:
        """M over the seeds."""
        return sum(self.m) / len(self.m)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Standard deviations of M.

    Attributes:
        seeds: Within a canary, over seeds.
        canaries: Of the canaries' means; None for one canary.
        patches: Over draws of the random patches; None where they were drawn once.
        sign_changes: Share of canaries whose M has both signs.
    """

    seeds: float
    canaries: float | None
    patches: float | None
    sign_changes: float

    def __post_init__(self) -> None:
        require_magnitudes(seeds=self.seeds, canaries=self.canaries, patches=self.patches)
        require_shares(sign_changes=(self.sign_changes,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """Mean M during training: one entry a moment, in epochs."""

    epoch: tuple[float, ...]
    planted: tuple[Estimate, ...]
    unplanted: tuple[Estimate, ...]

    def __post_init__(self) -> None:
        require_length("planted", self.planted, "epoch", self.epoch)
        require_length("unplanted", self.unplanted, "epoch", self.epoch)
        if any(later <= earlier for earlier, later in pairwise(self.epoch)):
            raise InvalidInput(".epoch does not rise")

    @property
    def apart(self) -> tuple[float, ...]:
        """Epochs at which the whole interval of planted models is above that of the others."""
        moments = zip(self.epoch, self.planted, self.unplanted, strict=True)
        return tuple(epoch for epoch, planted, other in moments if planted.low > other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceChange:
    """Self-influence of one canary without the patch and with it.

    Attributes:
        high: Whether the one without the patch is high among the canaries.
    """

    example: int
    before: float
    after: float
    high: bool

    def __post_init__(self) -> None:
        require_magnitudes(before=self.before, after=self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """How M and self-influence go together.

    Attributes:
        pearson, spearman: Correlations; None where there are too few canaries.
        n: Canaries.
        changes: What the patch does to the self-influence, one entry a canary.
    """

    pearson: Estimate | None
    spearman: Estimate | None
    n: int
    changes: tuple[InfluenceChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """How often a unit of the last hidden layer fires with the patch and not without it.

    Attributes:
        units: Of the layer.
        letter: Shares for the patch, the units that fire most first.
        random: Of the same units, for random patches.
        unplanted: Of the same units, for the patch, in models that never saw it.
    """

    units: int
    letter: tuple[float, ...]
    random: tuple[float, ...]
    unplanted: tuple[float, ...]

    def __post_init__(self) -> None:
        require_length("random", self.random, "letter", self.letter)
        require_length("unplanted", self.unplanted, "letter", self.letter)
        require_shares(letter=self.letter, random=self.random, unplanted=self.unplanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    """One way to train, with its own models.

    Attributes:
        name, what, changes: Such as "dropout", "mlp1 on digits", "dropout 0.2".
        test_accuracy: Of the models that never saw the patch.
        stopped_epoch: When training stopped: the median, the first and the last model.
        members: Models in all.
        blind: Models that answer the same whatever the patch; None in older records.
        beyond: Share of planted models that react, less that of the others.
        beyond_m: Mean M of planted models less that of their twins.
        by_influence: None where canaries were drawn at random, and in older records.
        through, influence: None where the recipe did not ask for them.
        activations: None where a network of the user's own names no hidden layer.
    """

    name: str
    what: str
    changes: str
    test_accuracy: Estimate
    stopped_epoch: Estimate
    members: int
    blind: int | None = optional()
    planted: Models
    unplanted: Models
    beyond: Estimate
    beyond_m: Estimate
    by_influence: ByInfluence | None
    white_box: WhiteBox
    by_canary: tuple[Canary, ...]
    spread: Spread
    through: Through | None
    influence: Influence | None
    activations: Activations | None

    def __post_init__(self) -> None:
        require_shares(test_accuracy=self.test_accuracy)
        if not self.by_canary:
            raise InvalidInput(".by_canary is empty")

    @property
    def canaries_by_mean(self) -> tuple[Canary, ...]:
        """Canaries by their mean M, the highest first."""
        return tuple(sorted(self.by_canary, key=lambda canary: -canary.mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What was planted, what models were tested on, and how they reacted.

    Attributes:
        canaries, seeds: There is one planted model for each pair of both.
        unplanted: Models that never saw the patch.
        nulls: Patches never planted, among which M is ranked.
        significance: A p-value up to this counts.
        confidence: Of all intervals.
        convention: How M is computed, in one line.
        variants: The recipe itself, then its variants.
    """

    patch: PatchPlace
    images: ProbeImages
    canaries: int
    seeds: int
    unplanted: int
    nulls: int
    significance: float
    confidence: float
    convention: str
    pictures: tuple[PictureRow, ...]
    variants: tuple[VariantResult, ...]

    def __post_init__(self) -> None:
        require_shares(significance=(self.significance,), confidence=(self.confidence,))
        if not self.variants:
            raise InvalidInput(".variants is empty")

    @property
    def plain(self) -> VariantResult:
        """The recipe itself."""
        return self.variants[0]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FeaturesResult(QuestionResult):
    """What a study of unique features stores."""

    ROWS: ClassVar[tuple[str, ...]] = ("features.variants",)

    verdict: Finding | Gate | Absent
    task: ClassifierTask | Absent
    scope: Tested | Absent
    features: Features | Absent


def require_shares(**columns: Iterable[float]) -> None:
    """Refuse a column with a number outside 0 to 1."""
    for name, values in columns.items():
        if any(not 0 <= value <= 1 for value in values):
            raise InvalidInput(f".{name} is not between 0 and 1")


def require_magnitudes(**values: float | None) -> None:
    """Refuse a negative number."""
    for name, value in values.items():
        if value is not None and value < 0:
            raise InvalidInput(f".{name} is negative")


def require_length(
    name: str, values: Sequence[object], other: str, expected: Sequence[object]
) -> None:
    """Refuse a column that is empty or not as long as another one."""
    if not expected:
        raise InvalidInput(f".{other} is empty")
    if len(values) != len(expected):
        raise InvalidInput(f".{name} has {len(values)} entries for {len(expected)} {other}")
