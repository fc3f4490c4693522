"""Deterministic SGD does not forget: who knows the batch order replays it and compares.

An example is used once, in one batch, or another stands in its place. Everything else is the same.
An adversary who knows the start, the data and the order of all batches trains both models and looks
which one was released: right for ever, as long as the two differ in one bit. One who does not know
the order after that batch replays others, and the advantage fades.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from torch import Tensor

from remnant.errors import require

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """How often each adversary is right about whether the example was used.

    Attributes:
        lags: Steps since it was used, from 0; shape ``(lags,)``.
        known_order: Accuracy of the adversary who knows the order of the batches.
        unknown_order: Accuracy of the one who replays orders of their own.
        unknown_low, unknown_high: Its interval over examples.
        trials: Examples, each attacked in a model that used it and in one that did not.
        replays: Orders that the second adversary tries.
        confidence: Of the interval.
    """

    lags: NDArray[np.int64]
    known_order: Floats
    unknown_order: Floats
    unknown_low: Floats
    unknown_high: Floats
    trials: int
    replays: int
    confidence: float


def deterministic_replay(
    *,
    inputs: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
    trials: int = 16,
    clean_steps: int = 50,
    lags: Sequence[int] = (0, 1, 2, 5, 10, 20, 50, 100, 200),
    batch: int = 50,
    learning_rate: float = 0.1,
    hidden: Sequence[int] = (),
    replays: int = 8,
    confidence: float = 0.95,
    dtype: torch.dtype = torch.float32,
) -> Replay:
    """Train twins that differ in one use of one example, and let two adversaries distinguish them.

    The model is softmax regression, or a ReLU network with ``hidden`` layers, trained by plain SGD
    in shuffled epochs. The last ``2 * trials`` rows are the examples and what stands in their
    places; nothing else uses them.

    The adversary who knows the order takes the twin whose weights are the released ones, bit for
    bit; where both are, a coin is tossed. The other averages, over replays of each twin, the loss
    on the example, and takes the twin whose mean is nearer to the released model's.

    Args:
        inputs: Shape ``(n, ...)``, flattened.
        labels: Classes from 0, shape ``(n,)``.
        rng: Orders, start and examples come from it.
        trials: How many examples.
        clean_steps: Steps before the one that holds the example.
        lags: Steps after that one at which both guess, rising.
        batch: Rows a step.
        learning_rate: Of SGD.
        hidden: Widths of the hidden layers.
        replays: Orders that the second adversary tries.
        confidence: Of the interval over examples.
        dtype: Of the arithmetic; the coarser, the sooner twins may meet.

    Raises:
        InvalidInput: Too few rows, numbers out of range; all faults at once.
    """
    rows = torch.as_tensor(np.asarray(inputs, dtype=np.float64)).flatten(1).to(dtype)
    classes = torch.as_tensor(np.asarray(labels, dtype=np.int64))
    clean = len(rows) - 2 * trials
    counts = (("trials", trials, 2), ("clean_steps", clean_steps, 0), ("batch", batch, 1))
    faults = [
        f"{name}={value} is less than {least}"
        for name, value, least in (*counts, ("replays", replays, 1))
        if value < least
    ]
    if len(rows) != len(classes):
        faults.append(f"inputs have {len(rows)} rows and labels {len(classes)}")
    elif clean < batch:
        faults.append(f"{len(rows)} rows leave {clean} to train on beside 2 x trials={2 * trials}")
    if list(lags) != sorted(set(lags)) or len(lags) == 0 or lags[0] < 0:
        faults.append(f"lags={list(lags)} are not rising from 0 on")
    if not bool(torch.isfinite(rows).all()):
        faults.append("inputs hold values that are NaN or infinite")
    if not 0.0 < confidence < 1.0:
        faults.append(f"confidence={confidence!r} is not between 0 and 1")
    require(faults)

    race = _Race(rows, classes, clean=clean, batch=batch, rate=learning_rate)
    model = race.start([rows.shape[1], *hidden, int(classes.max()) + 1], rng)
    shared = race.batches(rng)
    for _ in range(clean_steps):
        model = race.step(model, next(shared))
    twins = race.plant(model, next(shared), trials)
    orders = [shared, *(race.batches(rng) for _ in range(replays))]
    runs, known, guesses, done = [twins] * len(orders), [], [], 0
    for lag in lags:
        for _ in range(lag - done):
            runs = [race.step(run, next(order)) for run, order in zip(runs, orders, strict=True)]
        done = lag
        known.append(race.accuracy_by_weights(runs[0]))
        guesses.append(race.accuracy_by_loss(runs[0], runs[1:]))
    mean, low, high = _over_examples(np.array(guesses), confidence)
    return Replay(
        lags=np.array(lags),
        known_order=np.array(known),
        unknown_order=mean,
        unknown_low=low,
        unknown_high=high,
        trials=trials,
        replays=replays,
        confidence=float(confidence),
    )


def _over_examples(right: Floats, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Mean and interval of ``(lags, trials)`` shares of two guesses each.

    An example's two guesses are not independent, so the example is the unit; the interval is the
    exact one of a proportion at that size, which no less certain share of halves can exceed.
    """
    trials = right.shape[1]
    mean = right.mean(axis=1)
    hits = mean * trials
    tail = (1.0 - confidence) / 2.0
    low = np.where(hits > 0, stats.beta.ppf(tail, np.maximum(hits, 1e-9), trials - hits + 1), 0.0)
    misses = trials - hits
    high = np.where(misses > 0, stats.beta.isf(tail, hits + 1, np.maximum(misses, 1e-9)), 1.0)
    return mean, low, high


class _Race:
    """Many models side by side on the same batches."""

    def __init__(
        self, rows: Tensor, classes: Tensor, *, clean: int, batch: int, rate: float
    ) -> None:
        self.rows, self.classes = rows, classes
        self.clean, self.batch, self.rate = clean, batch, rate

    def start(self, sizes: list[int], rng: np.random.Generator) -> list[Tensor]:
        """Return one model's layers, weights with the bias as their last row."""
        layers = []
        for width, out in itertools.pairwise(sizes):
            drawn = rng.standard_normal((1, width + 1, out)) / np.sqrt(width)
            layers.append(torch.as_tensor(drawn).to(self.rows.dtype))
        return layers

    def batches(self, rng: np.random.Generator) -> Iterator[Tensor]:
        """Yield batches of one epoch after another, each in an order of its own, without end."""
        own = np.random.default_rng(rng.integers(2**63))
        while True:
            order = torch.from_numpy(own.permutation(self.clean))
            for first in range(0, self.clean - self.batch + 1, self.batch):
                yield order[first : first + self.batch]

    def plant(self, model: list[Tensor], index: Tensor, trials: int) -> list[Tensor]:
        """Make the twins and take their one different step.

        Model ``t`` meets example ``t``, and model ``trials + t`` its stand-in, in the first place
        of the batch.
        """
        twins = [layer.expand(2 * trials, *layer.shape[1:]).clone() for layer in model]
        index = index.expand(2 * trials, -1).clone()
        index[:, 0] = self.clean + torch.arange(2 * trials)
        return self.step(twins, index)

    def step(self, layers: list[Tensor], index: Tensor) -> list[Tensor]:
        """Return the layers of all models after one step on these rows."""
        layers = [layer.detach().requires_grad_(True) for layer in layers]
        slopes = torch.autograd.grad(self._loss(layers, index).sum(), layers)
        with torch.no_grad():
            return [a - self.rate * b for a, b in zip(layers, slopes, strict=True)]

    def accuracy_by_weights(self, twins: list[Tensor]) -> float:
        """Accuracy of taking the twin with the released weights."""
        half = len(twins[0]) // 2
        same = torch.ones(half, dtype=torch.bool)
        for layer in twins:
            same &= (layer[:half] == layer[half:]).flatten(1).all(1)
        return float(1.0 - 0.5 * same.double().mean())

    def accuracy_by_loss(self, released: list[Tensor], replays: list[list[Tensor]]) -> Floats:
        """Return, per example, the share of its two models identified by the replays' mean loss."""
        own, others = self._losses(released), [self._losses(replay) for replay in replays]
        seen, unseen = torch.stack(others).mean(0).chunk(2)
        mine_seen, mine_unseen = own.chunk(2)

        def right(mine: Tensor, truth: Tensor, other: Tensor) -> Tensor:
            near, far = (mine - truth).abs(), (mine - other).abs()
            return (near < far).double() + 0.5 * (near == far)

        both = right(mine_seen, seen, unseen) + right(mine_unseen, unseen, seen)
        return np.asarray((both / 2).numpy())

    def _losses(self, layers: list[Tensor]) -> Tensor:
        """The loss of each model on its example, whether it used it or the stand-in."""
        half = len(layers[0]) // 2
        index = self.clean + torch.arange(half).repeat(2)[:, None]
        with torch.no_grad():
            return self._loss(layers, index).double()

    def _loss(self, layers: list[Tensor], index: Tensor) -> Tensor:
        """Mean loss of each model on its rows; ``index`` is ``(batch,)`` or ``(models, batch)``."""
        hidden, labels = self.rows[index], self.classes[index]
        for number, layer in enumerate(layers):
            hidden = torch.matmul(hidden, layer[:, :-1]) + layer[:, -1:]
            if number + 1 < len(layers):
                hidden = hidden.relu()
        labels = labels.expand(hidden.shape[:2])
        chosen = hidden.log_softmax(-1).gather(-1, labels[..., None])[..., 0]
        return -chosen.mean(-1)
