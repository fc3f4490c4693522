"""How exposed is a secret that was in a translator's training pairs, given the source? INSERT."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remnant.canaries import Template
from remnant.data.pairs import PairCorpus, load_pairs
from remnant.errors import PlanError
from remnant.models import TRANSLATORS
from remnant.models.catalogue import checked_maker
from remnant.plans import InsertPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.population import Fit, Population, remove_checkpoint
from remnant.population.optimizers import make_optimizer
from remnant.records import Record
from remnant.search import compile_template
from remnant.search.walk import Budget
from remnant.studies.exposure_audit import Progress
from remnant.studies.exposure_results import check_space, put_trials
from remnant.studies.exposure_settings import MeasureSettings
from remnant.studies.inserted import keep_insertions, saved_and_told
from remnant.studies.machine import StepClock
from remnant.studies.planted_pairs import PlantedPairs, plant_pairs
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution, TrainingSettings
from remnant.studies.translation_probe import measure_trial, sentence_loss, validation_bits
from remnant.studies.translation_settings import (
    PairSecretSettings,
    PairSettings,
    TranslatorSettings,
)
from remnant.studies.wording import counted, each_times


@dataclass(frozen=True, kw_only=True)
class TranslationStudy:
    """One question, whole: the plan and all that changes its numbers."""

    plan: InsertPlan
    pairs: PairSettings
    secret: PairSecretSettings
    model: TranslatorSettings = field(default_factory=TranslatorSettings)
    training: TrainingSettings = field(
        default_factory=lambda: TrainingSettings(optimizer="adam", options={"lr": 2e-3})
    )
    measure: MeasureSettings = field(default_factory=MeasureSettings)

    def __post_init__(self) -> None:
        check_space(self.plan, self.measure, Template(self.secret.template))

    @property
    def model_options(self) -> dict[str, Any]:
        """With which the model is made: the recipe's options, and how long texts may be."""
        longest = self.pairs.longest
        return {**self.model.options, "source_length": longest, "context": longest + 1}

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "translation-exposure", "plan": self.plan.to_dict()}
        for name in ("pairs", "secret", "model", "training", "measure"):
            made[name] = dataclasses.asdict(getattr(self, name))
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))


def run_translation(
    study: TranslationStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Carry out the study in ``folder``: train, measure, extract. A run cut short goes on.

    The folder also keeps the trained models (``models/``) and the canaries' targets with their
    secrets (``canaries.jsonl``, readable by its owner alone).

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    pairs = _load(study, execution)
    planted = plant_pairs(study.plan, study.secret, pairs, study.pairs)
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    _maker(study, planted)()
    automaton = compile_template(planted.vocabulary.encode, Template(study.secret.template))
    Budget(max_nodes=study.measure.max_nodes).check(automaton)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=pairs.fingerprint,
        seeds={"plan": study.plan.seed},
        work=lambda record: _carry_out(study, planted, execution, record, progress),
    )


def estimate_translation(study: TranslationStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    planted = plant_pairs(study.plan, study.secret, _load(study, execution), study.pairs)
    short = dataclasses.replace(study, plan=dataclasses.replace(study.plan, steps=8))
    clock = StepClock(execution.device)
    fit, _ = _train(short, planted, execution, on_step=clock)
    store = planted.store.inputs.nbytes + planted.store.labels.nbytes
    return {
        "members": study.plan.members,
        "steps": study.plan.steps,
        "memory_mib": round((fit.memory + store) / 2**20, 1),
        "minutes": round(clock.typical * study.plan.steps / 60, 2),
    }


def _load(study: TranslationStudy, execution: Execution) -> PairCorpus:
    asked = study.pairs
    return load_pairs(
        asked.source,
        asked.target,
        folder=execution.data_folder,
        pairs=asked.pairs,
        longest=asked.longest,
        seed=asked.seed,
    )


def _maker(study: TranslationStudy, planted: PlantedPairs) -> Any:
    unknown = set(study.model.options) - set(TRANSLATORS[study.model.name].__kwdefaults__ or {})
    if unknown:
        raise PlanError(f"{study.model.name} has no option {', '.join(sorted(unknown))}.")
    return checked_maker(
        TRANSLATORS, study.model.name, study.model_options, planted.vocabulary.size
    )


def _train(
    study: TranslationStudy, planted: PlantedPairs, execution: Execution, **choices: Any
) -> tuple[Fit, Population]:
    plan = study.plan
    population = Population(
        _maker(study, planted),
        seeds=plan.seeds,
        dropout_seeds=plan.dropout_seeds,
        device=execution.device,
        precision=plan.precision,
    )
    fit = population.fit(
        planted.store.inputs,
        planted.store.labels,
        plan.schedule(examples=planted.examples),
        optimizer=study.training.optimizer,
        loss=sentence_loss,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        compiled=execution.compiled,
        **choices,
        **study.training.options,
    )
    return fit, population


def _carry_out(
    study: TranslationStudy,
    planted: PlantedPairs,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    plan = study.plan
    saving = saved_and_told(study, record, execution, plan.steps, progress)
    fit, population = _train(study, planted, execution, **saving)
    record.put_array("validation_bits", validation_bits(population, planted.validation))
    uses = keep_insertions(record, plan, fit, planted.sets, examples=planted.examples)
    trials = [
        measure_trial(study, planted, population, record, execution, trial, uses, progress)
        for trial in range(plan.trials)
    ]
    given = "beginning" if study.secret.shared else "source"
    put_trials(plan, study.measure, record, trials, given=given)
    _put_rest(study, planted, record)
    record.finish()
    remove_checkpoint(saving["checkpoint"].path)


def _put_rest(study: TranslationStudy, planted: PlantedPairs, record: Record) -> None:
    plan = study.plan
    record.put_result(
        "task",
        {
            "validation_bits": float(
                record.array("validation_bits")[plan.members_of("planted")].mean()
            ),
            "validation_tokens": int((planted.validation.labels >= 0).sum()),
            "token": "word",
            "uniform_bits": math.log2(planted.vocabulary.size),
        },
    )
    given = (
        "the beginning of the source, without the secret"
        if study.secret.shared
        else "the whole source, with the secret in it"
    )
    tested = [
        f"{counted(plan.trials, 'training run')} of {plan.steps} steps on {planted.examples} pairs "
        f"of sentences, with {counted(plan.canaries, 'pair')} with a secret planted "
        f"{each_times(plan.repeats)}.",
        f"Secrets in the translation, when the model is given {given}.",
        f"{counted(plan.controls, 'control')} of the same template, never planted.",
    ]
    if plan.twin:
        tested.append("A twin of each run that differs in the planted pairs alone.")
    not_tested = [
        "Secrets of another format, and secrets that were in the pairs already.",
        "Attacks that do not go through the model's probabilities.",
        f"How good the translations are. {math.ceil(100 * planted.unknown)} % or less of the words "
        "are not in the vocabulary.",
    ]
    if plan.trials == 1:
        not_tested.append("How much another training run would differ: there was one.")
    record.put_result("scope", {"tested": tested, "not_tested": not_tested})
