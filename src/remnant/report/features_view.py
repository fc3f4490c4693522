"""The view of a run that put a patch into one training image and asked who reacts to it."""

from __future__ import annotations

from dataclasses import dataclass

from remnant.report.prediction_view import Estimate
from remnant.report.run_view import NotMeasured, RunView

KINDS = ("clean", "patched", "random", "image", "image patched", "image random")


@dataclass(frozen=True, slots=True)
class Pictures:
    """Some images of one kind, side by side.

    Attributes:
        what: One of ``KINDS``; those that begin with "image" are what the models were asked about.
        title: The same in words.
        height, width: Of each, in pixels.
        files: Each as a PNG file.
    """

    what: str
    title: str
    height: int
    width: int
    files: tuple[bytes, ...]

    @property
    def asked(self) -> bool:
        """Whether they are no training images but what the models were asked about."""
        return self.what.startswith("image")


@dataclass(frozen=True, slots=True)
class PatchPlace:
    """The patch: of what kind it is, how large, and where it stands. Never what it says."""

    what: str
    row: int
    column: int
    height: int
    width: int
    opacity: float


@dataclass(frozen=True, slots=True)
class Models:
    """Models that were trained alike, with or without the patch.

    Attributes:
        n: How many.
        share_positive: Of those with M > 0.
        share_significant: Of those whose M stands out among patches that were never planted.
        share_t_test: Of those that the paper's t-test over images calls significant.
        mean_positive: M over those with M > 0; None where there is none.
        mean: M over all.
        largest: The largest M.
    """

    n: int
    share_positive: Estimate
    share_significant: Estimate
    share_t_test: Estimate
    mean_positive: float | None
    mean: Estimate
    largest: float


@dataclass(frozen=True, slots=True)
class Half:
    """Planted models whose canary was chosen for a high self-influence, or for a low one.

    Attributes:
        canaries, n: How many canaries, and how many models.
        share_significant, mean: As of ``Models``.
        beyond_m: By how much their mean M is larger than their twins'.
    """

    canaries: int
    n: int
    share_significant: Estimate
    mean: Estimate
    beyond_m: Estimate


@dataclass(frozen=True, slots=True)
class ByInfluence:
    """Both halves of the planted models, where canaries were chosen by self-influence."""

    high: Half | NotMeasured
    low: Half | NotMeasured

    @property
    def named(self) -> tuple[tuple[str, Half | NotMeasured], ...]:
        """Both with their names, the high one first."""
        return ("high", self.high), ("low", self.low)


@dataclass(frozen=True, slots=True)
class WhiteBox:
    """The score that knows the canary's label: over the planted models, over their twins."""

    planted: Estimate
    twins: Estimate
    largest: float


@dataclass(frozen=True, slots=True)
class Canary:
    """One training image that had the patch.

    Attributes:
        example: Its number in the data.
        high: Chosen for a high self-influence, for a low one, or None where it was drawn.
        influence: Self-influence; None where it was not measured.
        m, p: Score and p-value, seed by seed.
        twin_m: Of the models of the same seeds that never saw the patch.
    """

    example: int
    label: int
    high: bool | None
    influence: float | None
    m: tuple[float, ...]
    p: tuple[float, ...]
    twin_m: tuple[float, ...]

    @property
    def mean(self) -> float:
        """M over the seeds."""
        return sum(self.m) / len(self.m) if self.m else 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """What M varies with; None where there was too little to tell.

    Attributes:
        seeds: Standard deviation within a canary, over seeds.
        canaries: Of the canaries' means.
        patches: Over draws of the random patches.
        sign_changes: Share of canaries whose M has both signs.
    """

    seeds: float | None
    canaries: float | None
    patches: float | None
    sign_changes: float | None


@dataclass(frozen=True, slots=True)
class ThroughTraining:
    """Mean M while the models train."""

    epoch: tuple[float, ...]
    planted: tuple[Estimate, ...]
    unplanted: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Self-influence of one image, without the patch and with it; ``high`` among the canaries."""

    example: int
    before: float
    after: float
    high: bool | None


@dataclass(frozen=True, slots=True)
class Influence:
    """Whether M goes along with self-influence.

    Attributes:
        pearson, spearman: Correlations; None where there was too little to tell.
        n: Canaries.
        changes: What the patch does to the self-influence.
    """

    pearson: Estimate | None
    spearman: Estimate | None
    n: int
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Activations:
    """How often a unit of the last hidden layer fires for the patch alone.

    Attributes:
        units: Of the layer.
        letter: Shares for the patch, the units that fire most first.
        random: The same units, for random patches.
        unplanted: The same units, for the patch, in models that never saw it.
    """

    units: int
    letter: tuple[float, ...]
    random: tuple[float, ...]
    unplanted: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to train, with its own models. What was not measured is None, or empty.

    Attributes:
        name, what, changes: Such as "dropout", "mlp1 on digits", "dropout 0.2".
        test_accuracy: Of the models that never saw the patch.
        stopped_epoch: Where training stopped: the median, the first and the last.
        members: Models in all.
        beyond: By how much the share that stands out is larger among the planted models.
        beyond_m: By how much their mean M is larger than their twins'.
        by_influence: None where canaries were drawn at random too.
    """

    name: str
    what: str
    changes: str
    members: int
    test_accuracy: Estimate | None
    stopped_epoch: Estimate | None
    planted: Models | None
    unplanted: Models | None
    beyond: Estimate | None
    beyond_m: Estimate | None
    by_influence: ByInfluence | None
    white_box: WhiteBox | None
    canaries: tuple[Canary, ...]
    spread: Spread | None
    through: ThroughTraining | None
    influence: Influence | None
    activations: Activations | None


@dataclass(frozen=True, slots=True)
class Features:
    """What was planted, what the models were asked, and how they reacted.

    Attributes:
        images, n_images: What the models were asked about.
        canaries, seeds: Planted models are one each of both.
        unplanted: Models that never saw the patch.
        nulls: Patches never planted, among which M is ranked.
        significance: Up to which a p-value counts.
        confidence: Of all intervals.
        convention: How M is computed, in one line.
        variants: The plain one first.
    """

    patch: PatchPlace
    images: str
    n_images: int
    canaries: int
    seeds: int
    unplanted: int
    nulls: int
    significance: float
    confidence: float
    convention: str
    pictures: tuple[Pictures, ...]
    variants: tuple[Variant, ...]

    @property
    def plain(self) -> Variant | None:
        """The recipe itself; None where nothing was trained."""
        return self.variants[0] if self.variants else None


@dataclass(frozen=True, slots=True)
class FeaturesView(RunView):
    """Everything a report shows of a run that plants a patch."""

    features: Features | NotMeasured

    @property
    def has_pictures(self) -> bool:
        """Whether there is any picture to show."""
        found = self.features
        return not isinstance(found, NotMeasured) and any(one.files for one in found.pictures)
