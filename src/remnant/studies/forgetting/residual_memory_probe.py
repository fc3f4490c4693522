"""A probe at the last lag that disturbs a study's models while they are in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import MADE
from remnant.data import AuditData, Images
from remnant.errors import PlanError
from remnant.population import Population
from remnant.studies.forgetting.disturbances import (
    ClassifierBench,
    Disturbed,
    draw_neighbours,
    lesson_of,
)
from remnant.studies.forgetting.recipe import ForgettingStudy, controls_as_neighbours
from remnant.studies.residual_memory.disturbances import Plan, disturb
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.classifiers import CanaryLooks, maker_of
from remnant.studies.shared.image_canaries import (
    Planting,
    canary_count,
    columns,
    draw_canaries,
    standardised,
)
from remnant.studies.shared.settings import CanarySettings, Execution

Floats = NDArray[np.float64]


def hidden_probe(
    study: ForgettingStudy,
    data: AuditData,
    losses: Floats | None,
    planting: Planting,
    question: CanaryLooks,
    execution: Execution,
) -> Callable[[Population], Floats]:
    """Return a probe that disturbs the study's members and scores their canaries.

    Args:
        study: Whose plan, canaries and settings they are.
        data, losses: As its canaries were drawn.
        planting: The population's store.
        question: Which members and canaries of the population are the study's.
        execution: Where to compute.

    Raises:
        PlanError: There are too few neighbours.
    """
    settings = study.hidden or HiddenSettings()
    probed = Images(
        planting.probed.images[question.canaries], planting.probed.labels[question.canaries]
    )
    lesson = lesson_of(_neighbours(study, settings, data, losses, probed))
    make_model = maker_of(
        study,
        execution,
        shape=planting.shape,
        classes=planting.classes,
        whole=planting.store.images.dtype.kind == "i",
    )

    def read(population: Population) -> Floats:
        members = range(len(population))[question.members]
        bench = ClassifierBench(
            make_model=make_model,
            states=[population.state_dict(member) for member in members],
            plan=study.plan,
            probed=probed,
            test=planting.test,
            device=execution.device,
            compared=study.model.maker is not None,
        )
        return disturb(bench, settings, study.training, lesson)

    return read


def kept_disturbed(name: str, answers: Floats) -> dict[str, Floats]:
    """Return the arrays that the record keeps of a probe, by name."""
    disturbed = Disturbed(answers)
    return {name: disturbed.signals, f"{name}_accuracy": disturbed.accuracy}


def check_neighbours(
    plan: Plan, canaries: CanarySettings, settings: HiddenSettings, data: AuditData
) -> None:
    """Refuse neighbours that the pool does not have, before anything is trained.

    Raises:
        PlanError: It has too few.
    """
    left = len(data.pool) - canary_count(plan)
    drawn = settings.relearn_steps and not controls_as_neighbours(plan, settings)
    if drawn and canaries.kind not in MADE and left < settings.neighbours:
        raise PlanError(
            f"hidden.neighbours={settings.neighbours} are more than the {left} examples that the "
            f"canaries leave of the pool, and than plan.controls={plan.controls}.",
            hint="Ask for fewer neighbours, plant fewer canaries, or give each trial its own "
            "canaries and more controls.",
        )


def _neighbours(
    study: ForgettingStudy,
    settings: HiddenSettings,
    data: AuditData,
    losses: Floats | None,
    probed: Images,
) -> list[Images]:
    """Return each trial's neighbours: its controls where they are enough, or fresh draws."""
    plan, count = study.plan, settings.neighbours
    if not settings.relearn_steps:
        return []
    if controls_as_neighbours(plan, settings):
        first = [columns(plan, trial, controls=True).start for trial in range(plan.trials)]
        return [probed.take(np.arange(start, start + count)) for start in first]
    canaries = draw_canaries(plan, study.canaries, data, losses)
    drawn = draw_neighbours(plan, study.canaries, data, losses, canaries, count=count)
    return standardised(data, *drawn)
