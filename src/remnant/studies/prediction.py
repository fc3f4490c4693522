"""Which samples will a classifier memorise, and could one have known early? SHADOW, and looks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.canaries import MADE, mislabelled
from remnant.data import AuditData, Images
from remnant.errors import PlanError
from remnant.plans import ShadowPlan
from remnant.plans.fingerprint import fingerprint, lasting
from remnant.probes.one_pass import one_pass
from remnant.records import Record
from remnant.studies.classifiers import (
    Classifiers,
    check_training,
    fit_classifiers,
    load_data,
    maker_of,
    task_fields,
)
from remnant.studies.image_canaries import Planting, plant
from remnant.studies.machine import StepClock
from remnant.studies.prediction_evidence import (
    Evidence,
    keep_looks,
    kept_looks,
    target_members,
)
from remnant.studies.prediction_results import measure_prediction
from remnant.studies.prediction_settings import PlantedSettings, PredictSettings, TruthSettings
from remnant.studies.prediction_training import (
    epoch_of,
    look_at_targets,
    pool_recipe,
    pool_scores,
    shadow_members,
)
from remnant.studies.recording import carry_out
from remnant.studies.settings import Execution
from remnant.studies.shadow_pool import check_pool

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class PredictionStudy(Classifiers):
    """One question, whole: the plan and all that changes its numbers."""

    plan: ShadowPlan
    canaries: PlantedSettings = field(default_factory=PlantedSettings)
    predict: PredictSettings = field(default_factory=PredictSettings)
    truth: TruthSettings = field(default_factory=TruthSettings)

    def __post_init__(self) -> None:
        check_shadow_study(self.plan, self.predict)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, one group a part."""
        made: dict[str, Any] = {"question": "prediction", "plan": self.plan.to_dict()}
        for name in ("data", "canaries", "model", "training", "predict", "truth"):
            made[name] = dataclasses.asdict(getattr(self, name))
        return made

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        return fingerprint(lasting(self, self.to_dict()))


def check_shadow_study(plan: ShadowPlan, predict: PredictSettings) -> None:
    """Refuse a plan that cannot be judged.

    Raises:
        PlanError: Too few models for the truth or the targets, or no halves.
    """
    least = max(8, 2 * predict.targets)
    if plan.models < least or plan.models % 2:
        raise PlanError(
            f"plan.models={plan.models} is not an even number of at least {least}, which the "
            f"truth about {predict.targets} targets takes.",
            hint="Train more models, or look at fewer targets.",
        )
    if plan.fraction != 0.5:
        raise PlanError(
            f"plan.fraction={plan.fraction} is not 0.5: prediction is judged on pairs of halves.",
            hint="Leave fraction out.",
        )


def run_prediction(
    study: PredictionStudy, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Carry out the study in ``folder``: look at targets, fill the pool, measure.

    A run that was cut short goes on; the pool is a record of its own, in ``folder/pool``, and tops
    up where the plan asks for more models than it has.

    Raises:
        RemnantError: Anything the user can mend; the folder then holds nothing new.
    """
    data = load_data(study, execution)
    _check(study, data, execution)
    carry_out(
        study,
        folder,
        execution,
        data_fingerprint=data.fingerprint,
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        work=lambda record: _carry_out(study, data, execution, record, progress),
    )


def _carry_out(
    study: PredictionStudy,
    data: AuditData,
    execution: Execution,
    record: Record,
    progress: Progress | None,
) -> None:
    planting, kinds = _planted(study, data)
    looks = kept_looks(record)
    if looks is None:
        looks = look_at_targets(study, planting, execution, record, progress)
        keep_looks(record, looks)
    targets = target_members(study.plan, study.predict.targets)
    seen = study.plan.seen(examples=len(planting.store), members=targets)
    stop = looks.steps[looks.stopped(seen, drop=study.predict.drop)]
    record.put_result("task", task_fields(record.array("targets.test_accuracy"), data))
    pool = pool_scores(study, planting, execution, record, stop, progress)
    evidence = Evidence(
        looks=looks,
        targets=targets,
        pool=pool,
        epoch=epoch_of(study, planting),
        labels=planting.store.labels,
        kinds=kinds,
        what=f"{study.model.name} on {study.data.name}",
    )
    measure_prediction(record, study.plan, study.predict, study.truth, evidence)
    record.finish()


def _check(study: PredictionStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted, trained or looked at before anything is written."""
    check_training(study, data, execution)
    if execution.pool_folder is not None:
        check_pool(
            execution.pool_folder,
            study.plan,
            recipe=pool_recipe(study),
            data_fingerprint=data.fingerprint,
        )
    if study.canaries.mislabelled > len(data.pool):
        raise PlanError(
            f"canaries.mislabelled={study.canaries.mislabelled} are more than the {len(data.pool)} "
            f"examples in the pool of {study.data.name}.",
            hint="Plant fewer.",
        )
    shape = data.clean.images.shape[1:]
    examples = len(data.clean) + sum(study.canaries.counts.values())
    study.predict.steps(epoch=examples / 2 / study.plan.batch, last=study.plan.steps)
    module = maker_of(study, shape=shape, classes=data.classes)()
    few = torch.from_numpy(data.clean.images[:2])
    one_pass(module, few, torch.zeros(2, dtype=torch.int64), layers=study.predict.layers)


def _planted(study: PredictionStudy, data: AuditData) -> tuple[Planting, NDArray[np.str_]]:
    """The example store, canaries after clean examples, and what each example is."""
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
    return plant(data, sets), np.array(kinds)


def estimate_prediction(study: PredictionStudy, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    data = load_data(study, execution)
    _check(study, data, execution)
    planting, _ = _planted(study, data)
    block = min(execution.pool_block, study.plan.models)
    short = dataclasses.replace(study, plan=dataclasses.replace(study.plan, steps=12))
    clock = StepClock(execution.device)
    fit, _ = fit_classifiers(
        short, shadow_members(short, planting, range(block)), planting, execution, on_step=clock
    )
    members = study.plan.models + study.predict.targets
    seconds = clock.typical * study.plan.steps * members / block
    return {
        "members": members,
        "steps": study.plan.steps,
        "memory_mib": round((fit.memory + planting.store.images.nbytes) / 2**20, 1),
        "minutes": round(seconds / 60, 2),
    }
