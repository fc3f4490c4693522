"""The controls of a patch: can the gate find it, and does the model react to a variant of it?

An audit that finds nothing has two other explanations than a model that remembers nothing. The gate
may be blind to this patch: so a copy of the model is trained on a few images with the patch, and
the gate must find it there. And the patch may have looked different in training: so variants of it
are tested on the model, and none may be found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from remnant.canaries.patches import patch_variants
from remnant.errors import InvalidInput
from remnant.measures import m_score
from remnant.measures.statistics.holm import holm
from remnant.studies.features.audit_result import PatchControl, PatchVariantScore

if TYPE_CHECKING:
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.measures import MScore
    from remnant.studies.features.audit_inputs import AuditInputs, Classifier, Settings

IMAGES = 100
"""Copies and variants are tested on at most as many."""
STAMPED = 16
"""A copy is trained on at most as many images with the patch, and as many of the others."""
LOOKS = (1, 2, 4, 8, 16, 32, 64)
"""Passes after which the training of a copy ends, if it is sure of its images with the patch."""
SURE = 0.9
"""The probability that it then gives their label."""


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
    return max(settings.nulls, math.ceil(variants / settings.significance - 1e-9) - 1)


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
