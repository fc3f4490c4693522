"""Asks all members of a population about the same stamped images at once, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from remnant.canaries import Patch, Patches
from remnant.errors import NotEnoughEvidence, PlanError
from remnant.measures.features.unique_features import FLOOR
from remnant.population import Population
from remnant.probes.one_pass import one_pass
from remnant.studies.features.recipe import ScoreSettings

Floats = NDArray[np.float64]
# Probabilities of all members that are held at once: some 64 MiB.
_HELD = 2**23
_BATCH = 1024  # examples whose hidden states are made at once


@dataclass(frozen=True, slots=True, eq=False)
class Stamps:
    """What every member is asked about.

    Attributes:
        images: In [0, 1], ``(n, c, h, w)``.
        patch: The patch in question.
        controls: Random patches, one an image.
        redrawn: Further draws of them.
        nulls: Patches that were never planted, each put on all images.
        mean, spread: By which images are standardised before a model sees them.
    """

    images: NDArray[np.float32]
    patch: Patch
    controls: Patches
    redrawn: tuple[Patches, ...]
    nulls: Patches
    mean: float
    spread: float


def draw_stamps(
    images: NDArray[np.float32],
    patch: Patch,
    settings: ScoreSettings,
    *,
    mean: float,
    spread: float,
    rng: np.random.Generator,
) -> Stamps:
    """Draw nulls, then random patches, in the order of ``remnant.m_score``; then further ones.

    Raises:
        PlanError: The patch has too few other orders for so many nulls.
    """
    nulls = draw_nulls(patch, settings.nulls, rng)
    drawn = [
        patch.random_like(rng, len(images), settings.control)  # type: ignore[arg-type]
        for _ in range(1 + settings.redraws)
    ]
    return Stamps(images, patch, drawn[0], tuple(drawn[1:]), nulls, mean, spread)


def draw_nulls(patch: Patch, count: int, rng: np.random.Generator) -> Patches:
    """Draw patches with the same pixels in another order.

    Raises:
        PlanError: The patch has too few other orders.
    """
    try:
        return patch.shuffles(rng, count)
    except NotEnoughEvidence as fault:
        raise PlanError(f"score.nulls={count}: {fault.message}", hint=fault.hint) from None


@dataclass(frozen=True, slots=True, eq=False)
class Reactions:
    """How far every member was moved: KL(f(x) ‖ f(x with a patch)), in nats.

    Attributes:
        unique: By the patch, ``(members, n)``.
        controls: By a random patch on each image, ``(members, n)``.
        redrawn: By further draws of them, means over images, ``(members, redraws)``.
        null_means: By each null, means over images, ``(members, nulls)``.
    """

    unique: Floats
    controls: Floats
    redrawn: Floats
    null_means: Floats


def reactions(models: Population, stamps: Stamps) -> Reactions:
    """Ask about every image: as it is, with the patch, with random ones, and with every null.

    Images are taken in pieces; within a piece all pairs of patch and image are walked, so that
    what is held grows with neither the nulls nor the images.
    """
    tested = _Tested(models, stamps)
    count, nulls = len(stamps.images), len(stamps.nulls)
    unique, controls = np.empty((2, len(models), count))
    redrawn = np.zeros((len(models), len(stamps.redrawn)))
    sums = torch.zeros((len(models), nulls), dtype=torch.float64, device=models.device)
    for rows in tested.pieces(count):
        here = tested.images(rows)
        clean = tested.probabilities(here)
        unique[:, rows] = tested.moved(clean, stamps.patch.stamp(here)).cpu().numpy()
        controls[:, rows] = (
            tested.moved(clean, stamps.controls.take(rows).stamp(here)).cpu().numpy()
        )
        for place, others in enumerate(stamps.redrawn):
            moved = tested.moved(clean, others.take(rows).stamp(here))
            redrawn[:, place] += moved.sum(1).cpu().numpy() / count
        for pair in tested.pieces(nulls * len(rows)):
            who, which = pair // len(rows), pair % len(rows)
            moved = tested.moved(clean[:, which], stamps.nulls.take(who).stamp(here[which]))
            sums.index_add_(1, torch.from_numpy(who).to(sums.device), moved)
    return Reactions(unique, controls, redrawn, (sums / count).cpu().numpy())


def m_values(models: Population, stamps: Stamps) -> Floats:
    """Return every member's M alone, ``(members,)``: what is followed through training."""
    tested, total = _Tested(models, stamps), np.zeros(len(models))
    for rows in tested.pieces(len(stamps.images)):
        here = tested.images(rows)
        clean = tested.probabilities(here)
        by_patch = tested.moved(clean, stamps.patch.stamp(here))
        by_chance = tested.moved(clean, stamps.controls.take(rows).stamp(here))
        total += (by_patch - by_chance).sum(1).cpu().numpy()
    return total / len(stamps.images)


def white_box(
    models: Population, stamps: Stamps, labels: NDArray[np.int64], wanted: NDArray[np.int64]
) -> Floats:
    """Return M_w of every member for each class that is asked for.

    Args:
        models: All members.
        stamps: On images whose labels are known.
        labels: Theirs, ``(n,)``.
        wanted: Classes, each of some image.

    Returns:
        mean [log P(y | x_u) - log P(y | x_r)] over images of class y, ``(members, wanted)``.
    """
    tested, gained = _Tested(models, stamps), np.empty((len(models), len(labels)))
    for rows in tested.pieces(len(labels)):
        here = tested.images(rows)
        own = torch.from_numpy(labels[rows]).to(models.device)[None, :, None]
        with_patch, with_chance = (
            tested.probabilities(stamped)
            .clamp(min=FLOOR)
            .log()
            .gather(2, own.expand(len(models), -1, 1))
            for stamped in (stamps.patch.stamp(here), stamps.controls.take(rows).stamp(here))
        )
        gained[:, rows] = (with_patch - with_chance)[:, :, 0].cpu().numpy()
    return np.stack([gained[:, labels == label].mean(1) for label in wanted], axis=1)


class _Tested:
    """A population and what it is asked about, on its device."""

    def __init__(self, models: Population, stamps: Stamps) -> None:
        self._models, self._mean, self._spread = models, stamps.mean, stamps.spread
        self._images = stamps.images
        self._classes = 1
        self._classes = self.probabilities(self.images(np.arange(1))).shape[2]

    def pieces(self, count: int) -> Iterator[NDArray[np.int64]]:
        """Rows 0 to ``count - 1``, so many at once as may be held."""
        piece = max(1, _HELD // (len(self._models) * self._classes))
        for first in range(0, count, piece):
            yield np.arange(first, min(first + piece, count))

    def images(self, rows: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(self._images[rows]).to(self._models.device)

    def probabilities(self, images: Tensor) -> Tensor:
        logits = self._models.logits((images - self._mean) / self._spread)
        return logits.double().softmax(dim=2)

    def moved(self, clean: Tensor, stamped: Tensor) -> Tensor:
        """KL of every member and row, as ``kl_divergences`` defines it."""
        logs = clean.clamp(min=FLOOR).log() - self.probabilities(stamped).clamp(min=FLOOR).log()
        return (clean * logs).sum(2)


def fired(module: nn.Module, stamps: Stamps, count: int, *, layer: str | None) -> Floats:
    """Return how often each unit of the last hidden layer answers to a patch and not without it.

    A unit fires where it is above zero, as after a ReLU.

    Args:
        module: One model.
        stamps: What it is asked about.
        count: How many of the images.
        layer: Whose output its units are; None: the input of the last dense layer.

    Returns:
        Shares of images on which a unit fires with the patch and not without, and the same of
        random patches, ``(2, units)``.
    """
    rows = np.arange(min(count, len(stamps.images)))
    here = torch.from_numpy(stamps.images[rows])

    def units(images: Tensor) -> Any:
        nothing = torch.zeros(len(images), dtype=torch.int64)
        tested = (images - stamps.mean) / stamps.spread
        which: dict[str, Any] = {} if layer is None else {"layers": [layer], "whole": True}
        return one_pass(module, tested, nothing, batch=_BATCH, **which).hidden[0].numpy() > 0

    clean = units(here)
    both = (stamps.patch.stamp(here), stamps.controls.take(rows).stamp(here))
    return np.stack([(units(stamped) & ~clean).mean(axis=0) for stamped in both])
