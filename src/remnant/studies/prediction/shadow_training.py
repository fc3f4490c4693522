"""The stages that prediction studies of images and of text share: targets, pool, measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.plans import ShadowPlan
from remnant.plans.fingerprint import lasting
from remnant.population import Checkpoint, Fit
from remnant.probes import MARGINS
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, JobOutput, Workload
from remnant.studies.jobs.running import run_jobs
from remnant.studies.prediction.early_looks import (
    Bools,
    EarlyLooks,
    Floats,
    Looks,
    keep_looks,
    kept_looks,
    risks_of,
    target_members,
    trace_steps,
)
from remnant.studies.prediction.measure import measure_prediction
from remnant.studies.prediction.shadow_pool import (
    Block,
    PoolScores,
    Scores,
    check_pool,
    fill_pool,
    read_pool,
)
from remnant.studies.shared.classifiers import Probe, how_trained
from remnant.studies.shared.result_parts import ClassifierTask
from remnant.studies.shared.settings import Execution

Progress = Callable[[str, int, int], None]
T = TypeVar("T", bound="ShadowTraining")
_DIRECTIONS = 3  # of the plan's streams: directions are the same for all targets and moments


@dataclass(frozen=True, eq=False, kw_only=True)
class ShadowTraining(ABC):
    """Trains the models of one prediction study and reads signals off them.

    Attributes:
        study: A ``PredictionStudy`` or a ``TextPredictionStudy``.
        fingerprint: Of everything that the models are trained on.
        labels, kinds: Label and kind of each training example, shape ``(n,)``.
        what: The task and the models in words, for the scope.
    """

    LEAST_BLOCK: ClassVar[int] = 0

    study: Any
    execution: Execution
    fingerprint: str
    labels: NDArray[Any]
    kinds: NDArray[np.str_]
    what: str

    @abstractmethod
    def fit(
        self,
        members: range | tuple[int, ...],
        *,
        plan: ShadowPlan | None = None,
        probes: Mapping[str, Probe] | None = None,
        checkpoint: Checkpoint | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> tuple[Fit, Any]:
        """Train these members of ``plan``, by default the study's; return fit and models."""

    @abstractmethod
    def signals(self, models: Any) -> Any:
        """Return loss, log-odds and logit gap of all examples, shape ``(members, 3, n)``."""

    @abstractmethod
    def first_losses(self, models: Any, own: Bools) -> Any:
        """Return the first member's losses, at least on the examples ``own`` of its training."""

    @abstractmethod
    def look(self, models: Any, seen: Bools) -> Iterator[tuple[Any, list[Tensor]]]:
        """Yield the signals ``(3, n)`` of each target, and its own examples' states by layer."""

    @abstractmethod
    def trained_targets(self, record: JobOutput, fit: Fit, models: Any, own: Bools) -> Floats:
        """Record the targets' accuracy; return the losses after each epoch, ``(epochs, n)``."""

    @abstractmethod
    def task(self, record: Record) -> ClassifierTask:
        """Return how useful the targets are."""

    @property
    def epoch(self) -> float:
        """Updates in an epoch of one model."""
        return float(len(self.labels) / 2 / self.study.plan.batch)

    @property
    def block(self) -> int:
        """How many models of the pool are trained together."""
        return max(self.LEAST_BLOCK, self.execution.pool_block)

    @property
    def targets(self) -> tuple[int, ...]:
        """The members that are examined early."""
        return target_members(self.study.predict.targets)

    @property
    def moments(self) -> tuple[int, ...]:
        """After how many updates the targets are examined."""
        steps: tuple[int, ...] = self.study.predict.steps(
            epoch=self.epoch, last=self.study.plan.steps
        )
        return steps

    def checkpoint(self, context: JobContext, part: str) -> Checkpoint | None:
        """Return where and how a part of the training is saved."""
        key = f"{self.study.fingerprint}/{self.fingerprint}/{part}"
        return context.checkpoint(_checkpoint_file(part), key)

    def on(self: T, execution: Execution) -> T:
        """Return the same training where a job runs."""
        return replace(self, execution=execution)


def run_shadow_study(training: ShadowTraining, record: Record, progress: Progress | None) -> None:
    """Examine the targets, fill the pool and measure; skip what the record holds already."""
    study = training.study
    seen = study.plan.seen(examples=len(training.labels), members=training.targets)
    looks = kept_looks(record)
    if looks is None:
        looks = _train_targets(training, record, progress)
    stop = looks.steps[looks.stopped(seen, drop=study.predict.drop)]
    put_parts(record, task=training.task(record))
    evidence = EarlyLooks(
        looks=looks,
        targets=training.targets,
        pool=_pool_scores(training, record, stop, progress),
        epoch=training.epoch,
        labels=training.labels,
        kinds=training.kinds,
        what=training.what,
    )
    measure_prediction(record, study.plan, study.predict, study.truth, evidence)
    record.finish()


def check_pool_folder(study: Any, execution: Execution, data_fingerprint: str) -> None:
    """Refuse a pool folder that holds another pool, before anything is trained.

    Raises:
        RecordError: It holds no pool, or one of other data, plan or recipe.
    """
    if execution.pool_folder is not None:
        recipe = _pool_recipe(study)
        check_pool(
            execution.pool_folder, study.plan, recipe=recipe, data_fingerprint=data_fingerprint
        )


def shadow_jobs(training: ShadowTraining, blocks: Sequence[Block]) -> list[Job]:
    """Return the job of the targets, and one for each block of the pool."""
    plan = training.study.plan
    targets = Job(
        name="targets",
        work=_look_at_targets,
        members=len(training.targets),
        steps=plan.steps,
        saved=_checkpoint_file("targets"),
    )
    return [targets, *(_block_job(plan, block, stop=plan.steps) for block in blocks)]


def _block_job(plan: ShadowPlan, block: Block, *, stop: int) -> Job:
    """Return the job of a block of the pool, scored after ``stop`` updates and at the end."""
    first, last = block
    return Job(
        name=f"models {first + 1} to {last} of {plan.models}",
        work=partial(_train_block, block, stop),
        members=last - first,
        steps=plan.steps,
        saved=_checkpoint_file(f"{first}-{last}"),
    )


def planned_blocks(training: ShadowTraining) -> list[Block]:
    """Return the blocks of a pool that is empty yet."""
    models, block = training.study.plan.models, training.block
    return [(first, min(first + block, models)) for first in range(0, models, block)]


def planned_jobs(training: ShadowTraining, seconds: float) -> list[dict[str, Any]]:
    """Return what an estimate says of the jobs, which take so many seconds together."""
    targets, *pool = shadow_jobs(training, planned_blocks(training))
    a_model = seconds / sum(job.members for job in (targets, *pool))
    return [
        planned_job(job, seconds=a_model * job.members, stage=0 if job is targets else 1)
        for job in (targets, *pool)
    ]


def _checkpoint_file(part: str) -> str:
    return f"checkpoint-{part}.safetensors"


def _train_targets(training: ShadowTraining, record: Record, progress: Progress | None) -> Looks:
    """Train the targets as a job, and keep what was seen of them."""
    made: list[Looks] = []

    def keep(_: Job, looks: Looks) -> None:
        keep_looks(record, looks)
        made.append(looks)

    targets, *pool = shadow_jobs(training, planned_blocks(training))
    run_jobs(
        [targets],
        shared=training,
        record=record,
        execution=training.execution,
        progress=progress,
        keep=keep,
        later=Workload.of(pool),
    )
    return made[0]


def _look_at_targets(shared: ShadowTraining, context: JobContext) -> Looks:
    """Train the targets, and examine them at every moment."""
    training = shared.on(context.execution)
    study, steps = training.study, training.moments
    seen = study.plan.seen(examples=len(training.labels), members=training.targets)
    trace = trace_steps(epoch=training.epoch, last=study.plan.steps)
    fit, models = training.fit(
        training.targets,
        probes={
            "looks": Probe(lambda models: _look_once(training, models, seen), steps),
            "trace": Probe(lambda models: training.first_losses(models, seen[0]), trace),
        },
        checkpoint=training.checkpoint(context, "targets"),
        on_step=context.on_step("targets", study.plan.steps),
    )
    losses = training.trained_targets(context.output, fit, models, seen[0])
    context.output.update_execution(how_trained("targets", fit))
    looks = fit.probes["looks"]  # as ``_look_once`` returns them, after an axis of moments
    looks[0, 1:] = np.nan
    return Looks(
        steps=steps,
        layers=study.predict.layers,
        signals=looks[:, 0],
        psmi=looks[:, 1:, :, 0],
        mahalanobis=looks[:, 1:, :, 1],
        smi=looks[:, 1:, :, 2, 0],
        trace=losses,
    )


def _look_once(training: ShadowTraining, models: Any, seen: Bools) -> Floats:
    """Examine all targets at one moment.

    Returns:
        Shape ``(1 + layers, targets, 3, n)``: first the signals; then by layer PSMI's risk, the
        Mahalanobis distance and SMI. NaN where a target was not trained on the example.
    """
    predict, labels = training.study.predict, training.labels
    looks = np.empty((1 + len(predict.layers), len(seen), len(MARGINS), seen.shape[1]))
    for target, (signals, states) in enumerate(training.look(models, seen)):
        looks[0, target] = signals
        for place, hidden in enumerate(states, start=1):
            rng = np.random.default_rng([training.study.plan.seed, _DIRECTIONS])
            psmi, smi, distance = risks_of(
                hidden, labels, seen[target], predict, rng, far=target == 0
            )
            looks[place, target] = psmi, distance, np.full(len(labels), smi)
    return looks


def _pool_recipe(study: Any) -> dict[str, Any]:
    """Return what changes the scores of a pool and is known before training, besides the plan."""
    plain = lasting(study, study.to_dict())
    names = [name for name in study.SECTIONS if name not in ("predict", "truth")]
    return {name: plain[name] for name in names if name in plain}


def _pool_scores(
    training: ShadowTraining, record: Record, stop: int, progress: Progress | None
) -> PoolScores:
    """Fill the pool with all models' signals at the stop and at the end, and read it."""
    plan, execution = training.study.plan, training.execution
    known: dict[str, Any] = {
        "recipe": {**_pool_recipe(training.study), "scored": [stop, plan.steps]},
        "data_fingerprint": record.data_fingerprint,
    }
    folder = execution.pool_folder or record.folder / "pool"

    def train(blocks: Sequence[Block], pool: Record, keep: Callable[[Block, Scores], None]) -> None:
        jobs = {_block_job(plan, block, stop=stop): block for block in blocks}
        run_jobs(
            list(jobs),
            shared=training,
            record=pool,
            execution=execution,
            progress=progress,
            keep=lambda job, scores: keep(jobs[job], scores),
            whole=Workload.of(shadow_jobs(training, planned_blocks(training))),
            study=record,
        )

    fill_pool(folder, plan, **known, train=train, execution=execution, block=training.block)
    return read_pool(folder, plan, **known)


def _train_block(block: Block, stop: int, shared: ShadowTraining, context: JobContext) -> Floats:
    """Train a block of the pool; return its signals at the stop and at the end."""
    training, (first, last) = shared.on(context.execution), block
    plan = training.study.plan
    fit, _ = training.fit(
        range(first, last),
        probes={"signals": Probe(training.signals, tuple(sorted({stop, plan.steps})))},
        checkpoint=training.checkpoint(context, f"{first}-{last}"),
        on_step=context.on_step(f"models {first + 1} to {last} of {plan.models}", plan.steps),
    )
    signals = fit.probes["signals"]
    return np.concatenate([signals[0], signals[-1]], axis=1)
