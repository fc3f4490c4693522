"""Which samples will models memorise, and could one have known early? SHADOW, and early looks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from remnant.plans import ShadowPlan
from remnant.plans.plan import lasting
from remnant.probes import MARGINS
from remnant.progress import Progress
from remnant.records import Record
from remnant.records.typed import put_parts
from remnant.studies.jobs.estimating import planned_job
from remnant.studies.jobs.execution import Job, JobContext, Workload, run_jobs
from remnant.studies.pipeline import Prepared, StepClock
from remnant.studies.prediction.early_looks import (
    Bools,
    EarlyLooks,
    Floats,
    Looks,
    keep_looks,
    kept_looks,
    risks_of,
    trace_steps,
)
from remnant.studies.prediction.measure import measure_prediction
from remnant.studies.prediction.recipe import PredictionStudy
from remnant.studies.prediction.shadow_pool import (
    Block,
    PoolScores,
    Scores,
    check_pool,
    fill_pool,
    read_pool,
)
from remnant.studies.prediction.task import PredictionTask, checkpoint_file
from remnant.studies.prediction.text_recipe import TextPredictionStudy
from remnant.studies.shared.classifiers import Probe, how_trained
from remnant.studies.shared.settings import Execution

_DIRECTIONS = 3  # of the plan's streams: directions are the same for all targets and moments


def prepare(
    study: PredictionStudy | TextPredictionStudy, execution: Execution, progress: Progress | None
) -> Prepared:
    """Load and plant; the work looks at targets, fills the pool and measures.

    The pool is a record of its own, in ``folder/pool``, and tops up where the plan asks for more
    models than it has. No text of a question is written down.
    """
    task = _loaded(study, execution)
    return Prepared(
        data_fingerprint=task.fingerprint,
        seeds=task.seeds,
        origins=[task.origin],
        work=lambda record: _work(task, record, progress),
    )


def estimate(study: PredictionStudy | TextPredictionStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real training, write nothing, and estimate the whole."""
    task = _loaded(study, execution)
    models, targets = study.plan.models, study.predict.targets
    block = min(task.block, models)
    clock = StepClock(execution.device)
    short = dataclasses.replace(study.plan, steps=task.TIMED_STEPS)
    fit, population = task.fit(range(block), plan=short, on_step=clock)
    seconds = clock.typical * study.plan.steps * (models + targets) / block
    reading = task.reading_seconds(population, clock)
    seconds += reading * (2 * models + len(task.moments) * targets) / block
    return {
        "members": models + targets,
        "steps": study.plan.steps,
        "memory_mib": round(task.memory(fit) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "groups": _planned_jobs(task, seconds),
    }


def _loaded(study: PredictionStudy | TextPredictionStudy, execution: Execution) -> PredictionTask:
    """Load and plant; refuse what cannot be trained or looked at before anything is written."""
    task: PredictionTask
    if isinstance(study, TextPredictionStudy):
        from remnant.studies.prediction import multiple_choice

        task = multiple_choice.prepare(study, execution)
    else:
        from remnant.studies.prediction import images

        task = images.prepare(study, execution)
    if execution.pool_folder is not None:
        check_pool(
            execution.pool_folder,
            study.plan,
            recipe=_pool_recipe(study),
            data_fingerprint=task.fingerprint,
        )
    study.predict.steps(epoch=task.epoch, last=study.plan.steps)
    study.plan.seen(examples=len(task.labels), members=[0])
    return task


def _work(task: PredictionTask, record: Record, progress: Progress | None) -> None:
    """Examine the targets, fill the pool and measure; skip what the record holds already."""
    study = task.study
    seen = study.plan.seen(examples=len(task.labels), members=task.targets)
    looks = kept_looks(record)
    if looks is None:
        looks = _train_targets(task, record, progress)
    stop = looks.steps[looks.stopped(seen, drop=study.predict.drop)]
    put_parts(record, task=task.useful(record))
    evidence = EarlyLooks(
        looks=looks,
        targets=task.targets,
        pool=_pool_scores(task, record, stop, progress),
        epoch=task.epoch,
        labels=task.labels,
        kinds=task.kinds,
        what=task.what,
    )
    measure_prediction(record, study.plan, study.predict, study.truth, evidence)


def _shadow_jobs(task: PredictionTask, blocks: Sequence[Block]) -> list[Job]:
    """Return the job of the targets, and one for each block of the pool."""
    plan = task.study.plan
    targets = Job(
        name="targets",
        work=_look_at_targets,
        members=len(task.targets),
        steps=plan.steps,
        saved=checkpoint_file("targets"),
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
        saved=checkpoint_file(f"{first}-{last}"),
    )


def _planned_blocks(task: PredictionTask) -> list[Block]:
    """Return the blocks of a pool that is empty yet."""
    models, block = task.study.plan.models, task.block
    return [(first, min(first + block, models)) for first in range(0, models, block)]


def _planned_jobs(task: PredictionTask, seconds: float) -> list[dict[str, Any]]:
    """Return what an estimate says of the jobs, which take so many seconds together."""
    targets, *pool = _shadow_jobs(task, _planned_blocks(task))
    a_model = seconds / sum(job.members for job in (targets, *pool))
    return [
        planned_job(job, seconds=a_model * job.members, stage=0 if job is targets else 1)
        for job in (targets, *pool)
    ]


def _train_targets(task: PredictionTask, record: Record, progress: Progress | None) -> Looks:
    """Train the targets as a job, and keep what was seen of them."""
    made: list[Looks] = []

    def keep(_: Job, looks: Looks) -> None:
        keep_looks(record, looks)
        made.append(looks)

    targets, *pool = _shadow_jobs(task, _planned_blocks(task))
    run_jobs(
        [targets],
        shared=task,
        record=record,
        execution=task.execution,
        progress=progress,
        keep=keep,
        later=Workload.of(pool),
    )
    return made[0]


def _look_at_targets(shared: PredictionTask, context: JobContext) -> Looks:
    """Train the targets, and examine them at every moment."""
    task = shared.on(context.execution)
    study, steps = task.study, task.moments
    seen = study.plan.seen(examples=len(task.labels), members=task.targets)
    trace = trace_steps(epoch=task.epoch, last=study.plan.steps)
    fit, models = task.fit(
        task.targets,
        probes={
            "looks": Probe(lambda models: _look_once(task, models, seen), steps),
            "trace": Probe(lambda models: task.first_losses(models, seen[0]), trace),
        },
        checkpoint=task.checkpoint(context, "targets"),
        on_step=context.on_step("targets", study.plan.steps),
    )
    losses = task.trained_targets(context.output, fit, models, seen[0])
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


def _look_once(task: PredictionTask, models: Any, seen: Bools) -> Floats:
    """Examine all targets at one moment.

    Returns:
        Shape ``(1 + layers, targets, 3, n)``: first the signals; then by layer PSMI's risk, the
        Mahalanobis distance and SMI. NaN where a target was not trained on the example.
    """
    predict, labels = task.study.predict, task.labels
    looks = np.empty((1 + len(predict.layers), len(seen), len(MARGINS), seen.shape[1]))
    for target, (signals, states) in enumerate(task.look(models, seen)):
        looks[0, target] = signals
        for place, hidden in enumerate(states, start=1):
            rng = np.random.default_rng([task.study.plan.seed, _DIRECTIONS])
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
    task: PredictionTask, record: Record, stop: int, progress: Progress | None
) -> PoolScores:
    """Fill the pool with all models' signals at the stop and at the end, and read it."""
    plan, execution = task.study.plan, task.execution
    known: dict[str, Any] = {
        "recipe": {**_pool_recipe(task.study), "scored": [stop, plan.steps]},
        "data_fingerprint": record.data_fingerprint,
    }
    folder = execution.pool_folder or record.folder / "pool"

    def train(blocks: Sequence[Block], pool: Record, keep: Callable[[Block, Scores], None]) -> None:
        jobs = {_block_job(plan, block, stop=stop): block for block in blocks}
        run_jobs(
            list(jobs),
            shared=task,
            record=pool,
            execution=execution,
            progress=progress,
            keep=lambda job, scores: keep(jobs[job], scores),
            whole=Workload.of(_shadow_jobs(task, _planned_blocks(task))),
            study=record,
        )

    fill_pool(folder, plan, **known, train=train, execution=execution, block=task.block)
    return read_pool(folder, plan, **known)


def _train_block(block: Block, stop: int, shared: PredictionTask, context: JobContext) -> Floats:
    """Train a block of the pool; return its signals at the stop and at the end."""
    task, (first, last) = shared.on(context.execution), block
    plan = task.study.plan
    fit, _ = task.fit(
        range(first, last),
        probes={"signals": Probe(task.signals, tuple(sorted({stop, plan.steps})))},
        checkpoint=task.checkpoint(context, f"{first}-{last}"),
        on_step=context.on_step(f"models {first + 1} to {last} of {plan.models}", plan.steps),
    )
    signals = fit.probes["signals"]
    return np.concatenate([signals[0], signals[-1]], axis=1)
