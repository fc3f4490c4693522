"""Which questions will a fine-tuned language model memorise? SHADOW pools of LoRA adapters."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from remnant.plans import ShadowPlan
from remnant.population import AdapterPopulation, Fit, FrozenModel
from remnant.population.optimizers import make_optimizer
from remnant.records import Record
from remnant.studies.jobs.execution import JobOutput
from remnant.studies.prediction.early_looks import LOSS, Bools, Floats
from remnant.studies.prediction.shadow_training import (
    Progress,
    ShadowTraining,
    check_pool_folder,
    planned_jobs,
    run_shadow_study,
)
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.recording import run_in_record
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution
from remnant.studies.text_prediction.multiple_choice import (
    TokenisedQuestions,
    ask_all,
    held_out_accuracy,
    read_frozen,
    tokenise_questions,
)
from remnant.studies.text_prediction.recipe import TextPredictionStudy


def run_text_prediction(
    study: TextPredictionStudy,
    folder: Path,
    execution: Execution,
    *,
    progress: Progress | None = None,
) -> None:
    """Run the study in ``folder``: look at targets, fill the pool, measure.

    Resumes an interrupted run; the pool is a record of its own, in ``folder/pool``, and tops
    up where the plan asks for more models than it has. No text of a question is written down.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    bench = _prepare(study, execution)
    run_in_record(
        study,
        folder,
        execution,
        data_fingerprint=bench.fingerprint,
        seeds={"plan": study.plan.seed, "questions": study.questions.seed},
        work=lambda record: _work(bench, record, progress),
        origins=[bench.questions.origin],
    )


def _work(bench: _TextTraining, record: Record, progress: Progress | None) -> None:
    run_shadow_study(bench, record, progress)


@dataclass(frozen=True, eq=False, kw_only=True)
class _TextTraining(ShadowTraining):
    """The training of adapters on multiple-choice questions; see ``ShadowTraining``."""

    LEAST_BLOCK: ClassVar[int] = 50  # adapters are small: fewer leave a GPU idle

    study: TextPredictionStudy
    questions: TokenisedQuestions
    frozen: FrozenModel

    def on(self, execution: Execution) -> _TextTraining:
        """Return the same training where a job runs, the frozen model on that device."""
        if execution.device != self.execution.device:
            self.frozen.module.to(execution.device)  # a worker's own copy
        return dataclasses.replace(self, execution=execution)

    def population(self, seeds: list[int], precision: str) -> AdapterPopulation:
        """Return untrained adapters, one for each seed."""
        return AdapterPopulation(
            self.frozen, seeds, lora=self.study.lora.made(), precision=precision
        )

    def fit(
        self, members: range | tuple[int, ...], *, plan: ShadowPlan | None = None, **choices: Any
    ) -> tuple[Fit, AdapterPopulation]:
        """Train these members of ``plan``, by default the study's."""
        study, plan = self.study, plan or self.study.plan
        probes = choices.pop("probes", None) or {}
        seeds = plan.seeds
        population = self.population([seeds[member] for member in members], plan.precision)
        fit = population.fit(
            self.questions.tokens,
            self.questions.wanted,
            plan.schedule(examples=len(self.questions), members=members),
            optimizer=study.training.optimizer,
            learning_rate=study.training.rate(),
            clip=study.training.clip,
            probes={name: probe.read for name, probe in probes.items()},
            probe_steps={name: probe.steps for name, probe in probes.items()},
            **choices,
            **study.training.options,
        )
        return fit, population

    def signals(self, models: AdapterPopulation) -> Floats:
        """Return loss, log-odds and logit gap of all questions, shape ``(members, 3, n)``."""
        return ask_all(models, self.questions)[0]

    def first_losses(self, models: AdapterPopulation, own: Bools) -> Floats:
        """Return the first member's losses on all questions."""
        signals, _ = ask_all(models, self.questions, members=slice(1))
        return np.asarray(signals[0, LOSS])

    def look(self, models: AdapterPopulation, seen: Bools) -> Iterator[tuple[Floats, list[Tensor]]]:
        """Yield each target's signals of all questions, and the states of its own ones."""
        layers = self.study.predict.layers
        signals, states = ask_all(models, self.questions, layers=layers)
        for target, own in enumerate(seen):
            rows = torch.from_numpy(own).to(models.device)
            yield signals[target], [states[layer][target, rows] for layer in layers]

    def trained_targets(
        self, record: JobOutput, fit: Fit, models: AdapterPopulation, own: Bools
    ) -> Floats:
        """Record the accuracy and the dropped questions; return the losses of all questions."""
        record.put_array("targets.test_accuracy", held_out_accuracy(models, self.questions))
        record.update_execution({"questions.left_out": self.questions.left_out})
        return fit.probes["trace"]

    def task(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""
        answers = self.questions.test_answers
        return ClassifierTask(
            test_accuracy=float(record.array("targets.test_accuracy").mean()),
            test_examples=len(answers),
            majority=float(np.bincount(answers).max() / len(answers)),
        )


def _prepare(study: TextPredictionStudy, execution: Execution) -> _TextTraining:
    """Read questions and model; refuse what cannot be trained before anything is written."""
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    questions = tokenise_questions(study.questions, study.model, execution, data=study.data)
    frozen, weights = read_frozen(study.model, execution, precision=study.plan.precision)
    both = f"{questions.fingerprint}/{weights}"
    named = study.questions.name if study.data is None else study.data.path
    training = _TextTraining(
        study=study,
        execution=execution,
        fingerprint=hashlib.sha256(both.encode()).hexdigest()[:16],
        labels=questions.answers,
        kinds=questions.kinds,
        what=(
            f"LoRA of rank {study.lora.rank} on {Path(study.model.folder).name}, multiple-choice "
            f"questions of {named} with at most {study.questions.longest} tokens"
        ),
        questions=questions,
        frozen=frozen,
    )
    check_pool_folder(study, execution, training.fingerprint)
    study.plan.seen(examples=len(questions), members=[0])
    study.predict.steps(epoch=training.epoch, last=study.plan.steps)
    untrained = training.population([0], study.plan.precision)
    next(untrained.ask(questions.tokens[:1], layers=study.predict.layers))
    return training


def estimate_text_prediction(study: TextPredictionStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real training, write nothing, and estimate the whole."""
    training = _prepare(study, execution)
    block = min(training.block, study.plan.models)
    clock = StepClock(execution.device)
    short = dataclasses.replace(study.plan, steps=4)
    fit, population = training.fit(range(block), plan=short, on_step=clock)
    a_step = clock.typical
    clock(0)
    questions = training.questions
    few = dataclasses.replace(questions, tokens=questions.tokens[:8], answers=questions.answers[:8])
    ask_all(population, few)
    clock(0)
    asking = (clock.times[-1] - clock.times[-2]) * len(questions) / len(few)
    targets, models = study.predict.targets, study.plan.models
    seconds = a_step * study.plan.steps * (models + targets) / block
    seconds += asking * (2 * models + len(training.moments) * targets) / block
    return {
        "members": models + targets,
        "steps": study.plan.steps,
        "memory_mib": round(fit.memory / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "groups": planned_jobs(training, seconds),
    }
