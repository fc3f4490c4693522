"""What prediction rests on: looks at a few models along their training, and a pool of all models.

Whoever trains the models, image classifiers or adapters of a language model, leaves these arrays;
from here on nobody asks where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from remnant.measures import StoppingPoint, bearable_mahalanobis, psmi, stopping_point
from remnant.probes import MARGINS
from remnant.records import Record
from remnant.studies.prediction.recipe import PredictSettings
from remnant.studies.prediction.shadow_pool import PoolScores

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
LOSS, LOG_ODDS, LOGIT_GAP = (MARGINS.index(name) for name in ("loss", "log_odds", "logit_gap"))
_LOOKS = ("psmi", "mahalanobis", "smi", "trace", "signals")  # the last one marks a complete set


@dataclass(frozen=True, slots=True, eq=False)
class Looks:
    """What was seen of the targets along their training.

    Attributes:
        steps: Moments: updates done, the first is 0 and the last the end of training.
        layers: Whose hidden states were used; "last" is what enters the last dense layer.
        signals: Shape ``(moments, targets, 3, n)``: loss, log-odds and logit gap of the examples
            that the target was trained on; others may be NaN.
        psmi, mahalanobis: Risks, shape ``(moments, layers, targets, n)``; NaN where the target was
            not trained on the example, and everywhere at the first moment. Distances are those of
            the first target alone, NaN for the others.
        smi: Shape ``(moments, layers, targets)``; NaN at the first moment.
        trace: Losses of the first target after each epoch, shape ``(epochs, n)``; NaN likewise.
    """

    steps: tuple[int, ...]
    layers: tuple[str, ...]
    signals: Floats
    psmi: Floats
    mahalanobis: Floats
    smi: Floats
    trace: Floats

    def stop(self, seen: Bools, *, drop: float, target: int = 0) -> StoppingPoint:
        """Return when the median loss of a target's own training examples had dropped enough.

        Args:
            seen: Which examples each target was trained on, ``(targets, n)``.
            drop: Share of the first median that must be gone.
            target: Which one.
        """
        losses = self.signals[:, target, LOSS][:, seen[target]]
        return stopping_point(losses=losses, drop=drop)

    def stopped(self, seen: Bools, *, drop: float, target: int = 0) -> int:
        """Return the moment of the stop; where the loss never dropped enough, the closest one."""
        point = self.stop(seen, drop=drop, target=target)
        return max(1, point.closest if point.index is None else point.index)


@dataclass(frozen=True, slots=True, eq=False)
class EarlyLooks:
    """All that the results are made from.

    Attributes:
        looks: At the targets.
        targets: The targets' numbers among the plan's members.
        pool: Scores ``(models, 6, n)``: the three signals at the stop, then at the end.
        epoch: Updates in an epoch.
        labels: Of the examples.
        kinds: What each example is: "clean", or the kind of canary.
        what: The task and the models in words, for the scope.
    """

    looks: Looks
    targets: tuple[int, ...]
    pool: PoolScores
    epoch: float
    labels: NDArray[Any]
    kinds: NDArray[np.str_]
    what: str

    @property
    def early(self) -> Floats:
        """The signals of all models at the stop, ``(models, 3, n)``."""
        return self.pool.scores[:, : len(MARGINS)]

    @property
    def final(self) -> Floats:
        """The signals of all models at the end, ``(models, 3, n)``."""
        return self.pool.scores[:, len(MARGINS) :]


def target_members(targets: int) -> tuple[int, ...]:
    """Return which members are looked at early: one of each pair, so that no two are complements.

    Example:
        >>> target_members(3)
        (0, 2, 4)
    """
    return tuple(range(0, 2 * targets, 2))


def risks_of(
    hidden: NDArray[Any] | Tensor,
    labels: NDArray[Any],
    seen: Bools,
    settings: PredictSettings,
    rng: np.random.Generator,
    *,
    far: bool = True,
) -> tuple[Floats, float, Floats]:
    """Return PSMI's risk, SMI and the Mahalanobis distance of one target's own training examples.

    Args:
        hidden: Hidden states of the examples that the target was trained on, in their order; PSMI
            is computed where they are.
        labels: Of all examples.
        seen: Which examples those are.
        settings: Directions and components.
        rng: Draws the directions.
        far: Whether the distance is wanted; it takes longer than all the rest.

    Returns:
        Risks of all examples, NaN where the target was not trained on them; between them SMI.
    """
    information = psmi(hidden=hidden, labels=labels[seen], directions=settings.directions, rng=rng)
    risk, distance = np.full((2, seen.size), np.nan)
    risk[seen] = information.risk
    if far:
        here = hidden.cpu().numpy() if isinstance(hidden, Tensor) else hidden
        outliers = bearable_mahalanobis(hidden=here, components=settings.components)
        distance[seen] = outliers.distances
    return risk, information.smi, distance


def trace_steps(*, epoch: float, last: int) -> tuple[int, ...]:
    """Return after how many updates the first target's losses are kept: the ends of its epochs.

    Example:
        >>> trace_steps(epoch=2.5, last=8)
        (2, 5, 8)
    """
    return tuple(dict.fromkeys(round(n * epoch) for n in range(1, int(last / epoch + 1e-9) + 1)))


def keep_looks(record: Record, looks: Looks) -> None:
    """Put the looks into the record."""
    record.put_array("looks.steps", np.array(looks.steps))
    record.put_array("looks.layers", np.array(looks.layers))
    for name in _LOOKS:
        record.put_array(f"looks.{name}", getattr(looks, name))


def kept_looks(record: Record) -> Looks | None:
    """Return the looks that the record has; None where the targets are still to be trained."""
    if "looks.signals" not in record.array_names():
        return None
    return Looks(
        steps=tuple(record.array("looks.steps").tolist()),
        layers=tuple(record.array("looks.layers").tolist()),
        **{name: record.array(f"looks.{name}") for name in _LOOKS},
    )
