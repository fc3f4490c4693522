"""The recipe of a study of unique features: the patch, the images, the score and its limit."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, get_args

from remnant.canaries import Patch, PatchControl
from remnant.data.image_shapes import OTHER_IMAGES
from remnant.errors import InvalidInput, PlanError, require
from remnant.measures.features.feature_score import nulls_needed
from remnant.measures.features.patch_answers import LEAST_IMAGES, LEAST_NULLS
from remnant.plans import FeaturePlan
from remnant.plans.bounds import (
    Count,
    FromZero,
    NotNegative,
    Share,
    ShareOrAll,
    at_least,
    number,
    one_of,
)
from remnant.studies.shared.settings import (
    Classifiers,
    Section,
    TrainingSettings,
)
from remnant.studies.shared.study import Recipe, section_fields
from remnant.studies.shared.variants import Variant, difference, label_faults

CHOICES = ("random", "influence")
_CONTRAST = number("from 0 up to 1", minimum=0, exclusiveMaximum=1)
_PARTS = ("data", "canaries", "images", "score", "influence", "augment", "model", "training")


@dataclass(frozen=True, kw_only=True)
class PatchSettings(Section, name="patch"):
    """The patch that is stamped; its text is in no ``repr``, no error and no record.

    Attributes:
        text: Capitals, digits and spaces. Give either this or ``file``.
        file: PNG file with the patch.
        size: Height of the letters in pixels, a multiple of five.
        row: Image row of the top-left pixel of the patch, from zero.
        column: Image column of the top-left pixel of the patch, from zero.
        opacity: Opacity; 1 hides what is below.
    """

    text: str = field(default="A", repr=False)
    file: str | None = field(default=None, repr=False)
    size: int = 5
    row: int = 1
    column: int = 1
    opacity: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.made()

    def made(self) -> Patch:
        """Return the patch.

        Raises:
            PlanError: It cannot be made.
        """
        place: dict[str, Any] = {"row": self.row, "column": self.column, "opacity": self.opacity}
        try:
            if self.file is not None:
                return Patch.image(self.file, **place)
            return Patch.text(self.text, size=self.size, **place)
        except InvalidInput as fault:
            raise PlanError(f"[patch]: {fault.message}", hint=fault.hint) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the patch as plain data: a digest of its pixels in place of what it says."""
        patch = self.made()
        digest = hashlib.sha256(repr(patch.pixels.shape).encode() + patch.pixels.tobytes())
        return {
            "pixels": digest.hexdigest()[:16],
            "height": patch.pixels.shape[1],
            "width": patch.pixels.shape[2],
            "grain": patch.grain,
            "row": self.row,
            "column": self.column,
            "opacity": float(self.opacity),
        }

    def check(self, shape: Sequence[int], *, crop: int = 0) -> None:
        """Refuse a patch that does not fit images of this shape, or that a crop may cut.

        Raises:
            PlanError: It does not.
        """
        patch, (channels, *sides) = self.made(), shape
        faults = []
        if patch.pixels.shape[0] not in (1, channels):
            faults.append(f"the patch has {patch.pixels.shape[0]} channels, images {channels}")
        for name, first, length, side in (
            ("rows", self.row, patch.pixels.shape[1], sides[0]),
            ("columns", self.column, patch.pixels.shape[2], sides[1]),
        ):
            last = first + length
            if last > side:
                faults.append(f"the patch takes {name} {first} to {last - 1} of {side}")
            elif crop > side:
                faults.append(f"augment.crop={crop} is more than the {side} {name} there are")
            elif crop and (first < side - crop or last > crop):
                faults.append(
                    f"augment.crop={crop} of {side} {name} may cut the patch in {name} {first} to "
                    f"{last - 1}"
                )
        hint = "Move the patch, make it smaller, or crop less."
        require(faults, error=PlanError, hint=hint)

    @property
    def what(self) -> str:
        """What it is, without what it says."""
        height, width = self.made().pixels.shape[1:]
        kind = "picture" if self.file is not None else "letter" if len(self.text) == 1 else "text"
        return f"a {kind} of {height} x {width} pixels"


@dataclass(frozen=True, kw_only=True)
class FeatureCanarySettings(Section, name="canaries"):
    """Which images are stamped.

    Attributes:
        choice: ``random``, or ``influence``: half of the images with the highest, half with the
            lowest self-influence on a model with nothing planted.
    """

    choice: Annotated[str, one_of(CHOICES)] = "random"


@dataclass(frozen=True, kw_only=True)
class OtherImageSettings(Section, name="images"):
    """The images on which the score is measured.

    Attributes:
        name: Another data set, or ``blocks`` of noise, which need no data.
        count: Images to use.
        seed: Determines which images are drawn.
    """

    name: Annotated[str, one_of(OTHER_IMAGES)] = "blocks"
    count: Annotated[int, at_least(LEAST_IMAGES)] = 1000
    seed: FromZero = 0


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(Section, name="score"):
    """How M is measured, and the limit that the verdict is about.

    Attributes:
        nulls: Patches never planted, among which the planted one is ranked.
        control: Distribution of the random patches: ``uniform``, ``binary`` or ``shuffled``.
        redraws: Further draws of the random patches, which show how much M depends on them.
        significance: A model has memorised the patch at a p-value of this or less.
        confidence: Confidence of the intervals.
        limit: The share of such models among the planted, beyond that among the unplanted, must be
            below this.
        moments: Epochs at which M is measured during training. Empty: never.
    """

    nulls: Annotated[int, at_least(LEAST_NULLS)] = 199
    control: Annotated[str, one_of(get_args(PatchControl))] = "uniform"
    redraws: FromZero = 3
    significance: Share = 0.05
    confidence: Share = 0.95
    limit: Share = 0.05
    moments: tuple[NotNegative, ...] = ()

    def _contradictions(self) -> list[str]:
        needed = nulls_needed(self.significance)
        if needed <= self.nulls:
            return []
        return [
            f"score.nulls={self.nulls} can show no p-value of {self.significance:g}, which takes "
            f"{needed}"
        ]

    def steps(self, *, epoch: int, epochs: int) -> tuple[int, ...]:
        """Return after how many updates M is followed.

        Raises:
            PlanError: A moment lies beyond the end.

        Example:
            >>> ScoreSettings(moments=(0, 0.5, 2)).steps(epoch=10, epochs=3)
            (0, 5, 20)
        """
        if beyond := [moment for moment in self.moments if moment > epochs]:
            raise PlanError(
                f"score.moments={beyond} are beyond the {epochs} epochs of the plan.",
                hint="Raise the plan's epochs or drop these moments.",
            )
        return tuple(sorted({round(moment * epoch) for moment in self.moments}))


@dataclass(frozen=True, kw_only=True)
class InfluenceSettings(Section, name="influence"):
    """Whether the canaries' self-influence is measured with and without the patch.

    Attributes:
        on: Whether to measure it; choosing canaries by influence measures it in any case.
        checkpoints: Checkpoints over which it is summed.
        drop: Share of the total drop of the training loss at the last of them.
    """

    on: bool = False
    checkpoints: Count = 10
    drop: ShareOrAll = 0.95


@dataclass(frozen=True, kw_only=True)
class AugmentSettings(Section, name="augment"):
    """How training images are varied each time they are used.

    Attributes:
        contrast: Largest relative change of the contrast.
        crop: Side of a random crop in pixels; 0 for none.
        flip: Whether half of the images are flipped left to right.
    """

    contrast: Annotated[float, _CONTRAST] = 0.0
    crop: FromZero = 0
    flip: bool = False


@dataclass(frozen=True, kw_only=True)
class FeatureStudy(Classifiers):
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        variants: Other ways to train the same: they differ in model, training or augmentation.
    """

    QUESTION: ClassVar[str] = "unique-features"
    SECTIONS: ClassVar[tuple[str, ...]] = ("data", "patch", *_PARTS[1:])

    plan: FeaturePlan = field(default_factory=FeaturePlan)
    patch: PatchSettings = field(default_factory=PatchSettings)
    canaries: FeatureCanarySettings = field(default_factory=FeatureCanarySettings)
    images: OtherImageSettings = field(default_factory=OtherImageSettings)
    score: ScoreSettings = field(default_factory=ScoreSettings)
    influence: InfluenceSettings = field(default_factory=InfluenceSettings)
    augment: AugmentSettings = field(default_factory=AugmentSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 3e-4})
    )
    variants: tuple[Variant[FeatureStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "variants", tuple(self.variants))
        faults = label_faults(["plain", *(variant.label for variant in self.variants)])
        for variant in self.variants:
            other = [
                name
                for name in ("plan", "data", "patch", "canaries", "images", "score", "influence")
                if getattr(variant.study, name) != getattr(self, name)
            ]
            faults += [f"variant {variant.label!r} changes [{name}]" for name in other]
        require(faults, error=PlanError, hint="A variant changes model, training or augment.")
        self.score.steps(epoch=1, epochs=self.plan.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part; not what the patch says."""
        made: dict[str, Any] = {"question": self.QUESTION, "plan": self.plan.to_dict()}
        made["patch"] = self.patch.to_dict()
        for name in _PARTS:
            made[name] = section_fields(getattr(self, name))
        if self.variants:
            alone = dict(made)
            made["variants"] = {
                variant.label: difference(alone, variant.study.to_dict())
                for variant in self.variants
            }
        return made

    def ways(self) -> dict[str, tuple[str, FeatureStudy]]:
        """Return the study alone and its variants: by the name of their arrays, with labels."""
        made = {"plain": ("plain", dataclasses.replace(self, variants=()))}
        for i, variant in enumerate(self.variants, start=1):
            made[f"variant{i}"] = (variant.label, variant.study)
        return made


RECIPE = Recipe(study=FeatureStudy)
