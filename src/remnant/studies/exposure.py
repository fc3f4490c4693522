"""How exposed is a secret that was in the training text, and can it be pulled out? INSERT."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from remnant.data import Corpus, corpus_fingerprint
from remnant.models import load_language_model, save_language_model
from remnant.plans import InsertPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.plans.order import generator
from remnant.plans.plan import SPLIT
from remnant.population import Population, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.records import Record
from remnant.search import compile_template, extract
from remnant.search.walk import Budget
from remnant.studies.exposure_audit import Progress
from remnant.studies.exposure_results import (
    TrialExposure,
    check_space,
    put_exposure_results,
)
from remnant.studies.exposure_settings import (
    LanguageModelSettings,
    MeasureSettings,
    SecretSettings,
    TextSettings,
)
from remnant.studies.inserted import keep_insertions, saved_and_told
from remnant.studies.language_models import (
    finite_losses,
    fit_language_models,
    language_model_maker,
    load_text,
)
from remnant.studies.machine import StepClock
from remnant.studies.planted_text import PlantedText, plant_text
from remnant.studies.recording import carry_out
from remnant.studies.saturated_exposure import measure_each
from remnant.studies.settings import Execution, TrainingSettings

MODELS = "models"
_TOGETHER = 64


@dataclass(frozen=True, kw_only=True)
class ExposureStudy:
    """One question, whole: the plan and all that changes its numbers."""

    plan: InsertPlan
    text: TextSettings = field(default_factory=TextSettings)
    secret: SecretSettings = field(default_factory=SecretSettings)
    model: LanguageModelSettings = field(default_factory=LanguageModelSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    measure: MeasureSettings = field(default_factory=MeasureSettings)

    def __post_init__(self) -> None:
        if not self.secret.of_words:  # else the space follows from the text
            check_space(self.plan, self.measure, self.secret.filled(""))

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "exposure", "plan": self.plan.to_dict()}
        for name in ("text", "secret", "model", "training", "measure"):
            made[name] = dataclasses.asdict(getattr(self, name))
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))


def run_exposure(
    study: ExposureStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Carry out the study in ``folder``: train, measure, extract. A run cut short goes on.

    The folder also keeps the trained models (``models/``) and the canaries with their secrets
    (``canaries.jsonl``, readable by its owner alone), for the other commands to be tried on.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    text = load_text(study.text, execution)
    planted = _plant(study, text)
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    language_model_maker(study, planted)()
    automaton = compile_template(planted.vocabulary.encode, planted.sets[0].template)
    Budget(max_nodes=study.measure.max_nodes).check(automaton)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=corpus_fingerprint(text),
        seeds={"plan": study.plan.seed},
        work=lambda record: _carry_out(study, planted, execution, record, progress),
    )


def estimate_exposure(study: ExposureStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    planted = _plant(study, load_text(study.text, execution))
    short = dataclasses.replace(study, plan=dataclasses.replace(study.plan, steps=8))
    clock = StepClock(execution.device)
    fit, _ = fit_language_models(short, short.plan, planted, execution, on_step=clock)
    return {
        "members": study.plan.members,
        "steps": study.plan.steps,
        "memory_mib": round((fit.memory + planted.store.nbytes) / 2**20, 1),
        "minutes": round(clock.typical * study.plan.steps / 60, 2),
    }


def _plant(study: ExposureStudy, text: Corpus) -> PlantedText:
    template = study.secret.filled(text.train)
    check_space(study.plan, study.measure, template)
    return plant_text(study.plan, template, text, level=study.text.level, window=study.text.window)


def _carry_out(
    study: ExposureStudy,
    planted: PlantedText,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    plan = study.plan
    saving = saved_and_told(study, record, execution, plan.steps, progress)
    fit, population = fit_language_models(study, plan, planted, execution, **saving)
    record.put_array("validation_bits", _validation_bits(population, planted))
    uses = keep_insertions(record, plan, fit, planted.sets, examples=planted.examples)
    trials = [
        _measure_trial(study, planted, population, record, execution, trial, uses, progress)
        for trial in range(plan.trials)
    ]
    put_exposure_results(study, planted, record, trials)
    record.finish()
    remove_checkpoint(saving["checkpoint"].path)


def _validation_bits(population: Population, planted: PlantedText) -> Any:
    """Return each member's mean cost of a validation token, in bits."""
    total = torch.zeros(len(population), dtype=torch.float64)
    windows = torch.from_numpy(planted.validation)
    for some in windows.split(_TOGETHER):
        logits = population.logits(some[:, :-1]).double()
        labels = some[:, 1:].to(logits.device).expand(len(population), -1, -1)
        losses = nn.functional.cross_entropy(
            logits.flatten(0, 2), labels.flatten(), reduction="none"
        )
        total += losses.reshape(len(population), -1).sum(1).cpu()
    bits = total / (windows[:, 1:].numel() * math.log(2))
    return finite_losses(bits.numpy())


def _measure_trial(
    study: ExposureStudy,
    planted: PlantedText,
    population: Population,
    record: Record,
    execution: Execution,
    trial: int,
    uses: Any,
    progress: Progress | None,
) -> TrialExposure:
    drawn = planted.sets[trial]
    secrets = [canary.secret for canary in (*drawn.canaries, *drawn.controls)]
    audits, searches = {}, {}
    for arm in study.plan.arms:
        name = f"{arm}-{trial + 1}"
        member = int(study.plan.members_of(arm)[trial])
        save_language_model(
            record.folder / MODELS / name,
            architecture=study.model.name,
            options=study.model.options,
            state=population.state_dict(member),
            vocabulary=planted.vocabulary,
        )
        model = load_language_model(record.folder / MODELS / name, device=execution.device)
        audits[arm] = measure_each(
            model,
            drawn.template,
            secrets=secrets,
            rng=generator(study.plan.seed, SPLIT, trial),
            method=study.measure.method,  # type: ignore[arg-type]
            references=study.measure.references,
            max_nodes=study.measure.max_nodes,
            progress=progress,
        )
        record.put_array(f"{name}.reference_costs", audits[arm].reference_costs)
        searches[f"{arm}, trial {trial + 1}"] = extract(
            model,
            drawn.template,
            top=study.measure.top,
            max_nodes=study.measure.max_nodes,
            progress=progress,
        )
    return TrialExposure(drawn, uses[trial], audits["planted"], audits.get("twin"), searches)
