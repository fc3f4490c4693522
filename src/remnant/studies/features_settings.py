"""What is stamped on which images, where it is looked for, and what the verdict asks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from remnant.canaries import Patch, PatchControl
from remnant.data.other_images import OTHER_IMAGES
from remnant.errors import InvalidInput, PlanError, require
from remnant.measures.patch_answers import LEAST_IMAGES, LEAST_NULLS
from remnant.studies.settings import among, number, whole_number

CHOICES = ("random", "influence")


@dataclass(frozen=True, kw_only=True)
class PatchSettings:
    """The patch; what it says is in no ``repr``, no error and no record.

    Attributes:
        text: Capitals, figures and blanks; or
        file: a PNG file.
        size: Height of the letters, a multiple of five.
        row, column: The image's pixel under the patch's top-left one, from zero.
        opacity: 1 hides what is below.
    """

    text: str = field(default="A", repr=False)
    file: str | None = field(default=None, repr=False)
    size: int = 5
    row: int = 1
    column: int = 1
    opacity: float = 1.0

    def __post_init__(self) -> None:
        self.made()

    def made(self) -> Patch:
        """Return the patch.

        Raises:
            PlanError: It cannot be made.
        """
        place: dict[str, Any] = {"row": self.row, "column": self.column, "opacity": self.opacity}
        try:
            if self.file is not None:
                if not isinstance(self.file, str):
                    raise PlanError("patch.file is not a text.", hint="Mend the recipe.")
                return Patch.image(self.file, **place)
            if not isinstance(self.text, str):
                raise PlanError("patch.text is not a text.", hint="Mend the recipe.")
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
class FeatureCanarySettings:
    """Which images are stamped.

    Attributes:
        choice: ``random``, or ``influence``: half of them those of the highest self-influence on a
            model trained with nothing planted, half those of the lowest.
    """

    choice: str = "random"

    def __post_init__(self) -> None:
        faults = among("canaries.choice", self.choice, CHOICES)
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class OtherImageSettings:
    """The images that the score is measured on: another data set's, or blocks of noise.

    Attributes:
        name: A data set, or ``blocks``, which are always there.
        count: How many.
        seed: Draws them.
    """

    name: str = "blocks"
    count: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        faults = among("images.name", self.name, OTHER_IMAGES)
        faults += whole_number("images.count", self.count, LEAST_IMAGES)
        faults += whole_number("images.seed", self.seed, 0)
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """How M is measured, and the limit that the verdict is about.

    Attributes:
        nulls: Patches never planted, among which the letter is ranked.
        control: The law of the random patches: ``uniform``, ``binary`` or ``shuffled``.
        redraws: Further draws of the random patches, which show how much M owes to them.
        significance: A member counts as having memorised the patch at a p-value of this or less.
        confidence: Of all intervals.
        limit: The verdict asks whether the share of such members among the planted, beyond that
            among the unplanted, is under it.
        moments: Epochs at which M is followed through training.
    """

    nulls: int = 199
    control: str = "uniform"
    redraws: int = 3
    significance: float = 0.05
    confidence: float = 0.95
    limit: float = 0.05
    moments: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.moments, list):
            object.__setattr__(self, "moments", tuple(self.moments))
        faults = whole_number("score.nulls", self.nulls, LEAST_NULLS)
        faults += whole_number("score.redraws", self.redraws, 0)
        faults += among("score.control", self.control, get_args(PatchControl))
        for name in ("significance", "confidence", "limit"):
            value = getattr(self, name)
            if not number(value) or not 0 < value < 1:
                faults.append(f"score.{name}={value!r} is not between 0 and 1")
        if not isinstance(self.moments, tuple) or not all(
            number(one) and one >= 0 and math.isfinite(one) for one in self.moments
        ):
            faults.append(f"score.moments={self.moments!r} are not epochs from 0 on")
        if not faults and (needed := math.ceil(1.0 / self.significance - 1e-9) - 1) > self.nulls:
            faults.append(
                f"score.nulls={self.nulls} can show no p-value of {self.significance:g}, which "
                f"takes {needed}"
            )
        require(faults, error=PlanError, hint="Mend the recipe.")

    def steps(self, *, epoch: int, epochs: int) -> tuple[int, ...]:
        """Return after how many updates M is followed.

        Raises:
            PlanError: A moment lies beyond the end.

        Example:
            >>> ScoreSettings(moments=(0, 0.5, 2)).steps(epoch=10, epochs=3)
            (0, 5, 20)
        """
        if beyond := [one for one in self.moments if one > epochs]:
            raise PlanError(
                f"score.moments={beyond} are beyond the {epochs} epochs of the plan.",
                hint="Raise the plan's epochs or drop these moments.",
            )
        return tuple(sorted({round(one * epoch) for one in self.moments}))


@dataclass(frozen=True, kw_only=True)
class InfluenceSettings:
    """Whether the canaries' self-influence is measured with and without the patch.

    Attributes:
        on: Whether; a choice of canaries by influence measures theirs in any case.
        checkpoints: Over which it is summed.
        drop: Share of the whole drop of the training loss at the last of them.
    """

    on: bool = False
    checkpoints: int = 10
    drop: float = 0.95

    def __post_init__(self) -> None:
        faults = whole_number("influence.checkpoints", self.checkpoints, 1)
        if not isinstance(self.on, bool):
            faults.append(f"influence.on={self.on!r} is not true or false")
        if not number(self.drop) or not 0 < self.drop <= 1:
            faults.append(f"influence.drop={self.drop!r} is not above 0 and at most 1")
        require(faults, error=PlanError, hint="Mend the recipe.")


@dataclass(frozen=True, kw_only=True)
class AugmentSettings:
    """How training images are varied each time they are used.

    Attributes:
        contrast: By which share contrast is raised or lowered at most.
        crop: Pixels kept a side of a random cut-out; 0 for none.
        flip: Whether images are turned left to right half of the time.
    """

    contrast: float = 0.0
    crop: int = 0
    flip: bool = False

    def __post_init__(self) -> None:
        faults = whole_number("augment.crop", self.crop, 0)
        if not number(self.contrast) or not 0 <= self.contrast < 1:
            faults.append(f"augment.contrast={self.contrast!r} is not from 0 up to 1")
        if not isinstance(self.flip, bool):
            faults.append(f"augment.flip={self.flip!r} is not true or false")
        require(faults, error=PlanError, hint="Mend the recipe.")
