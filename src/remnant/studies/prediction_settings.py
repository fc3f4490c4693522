"""When targets are looked at, what counts as memorised, and what is asked of the protect list."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from remnant.errors import PlanError, require
from remnant.studies.settings import among, number, whole_number

PREDICTORS = ("psmi", "loss", "logit_gap", "mahalanobis", "lt_iqr", "early_lira")
EARLY = ("psmi", "loss", "logit_gap", "mahalanobis")  # one model, one pass
CENTRES = ("mean", "median")
VARIANCES = ("per_example", "pooled", "global")
TRUTH_SIGNALS = ("log_odds", "logit_gap")

_DENSE = (0.2, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
_GROWTH = 1.2  # of the epochs between later moments


@dataclass(frozen=True, kw_only=True)
class PredictSettings:
    """When and where the targets are looked at, and what is asked of the list.

    Attributes:
        targets: How many models are looked at early: members 0, 2, 4, ... of the plan. All but the
            last make the protect list's rule; the last one is the second seed that checks it.
        moments: Epochs at which they are looked at; a grid that thins out, if not given.
        drop: Share of the first median loss that must be gone at the stop.
        layers: Names of layers whose hidden states are used; "last" is what enters the last dense
            layer. The first one named is the main one.
        directions: Of PSMI.
        components: Of Mahalanobis, at most.
        predictor: By which the list is made.
        miss: Largest share of memorised samples that the list may leave out.
        limit: Largest share of samples that the list may hold; the verdict asks for it.
        tpr: At which the false-positive rate is read.
        confidence: Of all intervals.
        list_confidence: With which the next run's list keeps to its stated rate.
    """

    targets: int = 4
    moments: tuple[float, ...] = ()
    drop: float = 0.95
    layers: tuple[str, ...] = ("last",)
    directions: int = 2000
    components: int = 500
    predictor: str = "psmi"
    miss: float = 0.2
    limit: float = 0.5
    tpr: float = 0.75
    confidence: float = 0.95
    list_confidence: float = 0.9

    def __post_init__(self) -> None:
        for name in ("moments", "layers"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        faults = whole_number("predict.targets", self.targets, 1)
        faults += whole_number("predict.directions", self.directions, 2)
        faults += whole_number("predict.components", self.components, 1)
        faults += among("predict.predictor", self.predictor, EARLY)
        for name in ("drop", "miss", "limit", "tpr", "confidence", "list_confidence"):
            value = getattr(self, name)
            if not number(value) or not 0 < value < 1:
                faults.append(f"predict.{name}={value!r} is not between 0 and 1")
        if not isinstance(self.moments, tuple) or not all(
            number(one) and one > 0 and math.isfinite(one) for one in self.moments
        ):
            faults.append(f"predict.moments={self.moments!r} are not epochs above 0")
        if not _names(self.layers) or len(set(self.layers)) < len(self.layers):
            faults.append(f"predict.layers={self.layers!r} are not distinct names of layers")
        require(faults, error=PlanError, hint="Mend the recipe.")

    def steps(self, *, epoch: float, last: int) -> tuple[int, ...]:
        """Return after how many updates targets are looked at: 0 first, ``last`` last.

        Args:
            epoch: Updates in an epoch.
            last: Updates of the whole training.

        Raises:
            PlanError: A moment lies beyond the end.

        Example:
            >>> PredictSettings().steps(epoch=10, last=60)
            (0, 2, 4, 6, 8, 10, 15, 20, 30, 40, 50, 60)
        """
        if beyond := [one for one in self.moments if round(one * epoch) > last]:
            raise PlanError(
                f"predict.moments={beyond} are beyond the {last / epoch:g} epochs of training.",
                hint="Raise the plan's steps or drop these moments.",
            )
        wanted = list(self.moments)
        if not wanted:
            wanted = list(_DENSE)
            while wanted[-1] * _GROWTH * epoch < last:  # 9.6, 11.5, 13.8, ...
                wanted.append(wanted[-1] * _GROWTH)
        grid = {round(one * epoch) for one in wanted} | {0, last}
        return tuple(sorted(one for one in grid if one <= last))


@dataclass(frozen=True, kw_only=True)
class PlantedSettings:
    """How many canaries of each kind stand among the examples, each seen by half of the models."""

    mislabelled: int = 0
    odd: int = 0
    blank: int = 0

    def __post_init__(self) -> None:
        faults = [
            fault
            for name, count in self.counts.items()
            for fault in whole_number(f"canaries.{name}", count, 0)
        ]
        require(faults, error=PlanError, hint="Mend the recipe.")

    @property
    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        return {"mislabelled": self.mislabelled, "odd": self.odd, "blank": self.blank}


@dataclass(frozen=True, kw_only=True)
class TruthSettings:
    """What counts as memorised in the end.

    Attributes:
        signal: Of the models, that LiRA and counterfactual memorization read.
        centre, variance: Of local LiRA; the global one has means and per-example variances. One
            variance for all samples by default: with some fifty models those of single samples
            are so uncertain that a model here and there has memorised samples by luck.
        threshold: A sample is memorised where local LiRA's log ratio is at least this.
        thresholds: Further ones, for which prediction is held against the truth too.
        false_alarms: A target of whose memorised samples more than this share are to be taken for
            false alarms, going by samples that it never saw, makes no rule and checks none.
    """

    signal: str = "logit_gap"
    centre: str = "mean"
    variance: str = "pooled"
    threshold: float = 4.0
    thresholds: tuple[float, ...] = (0.0, 2.0, 4.0, 6.0, 8.0)
    false_alarms: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.thresholds, list):
            object.__setattr__(self, "thresholds", tuple(self.thresholds))
        faults = among("truth.signal", self.signal, TRUTH_SIGNALS)
        faults += among("truth.centre", self.centre, CENTRES)
        faults += among("truth.variance", self.variance, VARIANCES)
        if not number(self.threshold) or not math.isfinite(self.threshold):
            faults.append(f"truth.threshold={self.threshold!r} is not a number")
        if not isinstance(self.thresholds, tuple) or not all(number(t) for t in self.thresholds):
            faults.append(f"truth.thresholds={self.thresholds!r} are not numbers")
        if not number(self.false_alarms) or not 0 < self.false_alarms <= 1:
            faults.append(f"truth.false_alarms={self.false_alarms!r} is not above 0 and at most 1")
        require(faults, error=PlanError, hint="Mend the recipe.")


def _names(layers: Any) -> bool:
    return isinstance(layers, tuple) and bool(layers) and all(isinstance(o, str) for o in layers)
