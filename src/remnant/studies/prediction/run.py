"""Which samples will a classifier memorise, and could one have known early? SHADOW, and looks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from remnant.canaries import MADE, mislabelled
from remnant.data import AuditData, Images
from remnant.probes.one_pass import one_pass
from remnant.records import Record
from remnant.studies.prediction.recipe import PredictionStudy
from remnant.studies.prediction.shadow_training import (
    Progress,
    check_pool_folder,
    planned_jobs,
    run_shadow_study,
)
from remnant.studies.prediction.training import ImageTraining
from remnant.studies.shared.classifiers import (
    check_made,
    check_pool,
    check_training,
    load_data,
    maker_of,
)
from remnant.studies.shared.image_canaries import plant
from remnant.studies.shared.machine import StepClock
from remnant.studies.shared.recording import run_on_images
from remnant.studies.shared.settings import Execution


def run_prediction(
    study: PredictionStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Run the study in ``folder``: look at targets, fill the pool, measure.

    Resumes an interrupted run; the pool is a record of its own, in ``folder/pool``, and tops
    up where the plan asks for more models than it has.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    run_on_images(study, folder, execution, progress, check=_check, work=_work)


def _work(
    study: PredictionStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    run_shadow_study(_training(study, data, execution), record, progress)


def _check(study: PredictionStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted, trained or looked at before anything is written."""
    check_training(study, data, execution)
    check_pool_folder(study, execution, data.fingerprint)
    check_made(data, [kind for kind, count in study.canaries.counts.items() if count])
    check_pool(
        study.data,
        data,
        study.canaries.mislabelled,
        needs=f"canaries.mislabelled={study.canaries.mislabelled} are needed",
        hint="Plant fewer",
    )
    shape = data.clean.images.shape[1:]
    examples = len(data.clean) + sum(study.canaries.counts.values())
    study.predict.steps(epoch=examples / 2 / study.plan.batch, last=study.plan.steps)
    module = maker_of(study, execution, shape=shape, classes=data.classes)()
    few = torch.from_numpy(data.clean.images[:2])
    one_pass(module, few, torch.zeros(2, dtype=torch.int64), layers=study.predict.layers)


def _training(study: PredictionStudy, data: AuditData, execution: Execution) -> ImageTraining:
    """Add the canaries to the clean examples, and say how models are trained on them."""
    rng = np.random.default_rng([study.plan.seed, 1])
    shape = data.clean.images.shape[1:]
    sets, kinds = [data.clean.take(np.arange(0))], ["clean"] * len(data.clean)
    for kind, count in study.canaries.counts.items():
        if count == 0:
            continue
        if kind in MADE:
            sets.append(Images(*MADE[kind](shape, count=count, classes=data.classes, rng=rng)))
        else:
            rows, wrong = mislabelled(data.pool.labels, count=count, classes=data.classes, rng=rng)
            sets.append(Images(data.pool.images[rows], wrong))
        kinds += [kind] * count
    planting = plant(data, sets)
    return ImageTraining(
        study=study,
        execution=execution,
        fingerprint=data.fingerprint,
        labels=planting.store.labels,
        kinds=np.array(kinds),
        what=f"{study.model.title} on {study.data.title}",
        data=data,
        planting=planting,
    )


def estimate_prediction(study: PredictionStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real training, write nothing, and estimate the whole."""
    data = load_data(study, execution)
    _check(study, data, execution)
    training = _training(study, data, execution)
    block = min(training.block, study.plan.models)
    clock = StepClock(execution.device)
    short = dataclasses.replace(study.plan, steps=12)
    fit, _ = training.fit(range(block), plan=short, on_step=clock)
    members = study.plan.models + study.predict.targets
    seconds = clock.typical * study.plan.steps * members / block
    return {
        "members": members,
        "steps": study.plan.steps,
        "memory_mib": round((fit.memory + training.planting.store.images.nbytes) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
        "groups": planned_jobs(training, seconds),
    }
