"""The positive control of an audit with a limit: did the model learn its task?"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from remnant.measures import clopper_pearson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

LEVEL = 0.01
DRAWS = 1999
NO_LABELS = (
    "It was not tested whether the model learnt its task, and an untrained model keeps any limit "
    "on M. Give labelled images of several classes: an .npz file with images and labels, as "
    "--images or as --task-images."
)


class LabelledImages(Protocol):
    """Images ``(n, c, h, w)`` in [0, 1], with one label each where labels are known."""

    @property
    def images(self) -> Tensor:
        """The images."""
        ...

    @property
    def labels(self) -> NDArray[np.int64] | None:
        """Their labels."""
        ...


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
