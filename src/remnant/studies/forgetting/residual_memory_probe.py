"""Disturbs a study's models at the last lag, while they are in memory, and scores them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from remnant.canaries import MADE, by_loss, mislabelled, rows_in_share
from remnant.data import AuditData, Images
from remnant.errors import PlanError
from remnant.population import Population
from remnant.probes import SIGNALS, label_signals
from remnant.studies.forgetting.recipe import ForgettingStudy, controls_as_neighbours
from remnant.studies.residual_memory.disturbances import NEIGHBOURS, Bench, Plan, disturb
from remnant.studies.residual_memory.settings import HiddenSettings
from remnant.studies.shared.classifiers import CanaryLooks, maker_of
from remnant.studies.shared.image_canaries import (
    Planting,
    canary_count,
    columns,
    draw_canaries,
    share_of,
    standardised,
)
from remnant.studies.shared.settings import CanarySettings, Execution
from remnant.tasks.task import Lesson

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
    make_model = maker_of(study, execution, like=planting.store.images, classes=planting.classes)

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


@dataclass(frozen=True, slots=True, eq=False)
class Disturbed:
    """Signals (as in ``label_signals``) and test accuracy of disturbed models.

    Attributes:
        answers: Each member's signals and then its accuracy, means over noise draws, shape
            ``(disturbances, members, numbers)``.
    """

    answers: Floats

    @property
    def signals(self) -> Floats:
        """Shape ``(disturbances, members, signals, canaries)``."""
        return self.answers[..., :-1].reshape(*self.answers.shape[:2], len(SIGNALS), -1)

    @property
    def accuracy(self) -> Floats:
        """Accuracy on test examples, shape ``(disturbances, members)``."""
        return np.ascontiguousarray(self.answers[..., -1])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ClassifierBench(Bench):
    """Trained classifiers, and the images that they are probed on.

    Attributes:
        probed, test: Standardised like their training data.
    """

    probed: Images
    test: Images

    def ask(self, models: Any) -> Floats:
        """Return every member's signals and accuracy, packed: shape ``(members, numbers)``."""
        signals = label_signals(models, self.probed.images, self.probed.labels)
        right = label_signals(models, self.test.images, self.test.labels)
        accuracy = right[:, SIGNALS.index("correct")].mean(1)
        whole = torch.cat([signals.flatten(1), accuracy[:, None]], dim=1)
        answers: Floats = whole.cpu().numpy()
        return answers


def lesson_of(neighbours: Sequence[Images]) -> Lesson | None:
    """Return the neighbours of all trials, equally many and standardised, to be trained on."""
    if not neighbours:
        return None
    return Lesson(
        inputs=np.concatenate([near.images for near in neighbours]),
        targets=np.concatenate([near.labels for near in neighbours]),
        each=len(neighbours[0]),
    )


def draw_neighbours(
    plan: Plan,
    settings: CanarySettings,
    data: AuditData,
    pool_losses: Floats | None,
    canaries: Images,
    *,
    count: int,
) -> list[Images]:
    """Draw examples of the canaries' kind that are no canaries, ``count`` for each trial.

    They come from what the canaries left of the pool, each trial's by a draw of its own; those of
    different trials may overlap. Kinds chosen by loss come from what the canaries left of their
    share of the pool, and where this is too little from the examples that are next.

    Args:
        plan, settings, data, pool_losses: As the canaries were drawn.
        canaries: All canaries and controls, as drawn (not standardised).
        count: For each trial.

    Raises:
        PlanError: The pool has too few left.
    """
    used = {image.tobytes() for image in canaries.images}
    left = np.array(
        [row for row, image in enumerate(data.pool.images) if image.tobytes() not in used],
        dtype=np.int64,
    )
    if settings.kind not in MADE and len(left) < count:
        raise PlanError(
            f"hidden.neighbours={count} are more than the {len(left)} examples that the canaries "
            "leave of the pool.",
            hint="Ask for fewer neighbours, plant fewer canaries, or give the plan controls.",
        )
    kin = rows_in_share(len(data.pool), share_of(settings)) - (len(data.pool) - len(left))
    made = []
    for trial in range(plan.trials):
        rng = np.random.default_rng([plan.seed, NEIGHBOURS, trial])
        if settings.kind in MADE:
            shape = data.clean.images.shape[1:]
            make = MADE[settings.kind]
            made.append(Images(*make(shape, count=count, classes=data.classes, rng=rng)))
        elif settings.kind == "mislabelled":
            labels = data.pool.labels[left]
            rows, wrong = mislabelled(labels, count=count, classes=data.classes, rng=rng)
            made.append(Images(data.pool.images[left[rows]], wrong))
        else:
            losses = np.zeros(len(left)) if pool_losses is None else pool_losses[left]
            share = max(count, kin) / len(left)
            rows = by_loss(losses, count=count, level=settings.kind, rng=rng, share=share)
            made.append(data.pool.take(left[rows]))
    return made
