"""Which choices of training cause exposure? One canary format under several variants."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remnant.errors import PlanError, require
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.plans.insert_epochs import InsertEpochsPlan
from remnant.records import Record
from remnant.studies.exposure_audit import Progress
from remnant.studies.exposure_settings import LanguageModelSettings, TextSettings
from remnant.studies.exposure_training_population import (
    Run,
    populations,
    prepare_runs,
    time_population,
    train_population,
)
from remnant.studies.exposure_training_results import changes_of, put_training_results
from remnant.studies.exposure_training_settings import (
    FollowSettings,
    TrainedMeasureSettings,
    TrainedSecretSettings,
)
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution, TrainingSettings
from remnant.studies.variant_grid import Cell, grid_cells
from remnant.studies.variants import Variant, label_faults

_SECTIONS = ("text", "secret", "model", "training", "measure", "follow")


@dataclass(frozen=True, kw_only=True)
class ExposureTrainingStudy:
    """One question, whole: the plan and all that changes its numbers.

    Attributes:
        plan: INSERT; its trials are seeds, and pairs across variants.
        label: What the study itself is called beside its variants.
        title: Of what shows them together.
        grid: Fields with the lists of their values, from which the first variants were made.
        compare: Variants: those of the grid but for the first, then all others.
    """

    plan: InsertEpochsPlan
    text: TextSettings = field(default_factory=TextSettings)
    secret: TrainedSecretSettings = field(default_factory=TrainedSecretSettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    measure: TrainedMeasureSettings = field(default_factory=TrainedMeasureSettings)
    follow: FollowSettings = field(default_factory=FollowSettings)
    label: str = "as planned"
    title: str = "The same training, varied"
    grid: Mapping[str, Any] = field(default_factory=dict)
    compare: tuple[Variant[ExposureTrainingStudy], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "compare", tuple(self.compare))
        others = [one.study for one in self.compare]
        faults = label_faults([self.label, *(one.label for one in self.compare)])
        spaces = {one.secret.planted.space for one in (self, *others)}
        trials = {one.plan.trials for one in (self, *others)}
        if self.compare:
            own = dataclasses.replace(self, compare=(), grid={}).to_dict()
            faults += [
                f"variant {one.label!r} changes nothing"
                for one in self.compare
                if not changes_of(own, one.study)
            ]
        if len(spaces) > 1:
            faults.append(
                "variants have templates with spaces of "
                f"{', '.join(map(str, sorted(spaces)))} secrets, whose bits do not compare"
            )
        if len(trials) > 1:
            faults.append(
                f"variants have {', '.join(map(str, sorted(trials)))} trials, which make no pairs"
            )
        seeds = {one.plan.seed for one in (self, *others)}
        planted = {one.plan.canaries for one in (self, *others)}
        if len(seeds) > 1:
            faults.append(
                f"variants have plan.seed {', '.join(map(str, sorted(seeds)))}, which make no pairs"
            )
        if len(planted) > 1:
            faults.append(
                f"variants have {', '.join(map(str, sorted(planted)))} canaries a model, whose "
                "means do not compare: canaries of one model take ranks from each other"
            )
        needed = self.plan.canaries + self.plan.controls
        if needed > self.secret.planted.space:
            faults.append(
                f"the plan needs {needed} secrets, and the template has {self.secret.planted.space}"
            )
        require(faults, error=PlanError, hint="Mend the recipe.")

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "exposure-training", "plan": self.plan.to_dict()}
        for name in _SECTIONS:
            made[name] = dataclasses.asdict(getattr(self, name))
        made["follow"]["epochs"] = list(self.follow.epochs)
        own = self.compare[max(len(self.cells()) - 1, 0) :]
        others = [{**changes_of(made, one.study), "label": one.label} for one in own]
        made |= {"label": self.label, "title": self.title}
        made |= {"grid": dict(self.grid)} if self.grid else {}
        return made | ({"compare": others} if others else {})

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))

    def cells(self) -> list[Cell]:
        """Return the cells of the grid: the study's own, then those of its first variants."""
        return grid_cells(self.grid) if self.grid else []

    def parts(self) -> dict[str, ExposureTrainingStudy]:
        """Return the study alone and its variants, by name."""
        alone: dict[str, Any] = {"compare": (), "grid": {}}
        made = {"primary": dataclasses.replace(self, **alone)}
        for i, variant in enumerate(self.compare, start=1):
            made[f"variant{i}"] = dataclasses.replace(variant.study, label=variant.label, **alone)
        return made


def run_exposure_training(
    study: ExposureTrainingStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Carry out the study in ``folder``: train, look, measure. A run that was cut short goes on.

    The canaries follow from the plan's seed and are nowhere written down.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    runs = prepare_runs(study.parts(), execution)
    prints = list(dict.fromkeys(run.text_fingerprint for run in runs.values()))
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=(
            prints[0]
            if len(prints) == 1
            else hashlib.sha256("".join(prints).encode()).hexdigest()[:16]
        ),
        seeds={"plan": study.plan.seed, "text": study.text.seed},
        work=lambda record: _carry_out(study, runs, execution, record, progress),
    )


def estimate_exposure_training(
    study: ExposureTrainingStudy, execution: Execution
) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the training would take."""
    found = [
        time_population(runs, execution)
        for runs in populations(prepare_runs(study.parts(), execution))
    ]
    return {
        "members": sum(int(one["members"]) for one in found),
        "steps": sum(int(one["steps"]) for one in found),
        "memory_mib": round(max(one["bytes"] for one in found) / 2**20, 1),
        "minutes": round(sum(one["seconds"] for one in found) / 60, 2),
    }


def _carry_out(
    study: ExposureTrainingStudy,
    runs: dict[str, Run],
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    together = populations(runs)
    for number, group in enumerate(together, start=1):
        missing = [name for name in group if f"{name}.bits" not in record.array_names()]
        if missing:
            named = f"training {number} of {len(together)}" if len(together) > 1 else "training"
            train_population(
                group,
                execution,
                record,
                key=f"{study.fingerprint}/{record.data_fingerprint}",
                wanted=missing,
                named=named,
                progress=progress,
            )
    first = runs["primary"]
    ledger = first.plan.ledger(examples=first.planted.examples)
    record.put_ledger(
        {name: getattr(ledger, name) for name in ("member", "canary", "step", "uses")}
    )
    put_training_results(record, study, runs)
    record.finish()
