"""How exposed is a secret in the training data, and can it be extracted? INSERT, on any task."""

from __future__ import annotations

import dataclasses
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import write_canary_sets
from remnant.models import load_language_model, save_language_model
from remnant.plans import InsertPlan
from remnant.plans.plan import SPLIT
from remnant.plans.schedule import generator
from remnant.population.optimizers import make_optimizer
from remnant.progress import Progress
from remnant.records import Record
from remnant.search import compile_template, extract
from remnant.search.walk import Budget
from remnant.studies.exposure.audit import ExposureAudit
from remnant.studies.exposure.kept_trials import keep_trial, kept_trial
from remnant.studies.exposure.measure import (
    TrialExposure,
    TrialSearch,
    insertion_scope,
    put_exposure_results,
)
from remnant.studies.exposure.recipe import check_space
from remnant.studies.exposure.saturated import measure_each
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, Workload, run_jobs
from remnant.studies.pipeline import Prepared, StepClock, put_ledger
from remnant.studies.registry import task_of
from remnant.studies.shared.classifiers import how_trained
from remnant.studies.shared.result_parts import LanguageTask
from remnant.studies.shared.settings import Execution, TrainingSettings
from remnant.studies.shared.study import Study
from remnant.studies.shared.text_settings import MeasureSettings
from remnant.tasks.secrets import PlantedSecrets, SecretTask
from remnant.tasks.task import Source

MODELS = "models"
CANARIES = "canaries.jsonl"
_CHECKPOINT = "checkpoint-training.safetensors"


class SecretStudy(Study, Protocol):
    """A study that plants secrets: its plan, and how it trains and measures."""

    @property
    def plan(self) -> InsertPlan: ...  # noqa: D102
    @property
    def training(self) -> TrainingSettings: ...  # noqa: D102
    @property
    def measure(self) -> MeasureSettings: ...  # noqa: D102


def prepare(study: SecretStudy, execution: Execution, progress: Progress | None) -> Prepared:
    """Load and plant what the study's task does; the work trains, measures and extracts.

    The folder also keeps the trained models (``models/``) and the canaries with their secrets
    (``canaries.jsonl``, readable by its owner alone), for the other commands to be tried on.
    """
    task = _task(study)
    source = task.load(study, execution, progress)
    run = _planted_run(study, source, execution)
    run.check()
    return Prepared(
        data_fingerprint=task.fingerprint(source, run.planted),
        seeds={"plan": study.plan.seed},
        origins=[source.origin],
        work=lambda record: run.work(record, progress),
    )


def estimate(study: SecretStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    source = _task(study).load(study, execution)
    return _planted_run(study, source, execution).estimate()


def _task(study: SecretStudy) -> SecretTask:
    return cast(SecretTask, task_of(study))


def _planted_run(study: SecretStudy, source: Source, execution: Execution) -> PlantedRun:
    task = _task(study)
    check_space(study.plan, study.measure, task.secret_template(study, source))
    return PlantedRun(study, source, execution, task.plant_secrets(study, source, execution))


@dataclass(frozen=True, slots=True, eq=False)
class PlantedRun:
    """A study with its planted data. Other processes get study and data, and plant them again.

    Attributes:
        study: The study.
        source: What its task has read.
        execution: Where it runs.
        planted: What is trained and tested.
    """

    study: SecretStudy
    source: Source
    execution: Execution
    planted: PlantedSecrets

    def __reduce__(self) -> tuple[Any, ...]:
        return _planted_run, (self.study, self.source, self.execution)

    def on(self, execution: Execution) -> PlantedRun:
        """Return the same run where a job runs."""
        same = execution.device == self.execution.device
        return self if same else _planted_run(self.study, self.source, execution)

    def check(self) -> None:
        """Refuse what cannot be trained or searched.

        Raises:
            RemnantError: Anything the user can fix.
        """
        training, planted = self.study.training, self.planted
        make_optimizer(training.optimizer, members=1, options=training.options)
        planted.make()
        automaton = compile_template(planted.vocabulary.encode, planted.sets[0].template)
        Budget(max_nodes=self.study.measure.max_nodes).check(automaton)

    def estimate(self) -> dict[str, Any]:
        """Time a few steps of the real thing, write nothing, and say what the whole would take."""
        plan = self.study.plan
        clock = StepClock(self.execution.device)
        fit, _ = self.planted.train(dataclasses.replace(plan, steps=8), on_step=clock)
        return {
            "members": plan.members,
            "steps": plan.steps,
            "memory_mib": round((fit.memory + self.planted.store_bytes) / 2**20, 1),
            "minutes": round(clock.typical * plan.steps / 60, 2),
            "groups": [
                planned_job(self._training(""), seconds=clock.typical * plan.steps),
                *(
                    planned_job(
                        self._measuring(trial, np.zeros(0, dtype=np.int64), {}),
                        seconds=None,
                        stage=1,
                    )
                    for trial in range(plan.trials)
                ),
            ],
        }

    def work(self, record: Record, progress: Progress | None) -> None:
        """Train, measure and extract."""
        plan, planted = self.study.plan, self.planted
        uses = self._keep_insertions(record)
        key = f"{self.study.fingerprint}/{record.data_fingerprint}"
        training = self._training(key)
        measuring = Workload(plan.trials, plan.trials)
        known: dict[str, Any] = {
            "shared": self,
            "record": record,
            "execution": self.execution,
            "progress": progress,
            "whole": Workload.of([training]) + measuring,
        }
        trained = self._is_trained(record)
        if not trained:

            def keep(_: Job, trained: _Trained) -> None:
                self._keep_models(record, trained)

            run_jobs([training], keep=keep, later=measuring, **known)
        measured = self._kept(record, uses, key) if trained else {}
        trials = {
            self._measuring(trial, uses[trial], self._sent(record, trial)): trial
            for trial in range(plan.trials)
            if trial not in measured
        }

        def note(job: Job, exposure: TrialExposure) -> None:
            trial = trials[job]
            measured[trial] = exposure
            keep_trial(_trial_file(record, trial), exposure, key=key)

        run_jobs(list(trials), keep=note, **known)
        bits = record.array("validation_bits")
        task = LanguageTask(
            validation_bits=float(bits[plan.members_of("planted")].mean()),
            validation_tokens=planted.validation_tokens,
            token=planted.token,
            uniform_bits=math.log2(planted.vocabulary.size),
        )
        put_exposure_results(
            plan,
            self.study.measure,
            record,
            [measured[trial] for trial in range(plan.trials)],
            task=task,
            scope=insertion_scope(plan, planted.words),
            given=None
            if planted.encoder_input is None
            else "source"
            if planted.encoder_input_of
            else "beginning",
        )

    def _keep_insertions(self, record: Record) -> NDArray[Any]:
        """Keep when canaries were used, and the canaries with their trial.

        Returns:
            How often each was used, ``(trials, canaries)``.
        """
        plan = self.study.plan
        ledger = plan.ledger(examples=self.planted.examples)
        put_ledger(record, ledger)
        sets = enumerate(self.planted.sets, start=1)
        marked = [dataclasses.replace(drawn, trial=at) for at, drawn in sets]
        write_canary_sets(marked, record.folder / CANARIES)
        size = plan.trials * plan.canaries
        uses = np.bincount(ledger.canary, weights=ledger.uses, minlength=size)
        return uses.reshape(plan.trials, plan.canaries)

    def _kept(self, record: Record, uses: NDArray[Any], key: str) -> dict[int, TrialExposure]:
        """What was measured of the trials before the study was cut short."""
        found = {}
        for trial, drawn in enumerate(self.planted.sets):
            exposure = kept_trial(
                _trial_file(record, trial),
                key=key,
                canaries=drawn,
                uses=uses[trial],
                costs=partial(self._costs, record, trial),
            )
            if exposure is not None:
                found[trial] = exposure
        return found

    def _costs(self, record: Record, trial: int, arm: str) -> NDArray[np.float64]:
        """The costs of the references in one of a trial's models."""
        return record.array(_costs_array(self._names(trial)[arm]))

    def _training(self, key: str) -> Job:
        """The job that trains all members."""
        plan = self.study.plan
        return Job(
            name="training",
            work=partial(_train, key),
            members=plan.members,
            steps=plan.steps,
            saved=_CHECKPOINT,
        )

    def _measuring(self, trial: int, uses: NDArray[np.int64], sent: Mapping[str, bytes]) -> Job:
        """The job that measures a trial; see ``_measure_trial``."""
        return Job(
            name=f"exposure, trial {trial + 1} of {self.study.plan.trials}",
            work=partial(_measure_trial, trial, uses, sent),
        )

    def _names(self, trial: int) -> dict[str, str]:
        """The names of a trial's models, by arm."""
        return {arm: f"{arm}-{trial + 1}" for arm in self.study.plan.arms}

    def _is_trained(self, record: Record) -> bool:
        """Whether the folder has all trained models, and what they cost."""
        trials = range(self.study.plan.trials)
        names = (name for trial in trials for name in self._names(trial).values())
        models = record.folder / MODELS
        return "validation_bits" in record.array_names() and all(
            (models / name).is_dir() for name in names
        )

    def _sent(self, record: Record, trial: int) -> dict[str, bytes]:
        """The files of a trial's models for a worker that cannot read the run's folder."""
        executor = self.execution.executor
        if executor is None or executor.shares_disk:
            return {}
        models = record.folder / MODELS
        return {
            f"{name}/{path.name}": path.read_bytes()
            for name in self._names(trial).values()
            for path in sorted((models / name).iterdir())
        }

    def _keep_models(self, record: Record, trained: _Trained) -> None:
        """Write the trained models into the run's folder, then what a validation token costs."""
        (record.folder / MODELS).mkdir(mode=0o700, exist_ok=True)
        for trial in range(self.study.plan.trials):
            for arm, name in self._names(trial).items():
                save_language_model(
                    record.folder / MODELS / name,
                    architecture=self.planted.architecture,
                    options=self.planted.options,
                    state=trained.states[int(self.study.plan.members_of(arm)[trial])],
                    vocabulary=self.planted.vocabulary,
                )
        record.update_execution(trained.how)
        record.put_array("validation_bits", trained.bits)

    def measure_trial(
        self,
        trial: int,
        uses: NDArray[np.int64],
        models: Path,
        context: JobContext,
    ) -> TrialExposure:
        """Measure one trial's canaries and controls in its members, and search for secrets.

        Args:
            trial: Which one.
            uses: How often each of its canaries was used.
            models: The folder with a folder for each of its models.
            context: Where it is measured.
        """
        measure, planted = self.study.measure, self.planted
        drawn = planted.sets[trial]
        audits, searches = {}, {}
        for arm, name in self._names(trial).items():
            folder = models / name
            audits[arm] = self._audit(folder, trial, context.progress)
            context.output.put_array(_costs_array(name), audits[arm].reference_costs)
            extraction = extract(
                load_language_model(
                    folder, device=self.execution.device, source=planted.encoder_input
                ),
                drawn.template,
                top=measure.top,
                max_nodes=measure.max_nodes,
                progress=context.progress,
            )
            searches[f"{arm}, trial {trial + 1}"] = TrialSearch.of(extraction, drawn)
        twin = audits.get("twin")
        return TrialExposure(drawn, uses, audits["planted"], twin, searches)

    def _audit(self, folder: Path, trial: int, progress: Progress | None) -> ExposureAudit:
        """Measure all secrets of a trial in one model, each given the source it is tested with."""
        drawn, measure = self.planted.sets[trial], self.study.measure
        given = self.planted.encoder_input_of
        secrets = [canary.secret for canary in (*drawn.canaries, *drawn.controls)]
        jobs = [(self.planted.encoder_input, secrets)]
        if given is not None:
            jobs = [(given(secret), [secret]) for secret in secrets]
        audits = [
            measure_each(
                load_language_model(folder, device=self.execution.device, source=source),
                drawn.template,
                secrets=job,
                # Sources of their own, references of their own: what is tested must not share luck.
                rng=generator(self.study.plan.seed, SPLIT, trial, *([at] if len(jobs) > 1 else [])),
                method=measure.method,  # type: ignore[arg-type]
                references=measure.references,
                max_nodes=measure.max_nodes,
                progress=progress,
            )
            for at, (source, job) in enumerate(jobs)
        ]
        return audits[0] if len(audits) == 1 else _joined(audits)


def _trial_file(record: Record, trial: int) -> Path:
    """Where the measurement of a trial is kept until the study is complete."""
    return record.folder / f"checkpoint-exposure-{trial + 1}.safetensors"


def _costs_array(model: str) -> str:
    """The array with the costs of the references in a model."""
    return f"{model}.reference_costs"


@dataclass(frozen=True, slots=True, eq=False)
class _Trained:
    """What a training leaves: each member's weights, what a validation token costs, and how."""

    states: list[dict[str, Any]]
    bits: NDArray[np.float64]
    how: dict[str, Any]


def _train(key: str, shared: PlantedRun, context: JobContext) -> _Trained:
    """Train all members of the study."""
    run = shared.on(context.execution)
    plan = run.study.plan
    fit, population = run.planted.train(
        plan,
        checkpoint=context.checkpoint(_CHECKPOINT, key),
        on_step=context.on_step("training", plan.steps),
    )
    states = [
        {name: tensor.cpu() for name, tensor in population.state_dict(member).items()}
        for member in range(plan.members)
    ]
    return _Trained(states, run.planted.validation_bits(population), how_trained("training", fit))


def _measure_trial(
    trial: int,
    uses: NDArray[np.int64],
    sent: Mapping[str, bytes],
    shared: PlantedRun,
    context: JobContext,
) -> TrialExposure:
    """Measure one trial, with the models of the run's folder or with those that were sent."""
    run = shared.on(context.execution)
    if context.folder is not None:
        return run.measure_trial(trial, uses, context.folder / MODELS, context)
    with tempfile.TemporaryDirectory(prefix="remnant-") as folder:
        for name, content in sent.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return run.measure_trial(trial, uses, Path(folder), context)


def _joined(audits: Sequence[ExposureAudit]) -> ExposureAudit:
    """Join audits of one secret each; references of different sources make no common histogram."""
    exact = all(audit.method == "exact" or audit.each[0].rank is not None for audit in audits)
    reason = "each secret was given its own source, and ranked exactly where that could be afforded"
    if len({audit.reason for audit in audits}) == 1:
        reason = audits[0].reason
    tolerances = [audit.tolerance for audit in audits if audit.tolerance is not None]
    return dataclasses.replace(
        audits[0],
        method="exact" if exact else "sampled",
        reason=reason,
        each=tuple(secret for audit in audits for secret in audit.each),
        extrapolated=None,
        nodes=sum(audit.nodes for audit in audits),
        tolerance=max(tolerances, default=None),
        complete=all(audit.complete for audit in audits),
    )
