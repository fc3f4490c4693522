"""What the studies of image classifiers share: data, canaries, models and their training."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data import AuditData, load_images
from remnant.errors import InvalidInput, PlanError
from remnant.models import model_maker
from remnant.population import Checkpoint, Fit, Population
from remnant.population.optimizers import make_optimizer
from remnant.probes import label_signals
from remnant.records import Record
from remnant.studies.image_canaries import (
    ImagePlan,
    Planting,
    canary_count,
    judge_pool,
    needs_judge,
    plant,
)
from remnant.studies.settings import (
    CanarySettings,
    DataSettings,
    Execution,
    ModelSettings,
    TrainingSettings,
)


@dataclass(frozen=True, kw_only=True)
class ClassifierStudy:
    """A study that plants images and trains classifiers: what all of them have."""

    plan: ImagePlan
    data: DataSettings = field(default_factory=DataSettings)
    canaries: CanarySettings = field(default_factory=CanarySettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)


def load_data(study: ClassifierStudy, execution: Execution) -> AuditData:
    """Return the study's data, cut into clean, pool and test."""
    return load_images(
        study.data.name,
        folder=execution.data_folder,
        examples=study.data.examples,
        seed=study.data.seed,
    )


def check_classifier(study: ClassifierStudy, data: AuditData, execution: Execution) -> None:
    """Refuse what cannot be planted or trained before anything is written."""
    Population(_maker(study, data), seeds=[0], device=execution.device)
    make_optimizer(study.training.optimizer, members=1, options=study.training.options)
    count = canary_count(study.plan)
    if study.canaries.kind != "odd" and count > len(data.pool):
        raise PlanError(
            f"The plan needs {count} canaries and controls, and the pool of {study.data.name} "
            f"holds {len(data.pool)} examples.",
            hint="Plant fewer, or share them among the trials (fresh_canaries = false).",
        )


def plant_canaries(
    study: ClassifierStudy, data: AuditData, execution: Execution, record: Record
) -> Planting:
    """Build the example store; what judges said of the pool is kept in the record."""
    losses = None
    if needs_judge(study.canaries):
        if "pool_losses" not in record.array_names():
            record.put_array("pool_losses", _judged(study, data, execution, study.canaries))
        losses = record.array("pool_losses")
    return plant(study.plan, study.canaries, data, losses)


def quick_planting(study: ClassifierStudy, data: AuditData, execution: Execution) -> Planting:
    """Build a store of the same size without training judges to the end: to time things on."""
    losses = None
    if needs_judge(study.canaries):
        quick = dataclasses.replace(study.canaries, judge_steps=1)
        losses = _judged(study, data, execution, quick)
    return plant(study.plan, study.canaries, data, losses)


def fit_classifiers(
    study: ClassifierStudy,
    plan: ImagePlan,
    planting: Planting,
    execution: Execution,
    *,
    probe_steps: tuple[int, ...] = (),
    checkpoint: Checkpoint | None = None,
    on_step: Callable[[int], None] | None = None,
) -> tuple[Fit, Population]:
    """Train the plan's members, and ask them about the canaries at ``probe_steps``."""
    population = Population(
        model_maker(
            study.model.name, shape=planting.shape, classes=planting.classes, **study.model.options
        ),
        seeds=plan.seeds,
        dropout_seeds=plan.dropout_seeds,
        device=execution.device,
        precision=plan.precision,
    )
    probed = planting.probed
    fit = population.fit(
        planting.store.images,
        planting.store.labels,
        plan.schedule(examples=planting.examples),
        optimizer=study.training.optimizer,
        learning_rate=study.training.rate(),
        clip=study.training.clip,
        probes={"signals": lambda models: label_signals(models, probed.images, probed.labels)},
        probe_steps=probe_steps,
        checkpoint=checkpoint,
        compiled=execution.compiled,
        on_step=on_step,
        **study.training.options,
    )
    return fit, population


def keep_training(
    record: Record, name: str, fit: Fit, population: Population, planting: Planting
) -> None:
    """Put what the models do on test examples, and how they were trained, into the record.

    Raises:
        InvalidInput: Training diverged.
    """
    if not bool((abs(fit.probes["signals"]) < 1e30).all()):
        raise InvalidInput(
            f"Training diverged: a member's logits are not finite in part {name!r}.",
            hint="Lower training.options.lr, or clip the gradient.",
        )
    found = label_signals(population, planting.test.images, planting.test.labels)[:, 2]
    record.put_array(f"{name}.test_accuracy", found.mean(1).cpu().numpy())
    record.update_execution(
        {
            f"{name}.backend": f"{fit.backend} ({fit.reason})",
            f"{name}.split": fit.split,
            f"{name}.precision": fit.precision,
        }
    )


def task_fields(test_accuracy: NDArray[np.float64], planting: Planting) -> dict[str, Any]:
    """Return how well the models do what they are for."""
    return {
        "test_accuracy": float(test_accuracy.mean()),
        "test_examples": len(planting.test),
        "majority": float(np.bincount(planting.test.labels).max() / len(planting.test)),
    }


def _maker(study: ClassifierStudy, data: AuditData) -> Any:
    shape = data.clean.images.shape[1:]
    return model_maker(study.model.name, shape=shape, classes=data.classes, **study.model.options)


def _judged(
    study: ClassifierStudy, data: AuditData, execution: Execution, settings: CanarySettings
) -> NDArray[np.float64]:
    return judge_pool(
        _maker(study, data), study.plan, settings, study.training, data, device=execution.device
    )
