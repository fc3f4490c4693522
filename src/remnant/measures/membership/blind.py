"""The blind baseline: can seen texts be distinguished from unseen ones without any model?

If so, the two sets differ in themselves (their dates, topics, lengths), and an attack on a model
may succeed without the model remembering anything.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from remnant.errors import NotEnoughEvidence
from remnant.measures.statistics.roc import auc

Floats = NDArray[np.float64]
FOLDS = 5
ALARM = 0.99  # confidence of each of the one-sided bounds that make an audit void
LEAST = 2 * FOLDS  # texts of a side
GRID = 8  # means of pixels along each side of an image
_BUCKETS = 1 << 15
_WORD = re.compile(r"\w+|[^\w\s]")
_PENALTY = 1.0
_MOST_CHARACTERS = 4000  # of a text
# Folds share their training texts, so the mean over folds varies more than one test of as many
# texts: by 1 + FOLDS * test / train in variance (Nadeau and Bengio 2003).
_WIDENING = math.sqrt(1.0 + FOLDS * (1.0 / (FOLDS - 1.0)))


@dataclass(frozen=True, slots=True)
class BlindBaseline:
    """How well a classifier that sees only the texts distinguishes seen from unseen ones.

    Attributes:
        value: AUC, out of fold: every text is scored by a classifier that was not trained on it.
        low, high: Its 95 % interval.
        low_bound, high_bound: One-sided bounds of the AUC, each with confidence ``ALARM``.
        n_seen, n_unseen: Texts of each side.
    """

    value: float
    low: float
    high: float
    low_bound: float
    high_bound: float
    n_seen: int
    n_unseen: int

    @property
    def void(self) -> bool:
        """Whether 0.5 is outside of the bounds, so that an audit of these texts is void.

        An AUC above 0.5 shows that the sets differ. One below it shows that they were not drawn at
        random either, as where every seen text has a neighbour among the unseen ones.
        """
        return self.low_bound > 0.5 or self.high_bound < 0.5


def blind_baseline(
    seen_texts: Sequence[str], unseen_texts: Sequence[str], *, rng: np.random.Generator
) -> BlindBaseline:
    """Train classifiers on some of the texts, and test them on the others.

    A logistic regression reads the words, pairs of words, runs of three and four bytes, and a few
    counts (length, digits, capitals, lines, how well the text compresses). Five folds; scores are
    compared within a fold only, as ranks, since each fold has another classifier.

    Args:
        seen_texts, unseen_texts: The texts; the first 4 000 characters of each are read.
        rng: Draws the folds and the resamples behind the interval.

    Guarantees:
        * For two sets of texts drawn from the same source, ``void`` is true in at most about 2 % of
          audits; simulated.

    Raises:
        NotEnoughEvidence: A side has fewer than 10 texts.
    """
    _check_counts(len(seen_texts), len(unseen_texts), "texts")
    features = text_features([*seen_texts, *unseen_texts])
    return blind_classifier(features, len(seen_texts), rng=rng, records="texts")


def blind_classifier(
    features: sparse.csr_matrix, seen: int, *, rng: np.random.Generator, records: str = "records"
) -> BlindBaseline:
    """The blind baseline of records of any kind, by their features.

    Args:
        features: One row a record, those of the seen ones first.
        seen: How many are seen.
        rng: Draws the folds and the resamples behind the interval.
        records: What they are, for errors.

    Guarantees:
        * As ``blind_baseline``, if no feature of a record depends on which side it is on.

    Raises:
        NotEnoughEvidence: A side has fewer than 10 records.
    """
    counts = seen, features.shape[0] - seen
    _check_counts(*counts, records)
    folds = np.concatenate([rng.permutation(count) % FOLDS for count in counts])
    label = np.repeat([1.0, 0.0], counts)
    scores = np.empty(len(label))
    for fold in range(FOLDS):
        here = folds == fold
        weights, offset = _logistic(features[~here], label[~here])
        scores[here] = _ranked(features[here] @ weights + offset)
    sides = scores[label == 1], scores[label == 0]
    narrow, alarm = (
        auc(*sides, rng=rng, confidence=confidence, draws=500)
        for confidence in (0.95, 2.0 * ALARM - 1.0)
    )
    return BlindBaseline(
        value=narrow.value,
        low=max(0.0, narrow.value - _WIDENING * (narrow.value - narrow.low)),
        high=min(1.0, narrow.value + _WIDENING * (narrow.high - narrow.value)),
        low_bound=max(0.0, alarm.value - _WIDENING * (alarm.value - alarm.low)),
        high_bound=min(1.0, alarm.value + _WIDENING * (alarm.high - alarm.value)),
        n_seen=counts[0],
        n_unseen=counts[1],
    )


def _check_counts(seen: int, unseen: int, records: str) -> None:
    if min(seen, unseen) < LEAST:
        raise NotEnoughEvidence(
            f"{seen} seen and {unseen} unseen {records} are too few to compare; it takes at least "
            f"{LEAST} of each.",
            hint=f"Pass more {records}.",
        )


def _ranked(scores: Floats) -> Floats:
    """Ranks as shares of the fold; equal scores share theirs."""
    order = np.sort(scores)
    middle = np.searchsorted(order, scores, "left") + np.searchsorted(order, scores, "right")
    return np.asarray(middle / (2.0 * len(scores)))


def text_features(texts: Sequence[str]) -> sparse.csr_matrix:
    """Return one row a text: hashed words and bytes of length 1, and a few standardised counts."""
    rows = [_hashed(text[:_MOST_CHARACTERS]) for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(buckets) for buckets, _ in rows])])
    counted = sparse.csr_matrix(
        (
            np.concatenate([np.log1p(counts) for _, counts in rows]),
            np.concatenate([buckets for buckets, _ in rows]),
            starts,
        ),
        shape=(len(texts), _BUCKETS),
    )
    present = np.asarray((counted > 0).sum(axis=0)).ravel()
    rarity = np.log((1.0 + len(texts)) / (1.0 + present)) + 1.0
    weighted = counted @ sparse.diags(rarity)
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    unit = sparse.diags(1.0 / np.maximum(norms, 1e-12)) @ weighted
    numbers = np.array([_counts(text[:_MOST_CHARACTERS]) for text in texts])
    spread = np.maximum(numbers.std(axis=0), 1e-12)
    standard = np.clip((numbers - numbers.mean(axis=0)) / spread, -5.0, 5.0)
    return sparse.csr_matrix(sparse.hstack([unit, 0.3 * standard]))


def with_labels(features: sparse.csr_matrix, labels: NDArray[np.int64]) -> sparse.csr_matrix:
    """Return features with the class of each record beside them, as one column a class."""
    classes, places = np.unique(labels, return_inverse=True)
    columns = (np.ones(len(labels)), (np.arange(len(labels)), places))
    hot = sparse.csr_matrix(columns, shape=(len(labels), len(classes)))
    return sparse.csr_matrix(sparse.hstack([features, hot]))


def array_features(arrays: NDArray[np.float32]) -> sparse.csr_matrix:
    """Return one row an image, or another array: its pixels in a coarse grid, and statistics.

    Args:
        arrays: Images ``(n, channels, height, width)``, or arrays ``(n, ...)`` of any shape.

    Returns:
        Standardised numbers: for images at most ``GRID`` x ``GRID`` means a channel, for others at
        most ``GRID * GRID * 3`` means of neighbours; the mean, the spread, the ends, the share of
        zeros, the mean step between neighbours, and a histogram. Together their squares sum to
        about 4, so that many numbers do not outweigh the penalty.
    """
    flat = arrays.reshape(len(arrays), -1).astype(np.float64)
    if arrays.ndim == 4:
        coarse = _pooled(_pooled(arrays.astype(np.float64), 2, GRID), 3, GRID)
    else:
        coarse = _pooled(flat, 1, GRID * GRID * 3)
    steps = np.abs(np.diff(arrays.astype(np.float64), axis=-1)).reshape(len(arrays), -1)
    edges = np.quantile(flat, np.linspace(0.0, 1.0, 17)[1:-1])
    bins = [(flat <= edge).mean(axis=1) for edge in np.unique(edges)]
    numbers = np.column_stack(
        [
            coarse.reshape(len(arrays), -1),
            *(flat.mean(axis=1), flat.std(axis=1), flat.min(axis=1), flat.max(axis=1)),
            *((flat == 0.0).mean(axis=1), *bins),
            *([steps.mean(axis=1), steps.std(axis=1)] if steps.shape[1] else []),
        ]
    )
    spread = numbers.std(axis=0)
    used = spread > 1e-9 * np.maximum(np.abs(numbers).max(axis=0), 1e-12)
    if not used.any():
        return sparse.csr_matrix(np.zeros((len(arrays), 1)))
    standard = np.clip((numbers[:, used] - numbers[:, used].mean(axis=0)) / spread[used], -5.0, 5.0)
    return sparse.csr_matrix(standard * (2.0 / math.sqrt(int(used.sum()))))


def _pooled(arrays: Floats, axis: int, most: int) -> Floats:
    """Means of neighbours along an axis, so that at most so many are left."""
    length = arrays.shape[axis]
    if length <= most:
        return arrays
    starts = np.linspace(0, length, most, endpoint=False).astype(np.int64)
    shape = [1] * arrays.ndim
    shape[axis] = -1
    sizes = np.diff(np.append(starts, length)).reshape(shape)
    return np.asarray(np.add.reduceat(arrays, starts, axis=axis) / sizes)


def _hashed(text: str) -> tuple[NDArray[np.int64], Floats]:
    """The buckets that a text's words and runs of bytes fall into, and how many in each."""
    words = _WORD.findall(text.lower())
    pairs = (f"{first} {second}" for first, second in pairwise(words))
    named = [zlib.crc32(word.encode("utf-8", "replace")) for word in (*words, *pairs)]
    codes = [np.array(named, dtype=np.uint64)]
    raw = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8).astype(np.uint64)
    for length in (3, 4):
        if len(raw) >= length:
            run = np.zeros(len(raw) - length + 1, dtype=np.uint64)
            for place in range(length):
                run = run * np.uint64(257) + raw[place : len(raw) - length + 1 + place]
            codes.append(run + np.uint64(length << 40))
    mixed = np.concatenate(codes) * np.uint64(0x9E3779B97F4A7C15)
    buckets, counts = np.unique(mixed >> np.uint64(64 - 15), return_counts=True)
    return buckets.astype(np.int64), counts.astype(np.float64)


def _counts(text: str) -> list[float]:
    length = max(len(text), 1)
    words = text.split()
    return [
        math.log1p(len(text)),
        math.log1p(len(words)),
        sum(map(len, words)) / max(len(words), 1),
        sum(map(str.isdigit, text)) / length,
        sum(map(str.isupper, text)) / length,
        sum(not (sign.isalnum() or sign.isspace()) for sign in text) / length,
        text.count("\n") / length,
        len(zlib.compress(text.encode("utf-8", "replace"))) / length,
    ]


def _logistic(features: sparse.csr_matrix, label: Floats) -> tuple[Floats, float]:
    """Weights and offset of a logistic regression in which both classes weigh the same."""
    sign = 2.0 * label - 1.0
    share = np.where(label == 1, 0.5 / (label == 1).mean(), 0.5 / (label == 0).mean())

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, offset = parameters[:-1], parameters[-1]
        margin = sign * (features @ weights + offset)
        pull = -sign * share * special.expit(-margin)
        value = float((share * np.logaddexp(0.0, -margin)).sum())
        value += 0.5 * _PENALTY * float(weights @ weights)
        return value, np.append(features.T @ pull + _PENALTY * weights, pull.sum())

    start = np.zeros(features.shape[1] + 1)
    options = {"maxiter": 100}
    solved = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return solved.x[:-1], float(solved.x[-1])
