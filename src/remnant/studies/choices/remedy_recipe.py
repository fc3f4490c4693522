"""The recipe of a study of defences: one training, and the remedies it is compared with."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from remnant.errors import PlanError, RemnantError, require
from remnant.plans.insert_epochs import InsertEpochsPlan
from remnant.studies.choices.recipe import (
    ExposureTrainingStudy,
    TrainedMeasureSettings,
    TrainedSecretSettings,
)
from remnant.studies.choices.remedies import RemedySettings, as_trained
from remnant.studies.shared.settings import TrainingSettings
from remnant.studies.shared.study import Recipe, SectionedStudy
from remnant.studies.shared.text_settings import (
    Bits,
    LanguageModelSettings,
    TextFileSettings,
    TextSettings,
    named_twice,
)
from remnant.studies.shared.variants import Remedy, difference, label_faults

BASE = "primary"
_CHANGED_BY_NONE = ("text", "data", "secret", "measure")


@dataclass(frozen=True, kw_only=True)
class LimitedMeasureSettings(TrainedMeasureSettings, name="measure"):
    """How exposure is measured after training, and the limit that a remedy has to hold.

    Attributes:
        limit: Bits that the exposure of every canary must stay below.
        method: ``exact``, ``sampled``, or ``auto``: exact where ``max_nodes`` allows it.
        references: Secrets sampled for each trial, for sampled exposure.
        max_nodes: Largest number of nodes of the search for a rank, and of an extraction.
        extract: Whether to search for the likeliest secrets, as many as there are canaries.
        windows: Windows of the held-out text, and of the training text, on which the models' loss
            is measured.
        confidence: Confidence of the intervals.
    """

    limit: Bits = 10.0


@dataclass(frozen=True, kw_only=True)
class DefencesStudy(SectionedStudy):
    """One question, whole: the training as planned, and all remedies.

    Attributes:
        plan: INSERT; its trials are seeds, and pairs across remedies.
        label: What the training as planned is called.
        title: Of what shows all of them together.
        remedy: The remedies.
    """

    QUESTION: ClassVar[str] = "defences"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "text",
        "secret",
        "model",
        "training",
        "measure",
    )

    plan: InsertEpochsPlan
    data: TextFileSettings | None = None
    text: TextSettings = field(default_factory=TextSettings)
    secret: TrainedSecretSettings = field(default_factory=TrainedSecretSettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    measure: LimitedMeasureSettings = field(default_factory=LimitedMeasureSettings)
    label: str = "nothing"
    title: str = "Remedies, compared with doing nothing"
    remedy: tuple[Remedy[DefencesStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "remedy", tuple(self.remedy))
        faults = label_faults([self.label, *(remedy.label for remedy in self.remedy)])
        faults += named_twice(self.data, self.text)
        space = self.secret.planted.space
        if self.plan.canaries + self.plan.controls > space:
            faults.append(
                f"the plan needs {self.plan.canaries + self.plan.controls} secrets, and the "
                f"template has {space}"
            )
        if self.measure.limit > math.log2(space):
            faults.append(
                f"measure.limit={self.measure.limit:g} bits cannot be reached: the template has "
                f"{space} secrets, so exposure is at most {math.log2(space):.1f} bits; lower it, "
                "or make the secret longer"
            )
        plain = dataclasses.replace(self, remedy=()).to_dict() if self.remedy else {}
        for remedy in self.remedy:
            faults += [f"remedy {remedy.label!r}: {fault}" for fault in self._faults(remedy, plain)]
        require(faults, error=PlanError, hint="Fix the recipe.")

    def _faults(self, remedy: Remedy[DefencesStudy], plain: dict[str, Any]) -> list[str]:
        changes = _changes(plain, remedy.study)
        settings: RemedySettings = remedy.settings
        if settings.afterwards and changes:
            return [
                f"kind = {settings.kind!r} changes models trained as planned and takes no "
                f"[{next(iter(changes))}] of its own"
            ]
        fixed = [name for name in _CHANGED_BY_NONE if name in changes]
        fixed += [
            f"plan.{name}"
            for name in ("trials", "seed", "controls")
            if name in changes.get("plan", {})
        ]
        if fixed:
            return [f"it changes {fixed[0]}, and remedies are compared on equal secrets and text"]
        if remedy.study.plan.canaries != self.plan.canaries:
            return ["it changes how many canaries there are"]
        try:
            made = as_trained(settings, remedy.study.as_training(remedy.label))
        except RemnantError as fault:
            return [fault.message.removesuffix(".")]
        same = made == self.as_training(remedy.label)
        by_fields = settings.kind not in ("early-stopping", "sanitising", "order")
        return ["it changes nothing"] if same and by_fields and not settings.afterwards else []

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, each remedy as its kind and what it changes."""
        made = super().to_dict()
        tables = [
            {
                "label": remedy.label,
                "kind": remedy.settings.kind,
                **remedy.settings.given(),
                **_changes(made, remedy.study),
            }
            for remedy in self.remedy
        ]
        made |= {"label": self.label, "title": self.title}
        return made | ({"remedy": tables} if tables else {})

    def as_training(self, label: str) -> ExposureTrainingStudy:
        """Return the training of this study, which the rooms of training choices know."""
        return ExposureTrainingStudy(
            label=label,
            plan=self.plan,
            **{name: getattr(self, name) for name in self.SECTIONS},
        )

    def named(self) -> dict[str, Remedy[DefencesStudy]]:
        """Return the remedies by the names that their arrays have."""
        return {f"remedy{i}": remedy for i, remedy in enumerate(self.remedy, start=1)}

    def trainings(self) -> dict[str, ExposureTrainingStudy]:
        """Return the training as planned, and those of all remedies that train from the start."""
        return {BASE: self.as_training(self.label)} | {
            name: as_trained(remedy.settings, remedy.study.as_training(remedy.label))
            for name, remedy in self.named().items()
            if not remedy.settings.afterwards
        }


def changes_of(study: DefencesStudy, other: DefencesStudy) -> dict[str, Any]:
    """Return the fields of the recipe in which a remedy's study differs."""
    return _changes(dataclasses.replace(study, remedy=()).to_dict(), other)


def _changes(table: dict[str, Any], study: DefencesStudy) -> dict[str, Any]:
    """Return the fields in which a remedy's study differs, its names aside."""
    changes = difference(table, study.to_dict())
    return {name: fields for name, fields in changes.items() if name not in ("label", "title")}


RECIPE = Recipe(
    study=DefencesStudy,
    example={
        "plan": {"repeats": (4,), "epochs": 5, "trials": 10},
        "data": {"path": "train.jsonl"},
    },
    remedy=RemedySettings,
)
