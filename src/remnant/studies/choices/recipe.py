"""The recipes of both questions: one training and its variants, or the remedies for it.

Training choices have a grid and compared variants, defences have remedies; a remedy that trains
from the start is a variant too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from remnant.canaries import Template
from remnant.errors import InvalidInput, PlanError, RemnantError, require
from remnant.plans.bounds import Count, FromZero, NotNegative, Share, one_of
from remnant.plans.insert import InsertEpochsPlan
from remnant.studies.choices.remedies import RemedySettings
from remnant.studies.choices.variant_grid import Cell, grid_cells
from remnant.studies.shared.settings import Section, TrainingSettings
from remnant.studies.shared.study import Recipe, SectionedStudy
from remnant.studies.shared.text_settings import (
    METHODS,
    Bits,
    LanguageModelSettings,
    TextFileSettings,
    TextSettings,
    named_twice,
    sampling_faults,
)
from remnant.studies.shared.variants import Remedy, Variant, difference, label_faults

FOLLOWED = ("sampled", "auto")
BASE = "primary"
_CHANGED_BY_NONE = ("text", "data", "secret", "measure")  # remedies are compared on these


@dataclass(frozen=True, kw_only=True)
class TrainedSecretSettings(Section, name="secret"):
    """The secrets that are planted, and what an attacker knows about them.

    Attributes:
        template: Text with holes that are filled at random, such as ``{digits:6}``.
        scored: The same holes in another context, by which exposure is measured. Not set: the
            template itself. Variants that differ in this alone are trained once.
    """

    template: str = "API_KEY = {digits:6}"
    scored: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        made = []
        for name in ("template", "scored"):
            pattern = getattr(self, name)
            if pattern is None:
                continue
            if "{words" in pattern:
                raise PlanError(
                    f"secret.{name} has a {{words:n}} hole, which this question does not fill.",
                    hint='Use digits, letters or a choice, or question = "exposure".',
                )
            try:
                made.append(Template(pattern))
            except (InvalidInput, TypeError) as fault:
                raise PlanError(f"secret.{name} is no template: {fault}") from fault
        if made[0].slots != made[-1].slots:
            raise PlanError(
                "secret.scored has other holes than secret.template.",
                hint="Change the text before the first hole and after the last alone.",
            )

    @property
    def planted(self) -> Template:
        """What is planted."""
        return Template(self.template)

    @property
    def known(self) -> Template:
        """What exposure is measured by."""
        return Template(self.template if self.scored is None else self.scored)


@dataclass(frozen=True, kw_only=True)
class TrainedMeasureSettings(Section, name="measure"):
    """How exposure is measured after training.

    Attributes:
        method: ``exact``, ``sampled``, or ``auto``: exact where ``max_nodes`` allows it.
        references: Secrets sampled for each trial, for sampled exposure and the skew-normal
            estimate. With 2 000 or more, intervals of means up to 6 bits hold nearly as if all
            ranks were exact.
        max_nodes: Largest number of nodes of the search for a rank, and of an extraction.
        extract: Whether to search for the likeliest secrets, as many as there are canaries.
        windows: Windows of the held-out text, and of the training text, on which the models' loss
            is measured.
        confidence: Confidence of the intervals.
    """

    method: Annotated[str, one_of(METHODS)] = "auto"
    references: FromZero = 2_000
    max_nodes: Count = 500_000
    extract: bool = False
    windows: Count = 256
    confidence: Share = 0.95

    def _contradictions(self) -> list[str]:
        return sampling_faults(self.method, self.references)


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
class FollowSettings(Section, name="follow"):
    """When exposure is measured during training; never by default.

    Attributes:
        epochs: Passes over the text after which to measure; 0 is the start.
        every: Measure after every so many steps, from the start to the end. Give either this or
            ``epochs``.
        references: Secrets that the canaries of a trial are ranked among, the same at all times:
            the first of those that they are ranked among after training.
        method: ``sampled``: up to log2(references + 1) bits; ``auto``: the exact rank where
            ``max_nodes`` allows it.
    """

    epochs: tuple[NotNegative, ...] = ()
    every: Count | None = None
    references: Count = 2_000
    method: Annotated[str, one_of(FOLLOWED)] = "sampled"

    def _contradictions(self) -> list[str]:
        both = self.every is not None and self.epochs
        return ["follow has both epochs and every"] if both else []

    def steps(self, *, last: int, epoch_steps: float) -> tuple[int, ...]:
        """Return the steps after which models are measured, in rising order.

        Args:
            last: Steps of the whole training.
            epoch_steps: Steps of one pass over the text.

        Raises:
            PlanError: An epoch is after the end.

        Example:
            >>> FollowSettings(every=40).steps(last=100, epoch_steps=25)
            (0, 40, 80, 100)
        """
        if self.every is not None:
            return tuple(sorted({*range(0, last, self.every), last}))
        # An epoch ends with the step that completes it.
        steps = [math.ceil(epoch * epoch_steps - 1e-9) for epoch in self.epochs]
        beyond = [epoch for epoch, step in zip(self.epochs, steps, strict=True) if step > last]
        if beyond:
            raise PlanError(
                f"follow.epochs={beyond} are after the end, at epoch {last / epoch_steps:.3g}.",
                hint="Train for longer, or measure earlier.",
            )
        return tuple(sorted(set(steps)))


@dataclass(frozen=True, kw_only=True)
class VariedStudy(SectionedStudy):
    """A study of one training in several ways, the planned one first.

    Attributes:
        plan: INSERT; its trials are seeds, and pairs across variants.
    """

    plan: InsertEpochsPlan
    data: TextFileSettings | None = None
    text: TextSettings = field(default_factory=TextSettings)
    secret: TrainedSecretSettings = field(default_factory=TrainedSecretSettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )

    def named(self) -> dict[str, Remedy[DefencesStudy]]:
        """Return the remedies by the names that their arrays have; training choices have none."""
        return {}

    def _secret_faults(self) -> list[str]:
        needed, space = self.plan.canaries + self.plan.controls, self.secret.planted.space
        if needed <= space:
            return []
        return [f"the plan needs {needed} secrets, and the template has {space}"]


@dataclass(frozen=True, kw_only=True)
class ExposureTrainingStudy(VariedStudy):
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        plan: INSERT; its trials are seeds, and pairs across variants.
        label: What the study itself is called beside its variants.
        title: Of what shows them together.
        grid: Fields with the lists of their values, from which the first variants were made.
        compare: Variants: those of the grid but for the first, then all others.
    """

    QUESTION: ClassVar[str] = "exposure-training"
    SECTIONS: ClassVar[tuple[str, ...]] = (
        "data",
        "text",
        "secret",
        "model",
        "training",
        "measure",
        "follow",
    )

    measure: TrainedMeasureSettings = field(default_factory=TrainedMeasureSettings)
    follow: FollowSettings = field(default_factory=FollowSettings)
    label: str = "as planned"
    title: str = "The same training, varied"
    grid: Mapping[str, Any] = field(default_factory=dict)
    compare: tuple[Variant[ExposureTrainingStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        studies = (self, *(variant.study for variant in self.compare))
        faults = label_faults([self.label, *(variant.label for variant in self.compare)])
        faults += named_twice(self.data, self.text)
        if self.compare:
            own = dataclasses.replace(self, compare=(), grid={}).to_dict()
            faults += [
                f"variant {variant.label!r} changes nothing"
                for variant in self.compare
                if not changes_of(own, variant.study)
            ]
        compared: dict[str, set[int]] = {
            "templates with spaces of {} secrets, whose bits do not compare": {
                study.secret.planted.space for study in studies
            },
            "{} trials, which make no pairs": {study.plan.trials for study in studies},
            "plan.seed {}, which make no pairs": {study.plan.seed for study in studies},
            "{} canaries a model, whose means do not compare: canaries of one model take ranks "
            "from each other": {study.plan.canaries for study in studies},
        }
        faults += [
            f"variants have {words.format(', '.join(map(str, sorted(values))))}"
            for words, values in compared.items()
            if len(values) > 1
        ]
        faults += self._secret_faults()
        require(faults, error=PlanError, hint="Fix the recipe.")

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made = super().to_dict()
        own = self.compare[max(len(self.cells()) - 1, 0) :]
        others = [{**changes_of(made, variant.study), "label": variant.label} for variant in own]
        made |= {"label": self.label, "title": self.title}
        made |= {"grid": dict(self.grid)} if self.grid else {}
        return made | ({"compare": others} if others else {})

    def cells(self) -> list[Cell]:
        """Return the cells of the grid: the study's own, then those of its first variants."""
        return grid_cells(self.grid) if self.grid else []

    def parts(self) -> dict[str, ExposureTrainingStudy]:
        """Return the study alone and its variants, by name."""
        alone: dict[str, Any] = {"compare": (), "grid": {}}
        made = {BASE: dataclasses.replace(self, **alone)}
        for i, variant in enumerate(self.compare, start=1):
            made[f"variant{i}"] = dataclasses.replace(variant.study, label=variant.label, **alone)
        return made


def changes_of(table: Mapping[str, Any], study: VariedStudy) -> dict[str, Any]:
    """Return the fields in which a variant differs from a plain study, its names aside."""
    changes = difference(table, study.to_dict())
    return {name: fields for name, fields in changes.items() if name not in ("label", "title")}


@dataclass(frozen=True, kw_only=True)
class DefencesStudy(VariedStudy):
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

    measure: LimitedMeasureSettings = field(default_factory=LimitedMeasureSettings)
    label: str = "nothing"
    title: str = "Remedies, compared with doing nothing"
    remedy: tuple[Remedy[DefencesStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "remedy", tuple(self.remedy))
        faults = label_faults([self.label, *(remedy.label for remedy in self.remedy)])
        faults += named_twice(self.data, self.text)
        space = self.secret.planted.space
        faults += self._secret_faults()
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
        changes = changes_of(plain, remedy.study)
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
                **changes_of(made, remedy.study),
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

    def parts(self) -> dict[str, ExposureTrainingStudy]:
        """Return the training as planned, and those of all remedies that train from the start."""
        return {BASE: self.as_training(self.label)} | {
            name: as_trained(remedy.settings, remedy.study.as_training(remedy.label))
            for name, remedy in self.named().items()
            if not remedy.settings.afterwards
        }


def as_trained(settings: RemedySettings, study: ExposureTrainingStudy) -> ExposureTrainingStudy:
    """Return the training of a remedy: the study with what its kind changes in the recipe.

    Early stopping, sanitising and order change no field; see ``run``.

    Args:
        settings: The remedy.
        study: With the recipe's fields that the remedy changes.

    Raises:
        PlanError: The optimizer or the model does not have what the remedy sets.
    """
    training, model, plan = study.training, study.model, study.plan
    options = dict(training.options)
    if settings.kind == "weight-decay":
        options["weight_decay"] = settings.strength
        training = dataclasses.replace(training, options=options)
    elif settings.kind == "dropout":
        model = dataclasses.replace(model, options={**model.options, "dropout": settings.rate})
    elif settings.kind == "clipping":
        training = dataclasses.replace(training, clip=settings.clip)
    elif settings.kind == "private":
        training = dataclasses.replace(
            training,
            optimizer=f"dp-{training.optimizer}",
            options=options | {"noise": settings.noise},
            clip=settings.clip,
        )
        if settings.value("batches") == "poisson":
            plan = dataclasses.replace(plan, sampling="poisson")
    elif settings.kind == "deduplication":
        plan = dataclasses.replace(plan, repeats=(1,) * plan.canaries)
    training.check_options()
    return dataclasses.replace(study, training=training, model=model, plan=plan)


EXPOSURE_TRAINING = Recipe(
    study=ExposureTrainingStudy,
    example={"plan": {"repeats": (1,), "epochs": 5}, "data": {"path": "train.jsonl"}},
)
DEFENCES = Recipe(
    study=DefencesStudy,
    example={
        "plan": {"repeats": (4,), "epochs": 5, "trials": 10},
        "data": {"path": "train.jsonl"},
    },
    remedy=RemedySettings,
)
