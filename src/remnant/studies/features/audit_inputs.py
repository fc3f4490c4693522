"""What an audit of a patch is given, models, images and settings, and the scores made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from remnant.errors import NotEnoughEvidence, require
from remnant.measures.features.feature_score import nulls_needed
from remnant.measures.statistics.checks import check_gate_confidence
from remnant.studies.features.audit_result import NEVER_PLANTED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from remnant.measures import MScore


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a patch is scored."""

    nulls: int
    control: str
    confidence: float
    significance: float
    label: int | None
    limit: float | None
    against: str
    seed: int
    batch: int

    @property
    def never_planted(self) -> str:
        """What the patch is ranked among, in words."""
        return NEVER_PLANTED[self.against]

    @property
    def tests(self) -> int:
        """How many p-values a claim rests on."""
        return 1 if self.label is None else 2

    def check(self) -> None:
        """Refuse what could never show anything.

        Raises:
            InvalidInput: There is a limit, and the confidence is too low for a gate.
            NotEnoughEvidence: No p-value could be at or under the significance.
        """
        faults: list[str] = []
        if self.limit is not None:
            check_gate_confidence("confidence", self.confidence, faults)
        require(faults)
        needed = nulls_needed(self.significance, tests=self.tests)
        if self.nulls < needed:
            raise NotEnoughEvidence(
                f"--nulls {self.nulls} cannot show anything at --significance "
                f"{self.significance:g}; it takes at least {needed}.",
                hint="Raise --nulls.",
            )


class Classifier(Protocol):
    """A function from images in [0, 1] to probabilities, ``(n, classes)``.

    Attributes:
        kind: What the model's answers are taken for: "logits" or "probabilities".
    """

    kind: str

    def __call__(self, images: Tensor) -> Tensor:
        """Return probabilities."""
        ...


class LabelledImages(Protocol):
    """Images ``(n, c, h, w)`` in [0, 1], with one label each where labels are known."""

    @property
    def images(self) -> Tensor:
        """The images."""
        ...

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """Their labels."""
        ...


TrainedCopies = Callable[["Tensor", "Tensor", Sequence[int]], Iterator[tuple[int, "Classifier"]]]
"""From images, labels and numbers of passes to each number with a copy that was trained so long."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditInputs:
    """The models and images of an audit.

    Attributes:
        model, twin: The twin is None where none was given.
        images: ``(n, c, h, w)``, in [0, 1].
        labelled: Images of the class that the patch may be planted under; None without a class.
        task: Images with labels of several classes, which show whether the model learnt its task;
            None where no labels are known.
        copies: Trains copies of the model; None where it cannot be trained.
        untrainable: Why not, and what to do.
    """

    model: Classifier
    twin: Classifier | None
    images: Tensor
    labelled: Tensor | None
    task: LabelledImages | None
    copies: TrainedCopies | None = None
    untrainable: str = "no copy of this model can be trained"


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What one model makes of the patch.

    Attributes:
        black_box: M on any images.
        white_box, gain: M_w and what is added to the label's probability; None where no label was
            given.
    """

    black_box: MScore
    white_box: MScore | None
    gain: MScore | None

    @property
    def tested(self) -> list[MScore]:
        """The scores whose p-values a claim rests on."""
        return [score for score in (self.black_box, self.white_box) if score is not None]
