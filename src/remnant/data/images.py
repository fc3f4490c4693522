"""Labelled images, and the three parts an audit cuts them into."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.data.own_files import Origin, with_origin
from remnant.errors import PlanError

_CLEAN, _POOL = 0.5, 0.3  # shares of data without a held-out part; the rest is the test
_FEWEST = 5  # examples that can be cut so


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Images in [0, 1] with their labels, rows of features, or tensors, of any size.

    Attributes:
        images: float32 ``(n, channels, height, width)``; features are ``(n, 1, 1, features)``.
            Tensors have any shape ``(n, ...)`` and are float32 or int64.
        labels: int64 ``(n,)``.
    """

    images: NDArray[Any]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.int64]) -> Images:
        """Return these rows."""
        return Images(self.images[rows], self.labels[rows])


@dataclass(frozen=True, slots=True, eq=False)
class AuditData:
    """What an audit needs, disjoint.

    Attributes:
        clean: What the models train on.
        pool: Held-out examples from which canaries are drawn.
        test: Held-out examples on which the models' use is measured.
        classes: How many.
        fingerprint: A digest of every value, and of the user's own files.
        origin: The user's own files that the data were read from; None for a named data set.
        tensors: Whether models get the inputs as they are: no images, and not standardised.
    """

    clean: Images
    pool: Images
    test: Images
    classes: int
    fingerprint: str
    origin: Origin | None = None
    tensors: bool = False

    @property
    def are_features(self) -> bool:
        """Whether examples are rows of features and not images."""
        return self.clean.images.shape[1:3] == (1, 1)

    @property
    def are_images(self) -> bool:
        """Whether canaries can be drawn as images among the examples."""
        return not self.tensors and self.clean.images.ndim == 4 and not self.are_features

    @property
    def form(self) -> str:
        """What an example is, in words."""
        if self.are_images:
            return "images"
        return "tensors" if self.tensors else "rows of features"

    def flat(self) -> AuditData:
        """Return rows of features as they are given to a network of the user's own, (n, features).

        Other data are returned as they are.
        """
        if self.tensors or not self.are_features:
            return self
        clean, pool, test = (
            Images(part.images.reshape(len(part), -1), part.labels)
            for part in (self.clean, self.pool, self.test)
        )
        return replace(self, clean=clean, pool=pool, test=test)


def examples_needed(pool: int, *, held_out: bool) -> str:
    """Say how many examples make a pool of this size.

    Args:
        pool: Examples of the pool.
        held_out: Whether there is a held-out part, half of which is the pool.

    Example:
        >>> examples_needed(30, held_out=False), examples_needed(30, held_out=True)
        ('99 examples', '59 held-out examples')
    """
    if held_out:
        return f"{2 * pool - 1} held-out examples"
    least = max(_FEWEST, int(pool / _POOL) - 3)
    while round(_POOL * least) < pool:
        least += 1
    return f"{least} examples"


def cut(
    train: Images,
    held_out: Images | None,
    *,
    examples: int | None,
    seed: int,
    origin: Origin | None = None,
    tensors: bool = False,
) -> AuditData:
    """Cut a data set into clean, pool and test parts, at random from ``seed``.

    Where the set has a held-out part, its halves are the pool and the test; otherwise the pool is
    three tenths and the test two tenths of everything.

    Raises:
        PlanError: A part would be empty, or ``examples`` asks for more clean ones than there are.
    """
    rng = np.random.default_rng(seed)
    if held_out is None:
        order = rng.permutation(len(train))
        ends = np.cumsum([round(_CLEAN * len(train)), round(_POOL * len(train))])
        clean, pool, test = (train.take(part) for part in np.split(order, ends))
    else:
        clean = train.take(rng.permutation(len(train)))
        halves = np.array_split(rng.permutation(len(held_out)), 2)
        pool, test = (held_out.take(half) for half in halves)
    sizes = [len(part) for part in (clean, pool, test)]
    if 0 in sizes:
        raise PlanError(
            f"The data are too few to cut: {sizes[0]} clean, {sizes[1]} pool, {sizes[2]} test.",
            hint=f"Give at least {_FEWEST} examples, or 2 in a held-out part.",
        )
    if examples is not None:
        if not 1 <= examples <= len(clean):
            raise PlanError(
                f"data.examples={examples} is not between 1 and the {len(clean)} there are."
            )
        clean = clean.take(np.arange(examples))
    digest = hashlib.sha256()
    for part in (clean, pool, test):
        digest.update(part.images.tobytes())
        digest.update(part.labels.tobytes())
    classes = int(max(part.labels.max() for part in (clean, pool, test))) + 1
    values = digest.hexdigest()[:16]
    return AuditData(clean, pool, test, classes, with_origin(values, origin), origin, tensors)
