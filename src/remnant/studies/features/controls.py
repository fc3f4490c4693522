"""The controls of a PASS: did the model learn its task, can the patch be found, is a variant of it?

An audit that finds nothing has other explanations than a model that remembers nothing. The model
may not have learnt its task: an untrained one keeps any limit. The gate may be blind to this patch:
a copy of the model is trained on a few images with the patch, and the gate must find it there. And
the patch may have looked different in training: variants of it are tested on the model, and none
may be found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from remnant.canaries.patches import patch_variants
from remnant.errors import InvalidInput
from remnant.measures import clopper_pearson, m_score
from remnant.measures.features.feature_score import nulls_needed
from remnant.measures.statistics.holm import holm
from remnant.studies.features.audit_result import PatchControl, PatchVariantScore, TaskCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.measures import MScore
    from remnant.studies.features.audit_inputs import (
        AuditInputs,
        Classifier,
        LabelledImages,
        Settings,
    )

LEVEL = 0.01
DRAWS = 1999
NO_LABELS = (
    "It was not tested whether the model learnt its task, and an untrained model keeps any limit "
    "on M. Give labelled images of several classes: an .npz file with images and labels, as "
    "--images or as --task-images."
)
IMAGES = 100
"""Copies and variants are tested on at most as many."""
STAMPED = 16
"""A copy is trained on at most as many images with the patch, and as many of the others."""
LOOKS = (1, 2, 4, 8, 16, 32, 64)
"""Passes after which the training of a copy ends, if it is sure of its images with the patch."""
SURE = 0.9
"""The probability that it then gives their label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskControl:
    """How well the model names the classes of labelled images.

    Attributes:
        images: How many labelled images.
        right: How many of them the model gives their label.
        low: One-sided lower bound of that share, at 99 % confidence.
        majority: Share of the commonest label among them.
        classes: How many classes the model has.
        p_value: Share of renamings of the model's classes under which at least as many images
            would be right.
        out_of_range: The largest label, where the model has no such class; else None.
    """

    images: int
    right: int
    low: float
    majority: float
    classes: int
    p_value: float
    out_of_range: int | None = None

    @property
    def needed(self) -> float:
        """The share that ``low`` must be above."""
        if 1.0 / math.factorial(self.classes) <= LEVEL:
            return self.majority
        return 0.5 * (1.0 + self.majority)

    @property
    def measured(self) -> str:
        """What was measured, as the beginning of a sentence."""
        return f"The model gives {self.right} of {self.images} labelled images their label"

    @property
    def reason(self) -> str:
        """Why this is no evidence that the model learnt its task; empty where it is."""
        if self.out_of_range is not None:
            return (
                f"It was not tested whether the model learnt its task: labels reach "
                f"{self.out_of_range}, and the model has {self.classes} classes, from 0. Give "
                "images with labels of its own classes as --task-images."
            )
        advice = "Give more images of each class as --task-images, or check the model."
        if self.low <= self.needed:
            return (
                "There is no evidence that the model learnt its task, and an untrained model keeps "
                f"any limit on M. {self.measured} (lower bound {self.low:.1%}); it takes more than "
                f"{self.needed:.1%}. {advice}"
            )
        if self.p_value > LEVEL and 1.0 / math.factorial(self.classes) <= LEVEL:
            return (
                "There is no evidence that the model learnt its task, and an untrained model keeps "
                f"any limit on M. {self.measured}, and so do {self.p_value:.1%} of models with the "
                f"same answers under other class names; it takes {LEVEL:.0%} or less. {advice}"
            )
        return ""

    @property
    def check(self) -> TaskCheck:
        """What a record keeps of it."""
        kept = {name: getattr(self, name) for name in ("images", "right", "low", "majority")}
        return TaskCheck(**kept, p_value=self.p_value, learnt=not self.reason)


def task_control(
    ask: Callable[[Tensor], Tensor],
    pictures: LabelledImages,
    *,
    batch: int,
    rng: np.random.Generator,
) -> TaskControl:
    r"""Test whether a model gives labelled images their labels more often than an untrained one.

    An untrained network may give different answers to images of different classes, so that its
    accuracy differs from chance by more than a binomial test allows. But which of its outputs
    answers to which class is arbitrary. The test therefore renames the model's classes at random:

        p = (1 + #{accuracy under renaming ≥ accuracy}) / (1 + renamings)

    With five classes or fewer all renamings are counted. With four or fewer there are less than a
    hundred, and the lower bound of the accuracy must reach half way from the share of the commonest
    label to 1 instead. Otherwise it must be above that share.

    Args:
        ask: The model: images to probabilities.
        pictures: Images with labels.
        batch: Images at once.
        rng: Draws renamings.

    Guarantees:
        * A model of five classes or more whose outputs are exchangeable, as those of an untrained
          network are, is taken for a trained one with a probability of at most 1 %.
    """
    labels = np.asarray(pictures.labels)
    answers = [ask(part) for part in pictures.images.split(batch)]
    classes = int(answers[0].shape[1])
    named = np.concatenate([part.argmax(dim=1).cpu().numpy() for part in answers])
    right = int(np.sum(named == labels))
    out_of_range = int(labels.max()) if labels.max() >= classes else None
    counts = np.zeros((classes, max(classes, int(labels.max()) + 1)), dtype=np.int64)
    np.add.at(counts, (named, labels), 1)
    low, _ = clopper_pearson(right, len(labels), confidence=1.0 - 2.0 * LEVEL)
    return TaskControl(
        images=len(labels),
        right=right,
        low=float(low),
        majority=float(counts.sum(axis=0).max() / len(labels)),
        classes=classes,
        p_value=_p_value(counts, right, rng),
        out_of_range=out_of_range,
    )


def _p_value(counts: NDArray[np.int64], right: int, rng: np.random.Generator) -> float:
    classes = len(counts)
    every = math.factorial(classes) <= 120
    renamed: Iterator[NDArray[np.int64]]
    if every:
        renamed = (np.array(order) for order in itertools.permutations(range(classes)))
    else:
        renamed = (rng.permutation(classes) for _ in range(DRAWS))
    each = [int(counts[np.arange(classes), names].sum()) >= right for names in renamed]
    return sum(each) / len(each) if every else (1 + sum(each)) / (1 + len(each))


def patch_control(
    inputs: AuditInputs,
    patch: Patch,
    nulls: Patches | None,
    settings: Settings,
    progress: Callable[[int, int], None],
) -> PatchControl:
    """Test copies of the model that were trained on the patch, and the model on variants of it.

    Args:
        inputs: The model, images, and labelled images to train copies on.
        patch: The patch in question.
        nulls: Patches that were never planted; None for shuffled pixels.
        settings: How the patch was scored, with a limit.
        progress: Called with how many tests are done, and how many there are at most.
    """
    limit = math.inf if settings.limit is None else settings.limit
    images = inputs.images[_order(len(inputs.images), settings)[:IMAGES]]
    variants = patch_variants(patch, tuple(images.shape[1:]))
    total = 1 + len(variants)

    def score(ask: Classifier, one: Patch, others: Patches | None, which: int) -> MScore:
        progress(which, total)
        return m_score(
            ask,
            images,
            one,
            rng=np.random.default_rng([settings.seed, 6, which]),
            nulls=_nulls(len(variants), settings),
            null_patches=others,
            control=settings.control,  # type: ignore[arg-type]
            batch=settings.batch,
            confidence=settings.confidence,
        )

    made: dict[str, Any] = _untested(inputs)
    if not made:
        try:
            copy, trained, passes = _copy(inputs, patch, settings)
            p_value = score(copy, patch, nulls, 0).p_value
            made = {"trained": trained, "passes": passes, "p_value": p_value}
        except (MemoryError, RuntimeError, InvalidInput) as fault:
            made = {"untested": _fault(fault)}
    scores = [
        score(inputs.model, one.patch, None if nulls is None else one.of(nulls), 1 + at)
        for at, one in enumerate(variants)
    ]
    corrected = holm([each.p_value for each in scores]).tolist() if scores else []
    found = tuple(
        PatchVariantScore(
            name=variant.name,
            value=each.value,
            p_value=each.p_value,
            contrary=bool(
                adjusted <= settings.significance
                or (each.p_value <= settings.significance and each.value >= limit)
            ),
        )
        for variant, each, adjusted in zip(variants, scores, corrected, strict=True)
    )
    progress(total, total)
    return PatchControl(**made, level=settings.significance, variants=found)


def images_of_control(patch: Patch, images: Tensor, settings: Settings) -> int:
    """How many images the model and its copies answer for, at most."""
    variants = len(patch_variants(patch, tuple(images.shape[1:])))
    return (1 + variants) * min(len(images), IMAGES) * (_nulls(variants, settings) + 3)


def _nulls(variants: int, settings: Settings) -> int:
    """As many that the p-value of a variant can be significant after Holm's correction."""
    return max(settings.nulls, nulls_needed(settings.significance, tests=variants))


def _untested(inputs: AuditInputs) -> dict[str, Any]:
    if inputs.copies is None:
        return {"untested": inputs.untrainable}
    if inputs.task is None or len(inputs.task.images) < 12:
        return {"untested": "there are too few labelled images to train a copy on"}
    return {}


def _copy(inputs: AuditInputs, patch: Patch, settings: Settings) -> tuple[Classifier, int, int]:
    """Train a copy on the patch; return it, on how many images, and how often.

    It is trained on images with the patch under one label, and on as many without it and as many
    with its pixels in another order under their own labels. The label is the one in question, or
    else that which the model gives least often to images with the patch. Training ends when the
    copy is sure of this label for all of them.
    """
    task: Any = inputs.task
    rows = _order(len(task.images), settings)[-3 * STAMPED :]
    count = len(rows) // 3
    rows = rows[: 3 * count]
    images = task.images[rows].clone()
    labels = torch.from_numpy(np.asarray(task.labels))[rows].to(images.device)
    others = patch.shuffles(np.random.default_rng([settings.seed, 8]), count)
    images[::3] = patch.stamp(images[::3])
    images[1::3] = others.stamp(images[1::3])
    label = settings.label
    if label is None:
        answers = inputs.model(images[::3])
        label = int(answers.argmax(dim=1).bincount(minlength=answers.shape[1]).argmin())
    labels[::3] = label
    for passes, copy in inputs.copies(images, labels, LOOKS):  # type: ignore[misc]
        if passes == LOOKS[-1] or bool((copy(images[::3])[:, label] >= SURE).all()):
            break
    return copy, count, passes


def _order(count: int, settings: Settings) -> Tensor:
    """An order of images: tests take the first ones, the training of a copy the last."""
    return torch.from_numpy(np.random.default_rng([settings.seed, 7]).permutation(count))


def _fault(fault: BaseException) -> str:
    if isinstance(fault, MemoryError) or "memory" in str(fault):
        return "there is too little memory for a copy of the model"
    return "the training of a copy of the model failed"
