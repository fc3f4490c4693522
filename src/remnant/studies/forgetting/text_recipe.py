"""The recipe of a forgetting study on text: planted sequences, and the attack."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from remnant.errors import PlanError, require
from remnant.measures import null_exposure
from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan
from remnant.plans.bounds import Count, FromZero, Share, one_of
from remnant.plans.plan import fingerprint
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.settings import Section, TrainingSettings
from remnant.studies.shared.study import Recipe
from remnant.studies.shared.text_settings import (
    Bits,
    LanguageModelSettings,
    TextCanarySettings,
    TextFileSettings,
    TextSettings,
    named_twice,
)
from remnant.studies.shared.variants import ComparedStudy, Variant, check_threshold, label_faults

ATTACKERS = ("twins", "references", "none")
CALIBRATIONS = (*ATTACKERS, "influence")


@dataclass(frozen=True, kw_only=True)
class TextAttackSettings(Section, name="attack"):
    """How exposure is measured, and the limit that the verdict is about.

    Attributes:
        calibration: What is subtracted from the loss of a sequence: ``twins``, its mean loss under
            the unplanted twins of the other trials; ``references``, its mean loss under reference
            models, each trained on a random part of the clean text; ``none``; or ``influence``, its
            loss under the trial's own unplanted twin, which no attacker has. ``twins`` needs two
            trials or more. ``twin`` of version 0.2 is read as ``influence``.
        reference_models: Reference models, for ``references``.
        fraction: Share of the clean text that each reference model sees.
        fpr: False-positive rate at which precision and TPR are read.
        confidence: Confidence of the intervals.
        limit: Bits that the mean exposure at the last lag must stay below.
        lags: Lags to measure at, in steps. Empty: a grid up to the last step.
    """

    calibration: Annotated[str, one_of(CALIBRATIONS)] = "twins"
    reference_models: Count = 11
    fraction: Share = 0.8
    fpr: Share = 0.1
    confidence: Share = 0.95
    limit: Bits = 3.0
    lags: tuple[FromZero, ...] = ()

    def __post_init__(self) -> None:
        if self.calibration == "twin":
            object.__setattr__(self, "calibration", "influence")
        super().__post_init__()


class SequenceStudy(ComparedStudy):
    """A study of twins whose canaries are ranked among references by what models pay for them.

    Attributes:
        canaries: Which sequences are planted, and among how many ``references`` they are ranked.
        model, training: The models, and how they are trained.
        attack: How exposure is measured.
        hidden: How to search for memory that the attack no longer finds; None scans the checkpoints
            only.
    """

    CLEAN: ClassVar[str] = "text"
    THINGS: ClassVar[str] = "sequences"

    canaries: Any
    model: Any
    training: TrainingSettings
    attack: TextAttackSettings
    hidden: HiddenSettings | None = None

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers.

        Version 0.2 stored no costs of other trials' twins, so its runs must not be gone on with:
        the digest is never that of the same recipe in 0.2.
        """
        return fingerprint([super().fingerprint, "twins_bits"])

    @property
    def other_twins(self) -> int:
        """How many unplanted models of other trials each trial's costs can be compared with."""
        return (self.plan.trials - 1) * (len(self.plan.arms) - 1)

    def check(self, references: int, faults: list[str]) -> None:
        """Refuse a study that cannot be measured.

        Args:
            references: Of each trial.
            faults: That the study has found itself.

        Raises:
            PlanError: All faults in one sentence.
            NotEnoughEvidence: There are too few references for a threshold.
        """
        limit = self.attack.limit
        faults = label_faults([self.label, *(variant.label for variant in self.compare)]) + faults
        if self.plan.controls:
            faults.append(
                f"plan.controls={self.plan.controls}: here canaries.references are the controls"
            )
        if self.attack.calibration == "twins" and self.plan.trials < 2:
            faults.append(
                "attack.calibration='twins' is by the twins of other trials and needs trials >= 2; "
                "with one trial use 'none' or 'references'"
            )
        if self.hidden is not None and self.plan.trials < 2:
            faults.append("[hidden] compares trials before and after and needs trials >= 2")
        chance, ceiling = null_exposure(references), float(np.log2(references + 1))
        if not chance < limit < ceiling:
            faults.append(
                f"attack.limit={limit:g} is not between {chance:.2f} bits, which chance gives, and "
                f"{ceiling:.2f}, the most that {references} references can show"
            )
        require(faults, error=PlanError, hint="Fix the recipe.")
        check_threshold(
            "canaries.references", references, self.attack.fpr, more="Draw more references"
        )
        self.lags()

    def parts(self) -> dict[str, Any]:
        """Return the study alone and its variants, by name.

        Variants have the study's own ``hidden``, so that the same neighbours are set aside. They
        are not searched. They have A/A twins only where these are reference models.
        """
        own: Any = self  # a dataclass, as every study is
        made = {"primary": dataclasses.replace(own, compare=())}
        for i, variant in enumerate(self.compare, start=1):
            aa = variant.study.plan.aa and variant.study.attack.calibration == "twins"
            plan = dataclasses.replace(variant.study.plan, aa=aa)
            made[f"variant{i}"] = dataclasses.replace(
                variant.study, plan=plan, compare=(), hidden=self.hidden
            )
        return made

    @property
    def neighbours(self) -> int:
        """Sequences of each trial that are drawn like its references, to be relearnt from."""
        return 0 if self.hidden is None or not self.hidden.relearn_steps else self.hidden.neighbours

    def reference_plan(self) -> ShadowPlan | None:
        """Return the plan of the reference models, where the attack is calibrated by them.

        They are probed after as many clean updates as the members have had.
        """
        if self.attack.calibration != "references":
            return None
        return ShadowPlan(
            models=self.attack.reference_models,
            steps=max(1, clean_updates(self.plan) + self.plan.watch_steps),
            batch=self.plan.batch,
            seed=self.plan.seed,
            fraction=self.attack.fraction,
            sampling=self.plan.sampling,
            precision=self.plan.precision,
        )


@dataclass(frozen=True, kw_only=True)
class TextForgettingStudy(SequenceStudy):
    """A forgetting study on text: the plan and everything else that changes its numbers.

    Attributes:
        plan: INJECT or POISON.
        label: What the study itself is called beside its variants.
        title: Of the figure that shows them together.
        compare: Variants. They have A/A twins only where ``attack.calibration`` is ``twins``.
        hidden: How to search for memory that the attack no longer finds; None scans the checkpoints
            only. Variants are not searched.
    """

    QUESTION: ClassVar[str] = "text-forgetting"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "text",
        "canaries",
        "model",
        "training",
        "attack",
        "hidden",
    )

    plan: InjectPlan | PoisonPlan
    data: TextFileSettings | None = None
    text: TextSettings = field(default_factory=TextSettings)
    canaries: TextCanarySettings = field(default_factory=TextCanarySettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    attack: TextAttackSettings = field(default_factory=TextAttackSettings)
    label: str = "as planned"
    title: str = "The same study, varied"
    compare: tuple[Variant[TextForgettingStudy], ...] = ()
    hidden: HiddenSettings | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        self.check(self.canaries.references, named_twice(self.data, self.text))


def clean_updates(plan: InjectPlan | PoisonPlan) -> int:
    """Return how many updates the unplanted twin has had at lag 0."""
    skipped = len(plan.injected_steps) if isinstance(plan, InjectPlan) else 0
    return plan.planted_until - skipped


RECIPE = Recipe(
    study=TextForgettingStudy,
    example={
        "plan": {"canaries": 16, "step": 200, "watch_steps": 200, "trials": 8},
        "data": {"path": "train.jsonl"},
    },
)
