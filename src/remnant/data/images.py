"""Labelled images, and the three parts an audit cuts them into."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Images in [0, 1] with their labels.

    Attributes:
        images: float32 ``(n, channels, height, width)``.
        labels: int64 ``(n,)``.
    """

    images: NDArray[np.float32]
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
        fingerprint: A digest of every value.
    """

    clean: Images
    pool: Images
    test: Images
    classes: int
    fingerprint: str


def cut(train: Images, held_out: Images | None, *, examples: int | None, seed: int) -> AuditData:
    """Cut a data set into clean, pool and test parts, at random from ``seed``.

    Where the set has a held-out part, its halves are the pool and the test; otherwise the pool is
    three tenths and the test two tenths of everything.

    Raises:
        PlanError: A part would be empty, or ``examples`` asks for more clean ones than there are.
    """
    rng = np.random.default_rng(seed)
    if held_out is None:
        order = rng.permutation(len(train))
        ends = np.cumsum([round(0.5 * len(train)), round(0.3 * len(train))])
        clean, pool, test = (train.take(part) for part in np.split(order, ends))
    else:
        clean = train.take(rng.permutation(len(train)))
        halves = np.array_split(rng.permutation(len(held_out)), 2)
        pool, test = (held_out.take(half) for half in halves)
    sizes = [len(part) for part in (clean, pool, test)]
    if 0 in sizes:
        raise PlanError(
            f"The data are too few to cut: {sizes[0]} clean, {sizes[1]} pool, {sizes[2]} test."
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
    return AuditData(clean, pool, test, classes, digest.hexdigest()[:16])
