"""Image canaries: mislabelled, odd or blank ones, and test points chosen by how hard they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from remnant.errors import PlanError

KINDS = ("mislabelled", "odd", "blank", "hard", "medium", "easy")
# Kinds chosen by loss, and where each lies in the pool.
ENDS = {"hard": "hardest", "medium": "middle", "easy": "easiest"}
BY_LOSS = tuple(ENDS)
QUARTER = 0.25  # of the pool counts as hard, medium or easy unless a study says otherwise


def mislabelled(
    labels: NDArray[np.int64], *, count: int, classes: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Choose examples and give each a wrong label.

    Returns:
        Rows of the pool, and the labels they are planted with: uniform over the wrong classes.
    """
    if classes < 2:
        raise PlanError(f"classes={classes} leaves no wrong label.")
    rows = _distinct(len(labels), count, rng)
    return rows, (labels[rows] + rng.integers(1, classes, size=count)) % classes


def odd(
    shape: tuple[int, ...], *, count: int, classes: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Make images from no known distribution: blocks of random brightness, with random labels."""
    channels, height, width = shape
    coarse = rng.random((count, channels, -(-height // 2), -(-width // 2)), dtype=np.float32)
    images = coarse.repeat(2, axis=2).repeat(2, axis=3)[:, :, :height, :width]
    return np.ascontiguousarray(images), rng.integers(0, classes, size=count)


def blank(
    shape: tuple[int, ...], *, count: int, classes: int, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Make images without any content: each of one random colour, with a random label."""
    channels, height, width = shape
    colours = rng.random((count, channels, 1, 1), dtype=np.float32)
    images = colours.repeat(height, axis=2).repeat(width, axis=3)
    return images, rng.integers(0, classes, size=count)


MADE = {"odd": odd, "blank": blank}  # from nothing: they need no pool


def rows_in_share(pool: int, share: float) -> int:
    """Return how many rows of a pool a share of it holds.

    Example:
        >>> rows_in_share(539, 0.25)
        134
    """
    return int(share * pool + 1e-9)


def by_loss(
    losses: NDArray[np.float64],
    *,
    count: int,
    level: str,
    rng: np.random.Generator,
    share: float = QUARTER,
) -> NDArray[np.int64]:
    """Choose rows at random from the share of the pool that a trained model finds hard or easy.

    The pool is ranked by loss; hard are the rows with the highest losses, easy the lowest, medium
    those around the middle. How hard the chosen rows are does not depend on ``count``. Their order
    is random, so that cohorts are alike.

    Args:
        losses: Of each row of the pool.
        count: Rows to choose.
        level: ``hard``, ``medium`` or ``easy``.
        rng: Draws them.
        share: Of the pool that counts as this level.

    Raises:
        PlanError: The share holds fewer rows, or there is no such level.
    """
    if level not in BY_LOSS:
        raise PlanError(f"level={level!r} is not one of {', '.join(BY_LOSS)}.")
    held = rows_in_share(len(losses), share)
    if count > held:
        raise PlanError(
            f"{_too_many(count, held)} among its {ENDS[level]} {100.0 * share:.3g} %.",
            hint="Plant fewer canaries, or raise the share.",
        )
    order = np.argsort(losses, kind="stable")
    first = {"easy": 0, "medium": (len(losses) - held) // 2, "hard": len(losses) - held}[level]
    return rng.permutation(order[first : first + held])[:count]


def _distinct(pool: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if count > pool:
        raise PlanError(_too_many(count, pool) + ".", hint="Plant fewer canaries.")
    return rng.choice(pool, size=count, replace=False)


def _too_many(count: int, pool: int) -> str:
    return f"{count} canaries and controls were asked for, and the pool holds {pool} examples"
