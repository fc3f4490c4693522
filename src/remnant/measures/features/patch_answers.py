"""Asking a classifier about patches: in batches, and with its answers checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence, require
from remnant.measures.statistics.checks import check_rng

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PatchControl = Literal["uniform", "binary", "shuffled"]
Predict = Callable[[Any], Any]
Reaction = Callable[[Floats, Floats], Floats]

# Rows of probabilities may be off by so much: half precision is not refused for its sums.
SUM_OFF = 1e-2
# Two answers about one image may differ by so much.
CHANGE = 1e-3
# With fewer images no interval was shown to hold, with fewer nulls no p-value reaches 5 %.
LEAST_IMAGES, LEAST_NULLS = 20, 19


class StampedPatches(Protocol):
    """Patches of which each image gets its own, such as ``remnant.canaries.Patches``."""

    def __len__(self) -> int: ...

    def take(self, rows: Ints, /) -> StampedPatches:
        """These patches, in this order."""
        ...

    def stamp(self, images: Any, /) -> Any:
        """A copy of the images, the i-th with the i-th patch."""
        ...


class StampedPatch(Protocol):
    """One patch, such as ``remnant.Patch``."""

    def stamp(self, images: Any, /) -> Any:
        """A copy of the images, each with the patch."""
        ...

    def shuffles(self, rng: np.random.Generator, count: int, /) -> StampedPatches:
        """Patches of the same kind that were never planted."""
        ...

    def random_like(
        self, rng: np.random.Generator, count: int, kind: PatchControl, /
    ) -> StampedPatches:
        """Random patches of the same size."""
        ...


class TestedPatch(NamedTuple):
    """A model, the patch that it is tested on, and what the patch is compared with.

    Attributes:
        predict: From images, of the type given here, to probabilities ``(rows, classes)``.
        images: Shape ``(n, c, h, w)``: an array or a tensor.
        patch: The patch in question.
        rng: Draws nulls, then controls; neither depends on ``batch``.
        nulls: How many, where none are given.
        null_patches: Given ones.
        batch: Images a call at most.
    """

    predict: Predict
    images: Any
    patch: StampedPatch
    rng: np.random.Generator
    nulls: int
    null_patches: StampedPatches | None
    batch: int


class PatchAnswers(NamedTuple):
    """How a model reacted to a patch, to random ones and to never planted ones.

    Attributes:
        unique: The reaction to the patch on each image, shape ``(n,)``.
        controls: To a random patch on each image; None where none was asked about.
        null_means: The mean reaction to each never planted patch, shape ``(nulls,)``.
    """

    unique: Floats
    controls: Floats | None
    null_means: Floats


def patch_answers(
    tested: TestedPatch, *, reaction: Reaction, control: PatchControl | None
) -> PatchAnswers:
    """Test every image as it is, with the patch, with a random one, and with every null.

    Images are taken in pieces of ``batch``. Within a piece all pairs of patch and image are walked,
    so that no call sees more than ``batch`` images and none fewer than need be.

    Args:
        tested: The model, the images and the patches.
        reaction: From probabilities without and with a patch, ``(rows, classes)``, to ``(rows,)``.
        control: The distribution of the random patches; None for none.

    Raises:
        InvalidInput: Faulty arguments, or answers that are no probabilities or do not hold still.
        NotEnoughEvidence: Too few images or nulls.
    """
    count = _check(tested)
    predict, images, patch, rng, nulls, null_patches, batch = tested
    others = patch.shuffles(rng, nulls) if null_patches is None else null_patches
    chance = None if control is None else patch.random_like(rng, count, control)
    ask = _Asked(predict, images)
    unique, controls, sums = np.empty(count), np.empty(count), np.zeros(len(others))
    for first in range(0, count, batch):
        rows = np.arange(first, min(first + batch, count))
        clean = ask(ask.images(rows))
        if first == 0:
            ask.hold_still(rows, clean)
        unique[rows] = reaction(clean, ask(patch.stamp(ask.images(rows))))
        if chance is not None:
            controls[rows] = reaction(clean, ask(chance.take(rows).stamp(ask.images(rows))))
        for who, which in _pairs(len(others), len(rows), batch):
            stamped = others.take(who).stamp(ask.images(rows[which]))
            reacted = reaction(clean[which], ask(stamped))
            sums += np.bincount(who, weights=reacted, minlength=sums.size)
    return PatchAnswers(unique, None if chance is None else controls, sums / count)


def _pairs(patches: int, images: int, batch: int) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of a patch and an image, patch by patch, at most ``batch`` at once."""
    for first in range(0, patches * images, batch):
        pair = np.arange(first, min(first + batch, patches * images))
        yield pair // images, pair % images


class _Asked:
    """A model that is asked, the number of its classes once known."""

    def __init__(self, predict: Predict, images: Any) -> None:
        self._predict = predict
        self._images = images
        self._classes: int | None = None

    def images(self, rows: Ints) -> Any:
        """These images, as they were given."""
        return self._images[rows]

    def __call__(self, images: Any) -> Floats:
        probabilities = read_probabilities(
            self._predict(images), rows=len(images), classes=self._classes
        )
        self._classes = probabilities.shape[1]
        return probabilities

    def hold_still(self, rows: Ints, answers: Floats) -> None:
        """Ask again about half of the images: neither time nor neighbours may matter."""
        half = rows[: max(1, len(rows) // 2)][::-1].copy()
        again = self(self.images(half))[::-1]
        change = float(np.abs(again - answers[: len(half)]).max())
        if change > CHANGE:
            raise InvalidInput(
                f"predict changed its answer about the same images by up to {change:.2g}.",
                hint="Switch dropout and batch norm to evaluation (model.eval()), and augment "
                "nothing: an image's answer may depend on neither time nor its neighbours.",
            )


def read_probabilities(given: Any, *, rows: int, classes: int | None) -> Floats:
    """What ``predict`` returned, as float64, each row divided by its sum.

    Raises:
        InvalidInput: Not ``(rows, classes)``, not finite, outside [0, 1], rows that do not sum to
            one: logits, say, or log-probabilities.
    """
    if hasattr(given, "detach"):
        given = given.detach().cpu().double().numpy()
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("predict did not return an array of numbers.") from None
    wanted = "classes" if classes is None else classes
    right = values.ndim == 2 and values.shape[0] == rows and values.shape[1] >= 2
    if not right or (classes is not None and values.shape[1] != classes):
        raise InvalidInput(
            f"predict returned shape {values.shape} for {rows} images, not ({rows}, {wanted}).",
            hint="Return a probability for each class, at least two; with one output p, 1-p and p.",
        )
    if not np.isfinite(values).all():
        bad = values.size - int(np.isfinite(values).sum())
        raise InvalidInput(f"predict returned {bad} value(s) that are NaN or infinite.")
    sums = values.sum(axis=1)
    least, most = float(values.min()), float(values.max())
    if least >= 0.0 and most <= 1.0 + SUM_OFF and np.abs(sums - 1.0).max() <= SUM_OFF:
        return np.asarray(values / sums[:, None])
    logs = most <= 0.0 and np.abs(np.exp(values).sum(axis=1) - 1.0).max() <= SUM_OFF
    raise InvalidInput(
        f"predict returned values from {least:.4g} to {most:.4g} in rows that sum to "
        f"{float(sums.min()):.4g} to {float(sums.max()):.4g}, not probabilities.",
        hint="These are log-probabilities: return their exp."
        if logs
        else "If these are logits, return their softmax over the classes.",
    )


def _check(tested: TestedPatch) -> int:
    """Return the number of images, if the arguments are right."""
    predict, images, patch, rng, nulls, null_patches, batch = tested
    faults: list[str] = []
    if not callable(predict):
        faults.append(f"predict={predict!r} cannot be called")
    check_rng(rng, faults)
    for name, given in (("nulls", nulls), ("batch", batch)):
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
            faults.append(f"{name}={given!r} is not a whole number of at least 1")
    if len(getattr(images, "shape", ())) != 4:
        shape = getattr(images, "shape", None)
        faults.append(f"images of shape {shape} are not (n, channels, height, width)")
    require(faults)
    count = int(images.shape[0])
    if count < LEAST_IMAGES:
        raise NotEnoughEvidence(
            f"images={count} are too few for an interval; it takes at least {LEAST_IMAGES}.",
            hint="Any images will do for m_score: they need not be training data.",
        )
    have = int(nulls) if null_patches is None else len(null_patches)
    if have < LEAST_NULLS:
        raise NotEnoughEvidence(
            f"nulls={have} cannot show a p-value of 5 %; it takes at least {LEAST_NULLS}.",
            hint="199 or more let several canaries be tested together.",
        )
    patch.stamp(images[:1])  # its place, before anything is asked
    return count
