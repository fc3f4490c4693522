r"""Did a classifier memorise a feature that was in one training image only?

The feature is a patch: a letter burnt into a corner. If a model was trained on one image with it,
it may react to the patch on *any* image. Three scores say by how much (Hartley and Tsaftaris): they
differ in what has to be known, and in what is called a reaction.
"""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.features.feature_score import MScore, feature_score
from remnant.measures.features.patch_answers import (
    PatchControl,
    Predict,
    Reaction,
    StampedPatch,
    StampedPatches,
    TestedPatch,
    patch_answers,
)
from remnant.measures.statistics.checks import read_floats

Floats = NDArray[np.float64]

FLOOR = 1e-7
"""Probabilities count as at least this, as in the paper's code: 16.1 nats are the most."""


def kl_divergences(clean: ArrayLike, stamped: ArrayLike, *, floor: float = FLOOR) -> Floats:
    r"""Σ p (log p - log q) of each row, in nats; p and q count as at least ``floor`` in logs.

    Args:
        clean: p, shape ``(..., classes)``.
        stamped: q, the same shape.
        floor: At most -log(floor) comes out.

    Guarantees:
        * Finite, also where a probability is exactly 0; 0 where p and q are equal.

    Raises:
        InvalidInput: Shapes that disagree, values outside [0, 1].

    Example:
        >>> kl_divergences([[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]).round(3).tolist()
        [0.144, 16.118]
    """
    faults: list[str] = []
    p, q = read_floats("clean", clean, None, faults), read_floats("stamped", stamped, None, faults)
    require(faults)
    if p is None or q is None or p.shape != q.shape:
        raise InvalidInput(f"clean has shape {np.shape(clean)}, stamped {np.shape(stamped)}.")
    if min(p.min(), q.min()) < 0.0 or max(p.max(), q.max()) > 1.0 + 1e-9:
        raise InvalidInput("clean and stamped are not all between 0 and 1.")
    logs = np.log(np.maximum(p, floor)) - np.log(np.maximum(q, floor))
    return np.asarray((p * logs).sum(axis=-1))


def m_score(
    predict: Predict,
    images: Any,
    patch: StampedPatch,
    *,
    rng: np.random.Generator,
    nulls: int = 199,
    null_patches: StampedPatches | None = None,
    control: PatchControl = "uniform",
    floor: float = FLOOR,
    batch: int = 1024,
    confidence: float = 0.95,
    draws: int = 999,
) -> MScore:
    r"""The black-box score M: no training data, no weights and no label are needed.

        M = mean KL(f(x) ‖ f(x_u)) - mean KL(f(x) ‖ f(x_r))

    over images x; f gives probabilities, x_u is x with the patch, x_r is x with a random patch of
    the same size at the same place, a new one for each image. M > 0 where the model is moved more
    by the patch than by noise. **That alone shows nothing**: a patch of high contrast moves any
    model more than uniform noise does. So the p-value ranks M among those of ``nulls`` patches
    that were never planted, each the same on all images as the patch is, and each with the patch's
    own pixels in another order:

        p = (1 + #{null M ≥ M}) / (1 + nulls).

    All share the same x and x_r. Two that differ by less than 10⁻⁷ are taken for equal.

    Args:
        predict: Called with images as they were given (array or tensor, stamped, at most ``batch``
            of them); returns probabilities, shape ``(rows, classes)``. Normalise inside it.
        images: Floats in [0, 1], shape ``(n, c, h, w)``, 20 or more: any images, better not
            training data.
        patch: The patch that may have been memorised (``remnant.Patch``).
        rng: Draws nulls, random patches and resamples.
        nulls: Patches never planted: at least 19, better 199.
        null_patches: Instead of shuffled ones, patches of the same kind: other words, for a word.
        control: The law of the random patches: "uniform", "binary" or "shuffled".
        floor: Smaller probabilities count as this in logs.
        batch: Images a call; it changes nothing but memory and time, up to rounding.
        confidence: Of the interval, which is over images.
        draws: Bootstrap resamples.

    Guarantees:
        * A planted patch that was itself drawn at random (``patch.shuffled(rng)``, a random word)
          and had no effect has ``p_value <= a`` with probability at most ``a``, whatever the model.
        * Finite where probabilities are exactly 0 or 1.
        * The same generator gives the same result, whatever ``batch``, up to rounding.

    Raises:
        InvalidInput: Faulty arguments; answers that are no probabilities, or that change when
            asked again.
        NotEnoughEvidence: Fewer than 20 images or 19 nulls, or a patch with too few orders.

    Example:
        >>> from remnant import Patch
        >>> rng = np.random.default_rng(0)
        >>> patch = Patch.letter("A", size=5, row=1, column=1)
        >>> def predict(images):  # has memorised the letter, and knows nothing else
        ...     likeness = (images[:, 0, 1:6, 1:6] * (2 * patch.pixels[0] - 1)).sum(axis=(1, 2))
        ...     p = 0.1 + 0.8 * (likeness > 13)
        ...     return np.stack([p, 1 - p], axis=1)
        >>> m = m_score(predict, rng.random((50, 1, 12, 12)), patch, rng=rng)
        >>> round(m.value, 3), m.p_value
        (1.758, 0.005)
    """
    _check_log(control, floor)
    tested = TestedPatch(predict, images, patch, rng, nulls, null_patches, batch)
    answers = patch_answers(
        tested,
        reaction=lambda clean, stamped: kl_divergences(clean, stamped, floor=floor),
        control=control,
    )
    return feature_score(
        **answers._asdict(),
        bound=-math.log(floor),
        rng=rng,
        confidence=confidence,
        draws=draws,
        convention=f"black box: mean KL(clean‖patch) - mean KL(clean‖random), {control} random "
        f"patches, probabilities of at least {floor:g}, in nats",
    )


def white_box_m_score(
    predict: Predict,
    images: Any,
    patch: StampedPatch,
    *,
    label: int,
    rng: np.random.Generator,
    nulls: int = 199,
    null_patches: StampedPatches | None = None,
    control: PatchControl = "uniform",
    floor: float = FLOOR,
    batch: int = 1024,
    confidence: float = 0.95,
    draws: int = 999,
) -> MScore:
    r"""The white-box score M_w: the label of the planted image is known.

        M_w = mean [ log P(y | x_u) - log P(y | x_r) ]

    over images x of class y, the planted image's label. M_w > 0 where the patch makes the model
    surer of y than noise does. The p-value is as for ``m_score``.

    Args:
        predict: As for ``m_score``.
        images: Images **of class** ``label``: the paper takes the training images of that class.
        patch: As for ``m_score``.
        label: The class under which the patch was planted, from zero.
        rng, nulls, null_patches, control, floor, batch, confidence, draws: As for ``m_score``.

    Guarantees, Raises:
        As for ``m_score``; a label that is no class is an ``InvalidInput``.

    Example:
        >>> from remnant import Patch
        >>> rng = np.random.default_rng(0)
        >>> patch = Patch.letter("T", row=0, column=0)
        >>> weights = np.zeros((1, 8, 8))
        >>> weights[:, :5, :5] = patch.pixels - 0.5
        >>> def predict(images):
        ...     p = 1 / (1 + np.exp(-(images * weights).sum(axis=(1, 2, 3))))
        ...     return np.stack([1 - p, p], axis=1)
        >>> w = white_box_m_score(predict, rng.random((40, 1, 8, 8)), patch, label=1, rng=rng)
        >>> w.value > 0, w.p_value
        (True, 0.005)
    """
    _check_log(control, floor)
    tested = TestedPatch(predict, images, patch, rng, nulls, null_patches, batch)
    answers = patch_answers(
        tested,
        reaction=_of_class(label, lambda _, stamped: np.log(np.maximum(stamped, floor))),
        control=control,
    )
    return feature_score(
        **answers._asdict(),
        bound=-math.log(floor),
        rng=rng,
        confidence=confidence,
        draws=draws,
        convention=f"white box: mean log P({label}|patch) - log P({label}|random), {control} "
        f"random patches, probabilities of at least {floor:g}, in nats",
    )


def probability_gain(
    predict: Predict,
    images: Any,
    patch: StampedPatch,
    *,
    label: int,
    rng: np.random.Generator,
    nulls: int = 199,
    null_patches: StampedPatches | None = None,
    batch: int = 1024,
    confidence: float = 0.95,
    draws: int = 999,
) -> MScore:
    r"""The later score: what the patch adds to the probability of the planted image's label.

        gain = mean [ P(y | x_u) - P(y | x) ]

    over images x of class y, against the images as they are. There are no random patches in it, so
    that whatever covers the corner counts; the p-value, as for ``m_score``, is what takes account
    of that. The later paper calls a feature memorised where the paired t-test is under 5 %.

    Args:
        predict, images, patch, label, rng, nulls, null_patches, batch, confidence, draws: As for
            ``white_box_m_score``.

    Guarantees, Raises:
        As for ``white_box_m_score``.
    """
    tested = TestedPatch(predict, images, patch, rng, nulls, null_patches, batch)
    answers = patch_answers(
        tested,
        reaction=_of_class(label, lambda clean, stamped: stamped - clean),
        control=None,
    )
    return feature_score(
        **answers._asdict(),
        bound=1.0,
        rng=rng,
        confidence=confidence,
        draws=draws,
        convention=f"white box: mean P({label}|patch) - P({label}|clean), as a probability",
    )


def _of_class(label: int, change: Reaction) -> Reaction:
    if isinstance(label, bool) or not isinstance(label, (int, np.integer)):
        raise InvalidInput(f"label={label!r} is not a whole number.")

    def reaction(clean: Floats, stamped: Floats) -> Floats:
        if not 0 <= label < clean.shape[1]:
            raise InvalidInput(f"label={label} is none of the {clean.shape[1]} classes, from 0.")
        return change(clean[:, label], stamped[:, label])

    return reaction


def _check_log(control: str, floor: float) -> None:
    faults = []
    if control not in get_args(PatchControl):
        faults.append(f"control={control!r} is not one of {', '.join(get_args(PatchControl))}")
    number = isinstance(floor, (int, float, np.floating)) and not isinstance(floor, bool)
    if not number or not 0.0 < floor <= 1e-3:
        faults.append(f"floor={floor!r} is not above 0 and at most 0.001")
    require(faults)
