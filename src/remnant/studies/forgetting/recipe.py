"""The recipe of a forgetting study on images: INJECT or POISON, the attack, residual memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from remnant.errors import PlanError, require
from remnant.measures import SUCCESSES
from remnant.plans import InjectPlan, PoisonPlan
from remnant.plans.bounds import FromZero, Share, one_of
from remnant.plans.fingerprint import fingerprint
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.classifiers import ClassifierStudy
from remnant.studies.shared.compared_study import ComparedStudy, check_threshold
from remnant.studies.shared.section import Section
from remnant.studies.shared.settings import (
    limit_faults,
)
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.variants import Variant, label_faults

CALIBRATIONS = ("logit", "loss", "twins", "none")


@dataclass(frozen=True, kw_only=True)
class AttackSettings(Section, name="attack"):
    """How success is measured, and the limit that the verdict is about.

    Attributes:
        success: Measure of success, named before the run.
        fpr: False-positive rate at which precision and TPR are read.
        confidence: Confidence of the intervals.
        calibration: What each score is compared with: ``logit`` or ``loss`` at the checkpoint
            before planting, ``twins`` (log-odds of the other trials' unplanted twins at the same
            lag), or ``none``.
        limit: Success at the last lag must be below this.
        lags: Lags to measure at, in steps. Empty: a grid up to the last step.
    """

    success: Annotated[str, one_of(SUCCESSES)] = "precision"
    fpr: Share = 0.1
    confidence: Share = 0.95
    calibration: Annotated[str, one_of(CALIBRATIONS)] = "logit"
    limit: Share = 0.7
    lags: tuple[FromZero, ...] = ()

    def _contradictions(self) -> list[str]:
        return limit_faults(self)


@dataclass(frozen=True, kw_only=True)
class ForgettingStudy(ComparedStudy, ClassifierStudy):
    """A forgetting study on images: the plan and everything else that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants; those that are trained anew have no A/A twins of their own.
        hidden: How to search for memory that the attack no longer finds; None scans the checkpoints
            only. Variants are not searched.
    """

    QUESTION: ClassVar[str] = "forgetting"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "canaries",
        "model",
        "training",
        "attack",
        "hidden",
    )

    plan: InjectPlan | PoisonPlan
    attack: AttackSettings = field(default_factory=AttackSettings)
    label: str = "as planned"
    title: str = "The same study, varied"
    compare: tuple[Variant[ForgettingStudy], ...] = ()
    hidden: HiddenSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        faults = label_faults([self.label, *(variant.label for variant in self.compare)])
        faults += [
            f"compare {variant.label!r} has other data; a variant has its study's"
            for variant in self.compare
            if variant.study.data != self.data
        ]
        by_others = self.attack.calibration == "twins" or (
            isinstance(self.plan, PoisonPlan) and self.attack.calibration != "none"
        )
        if by_others and self.plan.trials < 2:
            faults.append("calibration by the other trials' twins (POISON's) needs trials >= 2")
        if self.hidden is not None and self.plan.trials < 2:
            faults.append("[hidden] compares trials before and after and needs trials >= 2")
        require(faults, error=PlanError, hint="Fix the recipe.")
        if self.attack.success in ("precision", "tpr"):
            planted = self.plan.canaries
            check_threshold("plan.canaries", planted, self.attack.fpr, more="Plant more canaries")
        self.lags()

    def parts(self) -> dict[str, ForgettingStudy]:
        """Return the study alone and its variants, by name."""
        made = {"primary": dataclasses.replace(self, compare=())}
        for i, variant in enumerate(self.compare, start=1):
            part = dataclasses.replace(variant.study, compare=(), hidden=None)
            if runs_of({"own": made["primary"], "its": part})["its"] == "its":
                part = dataclasses.replace(part, plan=dataclasses.replace(part.plan, aa=False))
            made[f"variant{i}"] = part
        return made


def runs_of(parts: Mapping[str, ForgettingStudy]) -> dict[str, str]:
    """Return the run that each part reads: its own, or an earlier one trained the same way."""
    known: dict[str, str] = {}
    return {name: known.setdefault(_training(part), name) for name, part in parts.items()}


def _training(study: ForgettingStudy) -> str:
    plain = study.to_dict()
    names = ("plan", "canaries", "model", "training")
    return fingerprint([*(plain[name] for name in names), plain["attack"]["lags"]])


RECIPE = Recipe(
    study=ForgettingStudy,
    example={"plan": {"canaries": 32, "step": 100, "watch_steps": 600, "trials": 8}},
)
