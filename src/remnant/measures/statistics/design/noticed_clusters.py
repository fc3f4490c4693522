r"""Do scores look like those of canaries that come in clusters, where no groups were given?

Two signs are looked for, on each side and at each lag:

* **Neighbours are alike.** Canaries of one author or template are mostly next to each other. Ranks
  lose a trend over the places (a line or cubic polynomial, since canaries may be sorted by length),
  and the correlation r of neighbours is held against chance: of n independent canaries in T
  trainings, √(nT) r is about standard normal. Scores that are sorted themselves show nothing.
* **Near-duplicates.** Canaries whose scores agree with another's to a millionth of their range, at
  all lags. Scores on a grid, of few values or in half precision, agree by chance and do not count.

Clusters whose members are apart in the arrays, and that are no duplicates, are not noticed. Nor are
weak ones: of clusters of five with a correlation of 0.5, 100 canaries a side and one training,
about nine in ten are (``benchmarks/false_claims_trainings.py``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
_ERROR = 0.002  # chance that independent canaries are taken for clusters
_FEWEST = 20  # canaries
_LONG = 60  # canaries, from which on the trend is a cubic one
_EQUAL = 1e-6  # of the range
_DUPLICATES = 0.05  # share of canaries
_BLOCKS = 4  # of equal scores
_REMEDY = "pass groups, one label each (all different where they are independent)"


def noticed_clusters(
    seen: Floats,
    unseen: Floats,
    shared: tuple[bool, bool] = (False, False),
    *,
    what: str = "canaries",
    remedy: str = _REMEDY,
) -> str:
    """Why canaries seem to come in clusters; empty where nothing shows it.

    Args:
        seen, unseen: Scores of shape ``(lags, trials, canaries)``.
        shared: Whether the trials share the canaries of each side.
        what: Is scored, in the plural.
        remedy: What to do.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> alone, other = rng.normal(size=(2, 2, 8, 100))
        >>> noticed_clusters(alone, other)
        ''
        >>> author = np.repeat(rng.normal(size=(2, 8, 20)), 5, axis=2)
        >>> noticed_clusters(alone + author, other)[:45]
        'scores of neighbouring canaries are alike (co'
    """
    for side in filter(_near, (seen, unseen)):
        share = max(_duplicates(side[:, trial]) for trial in range(side.shape[1]))
        if share > _DUPLICATES:
            return (
                f"{share:.0%} of {what} have the scores of another one, as near-duplicates do: "
                f"{remedy}"
            )
    found = [_neighbours(side, same) for side, same in zip((seen, unseen), shared, strict=True)]
    normal = np.stack([z for _, z in found])
    tests = np.concatenate([normal, normal.sum(axis=0, keepdims=True) / np.sqrt(2.0)])
    if stats.norm.sf(tests.max()) * tests.size > _ERROR:
        return ""
    correlation = max(float(r.max()) for r, _ in found)
    return (
        f"scores of neighbouring {what} are alike (correlation {correlation:.2f}), as those of "
        f"clusters are: {remedy}"
    )


def _neighbours(scores: Floats, shared: bool) -> tuple[Floats, Floats]:
    """Correlation of neighbours at each lag, over trials, and how many deviations that is."""
    lags, _, canaries = scores.shape
    if canaries < _FEWEST:
        return np.zeros(lags), np.zeros(lags)
    degree = 3 if canaries >= _LONG else 1
    places = np.polynomial.legendre.legvander(np.linspace(-1.0, 1.0, canaries), degree)
    trend = np.linalg.qr(places)[0]
    ranks = stats.rankdata(scores, axis=2)
    left = ranks - (ranks @ trend) @ trend.T
    length = (left**2).sum(axis=2)
    steps = np.diff(scores, axis=2)
    sorted_ = (steps >= 0.0).all(axis=2) | (steps <= 0.0).all(axis=2)
    useful = (length > 1e-9 * canaries**3) & ~sorted_
    each = (left[..., 1:] * left[..., :-1]).sum(axis=2) / np.where(useful, length, 1.0)
    number = useful.sum(axis=1)
    mean = np.where(useful, each, 0.0).sum(axis=1) / np.maximum(number, 1)
    independent = np.minimum(number, 1) if shared else number
    # Without clusters the mean is about -(degree + 1) / n.
    return mean, (mean + (degree + 1.0) / canaries) * np.sqrt(canaries * independent)


def _near(scores: Floats) -> bool:
    """Whether so many scores are so near to another one that duplicates are worth a search."""
    if scores.shape[2] < _FEWEST:
        return False
    ordered = np.sort(scores[0], axis=1)
    gaps = np.diff(ordered, axis=1)
    near = (gaps <= 10.0 * _EQUAL * (ordered[:, -1:] - ordered[:, :1])).mean(axis=1)
    return bool(near.max(initial=0.0) >= _DUPLICATES / 2.0)


def _duplicates(scores: Floats) -> float:
    """Share of canaries whose scores agree with another's at all lags; 0 on a grid.

    Args:
        scores: Shape ``(lags, canaries)``.
    """
    low, high = np.quantile(scores, [0.25, 0.75], axis=1, keepdims=True)
    varies = (high > low)[:, 0]
    if not varies.any() or scores.shape[1] < _FEWEST or _on_grid(scores[varies]):
        return 0.0
    scaled = ((scores - low)[varies] / (high - low)[varies]).T
    rounded = np.floor(scaled / _EQUAL + 0.37)
    counts = np.unique(rounded, axis=0, return_counts=True)[1]
    several = counts[counts > 1]
    # One block of equal scores, as of probabilities that round to 1, is no set of duplicates.
    return float(several.sum() / counts.sum()) if several.size >= _BLOCKS else 0.0


def _on_grid(scores: Floats) -> bool:
    """Whether scores have few values, half precision or up to seven digits."""
    if max(np.unique(row).size for row in scores) < scores.shape[1] / 10.0:
        return True
    bits = np.frexp(scores)[0] * 2.0**12
    size = np.floor(np.log10(np.where(scores == 0.0, 1.0, np.abs(scores))))
    digits = scores / 10.0 ** (size - 6.0)
    return any(bool((np.abs(part - np.round(part)) < 1e-3).all()) for part in (bits, digits))
