"""Chooses a study's image canaries and puts them into one example store with the clean data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from remnant.canaries import BY_LOSS, MADE, by_loss, mislabelled
from remnant.data import AuditData, Images
from remnant.plans import InjectPlan, PoisonPlan, ShadowPlan, StaggeredPlan
from remnant.population import Population
from remnant.probes import label_signals
from remnant.studies.shared.settings import CanarySettings, ImagePlan, TrainingSettings

_NEAR = 0.05  # of the images' spread: how far apart near-copies may be


@dataclass(frozen=True, slots=True, eq=False)
class Planting:
    """The example store and what is probed.

    Attributes:
        store: Clean examples, then canaries, then controls, standardised.
        examples: How many are clean.
        probed: The canaries and the controls.
        test: Held-out examples, standardised alike.
        classes: How many.
    """

    store: Images
    examples: int
    probed: Images
    test: Images
    classes: int


def draw_canaries(
    plan: ImagePlan,
    settings: CanarySettings,
    data: AuditData,
    pool_losses: NDArray[np.float64] | None,
) -> Images:
    """Draw canaries and controls alike, from the plan's seed.

    Which of them each trial plants, and which are controls, is random too.
    """
    count = canary_count(plan)
    rng = np.random.default_rng([plan.seed, 1])
    if settings.kind == "mislabelled":
        rows, labels = mislabelled(data.pool.labels, count=count, classes=data.classes, rng=rng)
        return Images(data.pool.images[rows], labels)
    if settings.kind in MADE:
        shape = data.clean.images.shape[1:]
        return Images(*MADE[settings.kind](shape, count=count, classes=data.classes, rng=rng))
    losses = np.zeros(len(data.pool)) if pool_losses is None else pool_losses
    rows = by_loss(losses, count=count, level=settings.kind, rng=rng, share=share_of(settings))
    return data.pool.take(rows)


def share_of(settings: CanarySettings) -> float:
    """The share of the pool that canaries are drawn from."""
    return 1.0 if settings.share is None else settings.share


def plant(data: AuditData, sets: Sequence[Images]) -> Planting:
    """Build the store: clean examples, then one set of canaries after another."""
    clean, test, probed = standardised(data, data.clean, data.test, joined(sets))
    return Planting(joined([clean, probed]), len(data.clean), probed, test, data.classes)


def joined(sets: Sequence[Images]) -> Images:
    """Return sets of images one after another."""
    return Images(
        np.concatenate([images.images for images in sets]),
        np.concatenate([images.labels for images in sets]),
    )


def standardised(data: AuditData, *sets: Images) -> list[Images]:
    """Return sets of images by the mean and the spread of the clean ones; tensors as they are."""
    if data.tensors:
        return list(sets)
    mean, spread = float(data.clean.images.mean()), float(data.clean.images.std())
    return [
        Images(((images.images - mean) / spread).astype(np.float32), images.labels)
        for images in sets
    ]


def canary_count(plan: ImagePlan) -> int:
    """Return how many canaries and controls the whole plan needs."""
    if isinstance(plan, StaggeredPlan):
        return plan.canaries
    sets = plan.trials if plan.fresh_canaries else 1
    return sets * (plan.canaries + plan.controls)


def columns(plan: InjectPlan | PoisonPlan, trial: int, *, controls: bool) -> slice:
    """Return where a trial's canaries (or controls) stand among all that are probed."""
    sets = plan.trials if plan.fresh_canaries else 1
    own = trial if plan.fresh_canaries else 0
    if controls:
        first = sets * plan.canaries + own * plan.controls
        return slice(first, first + plan.controls)
    return slice(own * plan.canaries, (own + 1) * plan.canaries)


def near_copies(images: NDArray[Any]) -> NDArray[np.int64]:
    """Return the pairs of images that are near-copies of one another, shape ``(pairs, 2)``.

    They are where the root mean square of their difference is at most a twentieth of the images'
    own spread. Each pair is there in both orders.
    """
    flat = images.reshape(len(images), -1).astype(np.float64)
    flat = flat - flat.mean()
    squares = (flat**2).sum(axis=1)
    distance = squares[:, None] + squares - 2.0 * flat @ flat.T
    near = distance <= (_NEAR * flat.std()) ** 2 * flat.shape[1]
    np.fill_diagonal(near, False)
    return np.argwhere(near).astype(np.int64)


def needs_judge(settings: CanarySettings) -> bool:
    """Whether canaries are chosen by the loss of a trained model."""
    return settings.kind in BY_LOSS


def judge_pool(
    make_model: Callable[[], nn.Module],
    plan: ImagePlan,
    settings: CanarySettings,
    training: TrainingSettings,
    data: AuditData,
    *,
    device: str,
    compared: bool = False,
) -> NDArray[np.float64]:
    """Train judges on the clean data and return their mean loss on each example of the pool."""
    clean, pool = standardised(data, data.clean, data.pool)
    judges = ShadowPlan(
        models=settings.judges,
        steps=settings.judge_steps,
        batch=plan.batch,
        seed=plan.seed + 1,
        fraction=0.9,
        precision=plan.precision,
    )
    population = Population(
        make_model,
        seeds=judges.seeds,
        device=device,
        precision=plan.precision,
        compared=compared,
    )
    population.fit(
        clean.images,
        clean.labels,
        judges.schedule(examples=len(data.clean)),
        optimizer=training.optimizer,
        clip=training.clip,
        learning_rate=training.rate(),
        **training.options,
    )
    signals = label_signals(population, pool.images, pool.labels)
    losses: NDArray[np.float64] = signals[:, 0].mean(0).cpu().numpy()
    return losses
