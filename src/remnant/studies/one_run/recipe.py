"""The recipe of a forgetting curve from one training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.measures import SUCCESSES
from remnant.plans import StaggeredPlan
from remnant.plans.bounds import Share, at_least, one_of
from remnant.studies.shared.settings import ClassifierStudy, Section, limit_faults
from remnant.studies.shared.study import Recipe, SectionedStudy
from remnant.studies.shared.variants import check_threshold


@dataclass(frozen=True, kw_only=True)
class OneRunSettings(Section, name="attack"):
    """How success is measured along one run, and the limit that the verdict is about.

    Attributes:
        success: Measure of success, named before the run.
        fpr: False-positive rate at which precision and TPR are read.
        confidence: Confidence of the intervals.
        calibrate: Whether to subtract each canary's score before its window.
        limit: Success at the end of the canaries planted first must be below this.
        checkpoints: Evenly spaced checkpoints, besides those before and after each window.
    """

    success: Annotated[str, one_of(SUCCESSES)] = "tpr"
    fpr: Share = 0.1
    confidence: Share = 0.95
    calibrate: bool = True
    limit: Share = 0.3
    checkpoints: Annotated[int, at_least(2)] = 20

    def _contradictions(self) -> list[str]:
        return limit_faults(self)


class StaggeredStudy(SectionedStudy):
    """A study of one run whose canaries are planted along the way.

    Attributes:
        plan: Which canaries are planted when, and which are never planted.
        attack: How success is measured.
    """

    plan: StaggeredPlan
    attack: OneRunSettings

    def check_controls(self) -> None:
        """Refuse too few canaries that are never planted.

        Raises:
            NotEnoughEvidence: They cannot place a threshold at ``attack.fpr``.
        """
        if self.attack.success in ("precision", "tpr"):
            more = "Leave more canaries out of training"
            check_threshold("plan.never", self.plan.never, self.attack.fpr, more=more)

    def probe_steps(self) -> tuple[int, ...]:
        """Updates done at each checkpoint."""
        return self.plan.checkpoints(self.attack.checkpoints)


@dataclass(frozen=True, kw_only=True)
class OneRunStudy(StaggeredStudy, ClassifierStudy):
    """A one-run study: the plan and everything else that changes its numbers."""

    QUESTION: ClassVar[str] = "one-run"
    SECTIONS: ClassVar[tuple[str, ...]] = ("data", "canaries", "model", "training", "attack")

    plan: StaggeredPlan
    attack: OneRunSettings = field(default_factory=OneRunSettings)

    def __post_init__(self) -> None:
        self.check_controls()


RECIPE = Recipe(
    study=OneRunStudy,
    example={"plan": {"canaries": 300, "never": 60, "starts": (100, 200, 300), "window": 50}},
)
