"""What the pool says of each sample in the end: LiRA, RMIA, counterfactual memorization."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import cast

import numpy as np
from numpy.typing import NDArray

from remnant.measures import (
    Lira,
    LiraCentre,
    LiraVariance,
    counterfactual_memorization,
    flip_rate,
    lira,
    lira_leave_one_out,
    rank_agreement,
    rmia,
)
from remnant.probes import MARGINS
from remnant.studies.prediction.early_looks import LOSS, Bools, EarlyLooks, Floats
from remnant.studies.prediction.recipe import TruthSettings
from remnant.studies.prediction.result import (
    KindMemorisation,
    Memorisation,
    TruthAgreement,
    TruthMeasure,
    TruthScatter,
)
from remnant.studies.shared.estimates import Estimate

SCATTERED = 400
_PAIRS = 2  # of complementary models behind RMIA: four references, two of which saw each sample


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """What was memorised in the end.

    Attributes:
        local: LiRA of each target by all other models, log ratios, ``(targets, n)``.
        lira: Share of all models about which LiRA is right, each attacked by the others, ``(n,)``.
        counterfactual: Mean signal of the models that saw a sample less that of the others.
        rmia: Mean share of unseen samples that a sample outdoes, over the models that saw it.
        scores: LiRA of every model by all others, ``(models, n)``.
        convention: Of the local LiRA, in words.
        false_alarms: Estimated share of false positives among each target's memorised samples:
            the rate of unseen samples called memorised, divided by that of seen ones. It is high
            where a model differs from the others.
    """

    local: Floats
    lira: Floats
    counterfactual: Floats
    rmia: Floats
    scores: Floats
    convention: str
    false_alarms: Floats


def find_truth(evidence: EarlyLooks, settings: TruthSettings) -> Truth:
    """Attack every model by the others.

    Raises:
        NotEnoughEvidence: Too few models for a variance.
    """
    signal = evidence.final[:, MARGINS.index(settings.signal)]
    seen = evidence.pool.seen
    everyone = lira_leave_one_out(scores=signal, seen=seen, variance="per_example")
    attacks = [attacked(signal, seen, model, settings) for model in range(len(seen))]
    scores = np.stack([attack.scores for attack in attacks])
    targets = list(evidence.targets)
    return Truth(
        local=scores[targets],
        lira=everyone.success_rate,
        counterfactual=counterfactual_memorization(scores=signal, seen=seen).values,
        rmia=_rmia(np.exp(-evidence.final[:, LOSS]), seen),
        scores=scores,
        convention=attacks[0].convention,
        false_alarms=_false_alarms(scores[targets], seen[targets], settings.threshold),
    )


def _false_alarms(scores: Floats, seen: Bools, threshold: float) -> Floats:
    """How often unseen samples pass the threshold, over how often seen ones do; at most 1."""
    rates = [
        (np.mean(row[~own] >= threshold), np.mean(row[own] >= threshold))
        for row, own in zip(scores, seen, strict=True)
    ]
    return np.array([min(1.0, out / hit) if hit > 0 else 0.0 for out, hit in rates])


def attacked(signal: Floats, seen: Bools, target: int, settings: TruthSettings) -> Lira:
    """LiRA of one model of a pool by all the others."""
    others = np.arange(len(signal)) != target
    return lira(
        target=signal[target],
        shadow=signal[others],
        seen=seen[others],
        centre=cast(LiraCentre, settings.centre),
        variance=cast(LiraVariance, settings.variance),
    )


def _rmia(probability: Floats, seen: Bools) -> Floats:
    """RMIA of every model by two pairs of others, averaged where the model saw the sample."""
    models = len(probability)
    total = np.zeros(seen.shape[1])
    for target in range(models):
        first = 2 * (target // 2) + 2
        chosen = [(first + step) % models for step in range(2 * _PAIRS)]
        unseen = ~seen[target]
        attack = rmia(
            target=probability[target],
            reference=probability[chosen],
            seen=seen[chosen],
            other_target=probability[target, unseen],
            other_reference=probability[chosen][:, unseen],
            other_seen=seen[chosen][:, unseen],
        )
        total += np.where(seen[target], attack.scores, 0.0)
    return np.asarray(total / seen.sum(axis=0))


def memorisation(
    truth: Truth, evidence: EarlyLooks, settings: TruthSettings, *, confidence: float
) -> Memorisation:
    """Return what was memorised, how stable that is, and how its measures agree."""
    seen = evidence.pool.seen
    flips = flip_rate(
        scores=truth.scores, seen=seen, threshold=settings.threshold, confidence=confidence
    )
    measures: dict[TruthMeasure, Floats] = {
        "lira": truth.lira,
        "counterfactual": truth.counterfactual,
        "rmia": truth.rmia,
    }
    chosen = _scattered(evidence.kinds)
    own = seen[evidence.targets[0]]
    return Memorisation(
        models=len(seen),
        n=seen.shape[1],
        signal=settings.signal,
        convention=truth.convention,
        threshold=settings.threshold,
        memorised_share=float(np.mean(truth.local[0, own] >= settings.threshold)),
        false_alarms=tuple(truth.false_alarms.tolist()),
        false_alarm_limit=settings.false_alarms,
        flip_rate=Estimate.of(flips),
        persistence=flips.persistence,
        agreement=tuple(
            _agreement(first, second, measures, confidence)
            for first, second in combinations(measures, 2)
        ),
        scatter=TruthScatter(
            lira=tuple(truth.lira[chosen].tolist()),
            counterfactual=tuple(truth.counterfactual[chosen].tolist()),
        ),
        by_kind=tuple(
            KindMemorisation(
                kind=kind,
                n=int(mine.sum()),
                **{name: float(values[mine].mean()) for name, values in measures.items()},
            )
            for kind, mine in by_kind(evidence.kinds)
        ),
    )


def _agreement(
    first: TruthMeasure,
    second: TruthMeasure,
    measures: dict[TruthMeasure, Floats],
    confidence: float,
) -> TruthAgreement:
    """The rank correlation of two measures of memorisation."""
    ranks = rank_agreement(first=measures[first], second=measures[second], confidence=confidence)
    return TruthAgreement(
        first=first, second=second, value=ranks.value, low=ranks.low, high=ranks.high
    )


def by_kind(kinds: NDArray[np.str_]) -> Iterable[tuple[str, Bools]]:
    """Yield each kind of sample and a mask of its samples; the clean ones last."""
    names = [str(name) for name in dict.fromkeys(kinds.tolist())]
    for name in sorted(names, key=lambda name: name == "clean"):
        yield name, kinds == name


def _scattered(kinds: NDArray[np.str_]) -> NDArray[np.int64]:
    """Samples to draw: evenly spaced, so that every kind has its share."""
    return np.unique(np.linspace(0, kinds.size - 1, min(SCATTERED, kinds.size)).astype(np.int64))
