"""From every member's reactions to what was memorised; touches no model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.features.feature_score import TIE, MemberScores, member_scores
from remnant.measures.statistics.crossed_interval import (
    crossed_difference,
    crossed_mean,
    crossed_share,
)
from remnant.measures.statistics.rank_agreement import linear_agreement, rank_agreement
from remnant.plans import FeaturePlan
from remnant.records import Record
from remnant.studies.features.recipe import FeatureStudy, ScoreSettings
from remnant.studies.features.result import (
    Activations,
    ByInfluence,
    Canary,
    Half,
    Influence,
    InfluenceChange,
    Models,
    NoHalf,
    Spread,
    Through,
    VariantResult,
    WhiteBox,
)
from remnant.studies.shared.estimates import Estimate

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
SHOWN_UNITS = 20
NO_CANARY = "no canary was chosen for it"


def variant_result(
    study: FeatureStudy,
    record: Record,
    name: str,
    *,
    label: str,
    changes: str,
    high: Bools | None,
    epoch: int,
) -> VariantResult:
    """Measure one variant from its arrays.

    Args:
        study: The variant, whole.
        record: Holds its arrays.
        name: Before the dot in their names.
        label: What it is called.
        changes: How it differs from the recipe itself, in words.
        high: Which canaries were chosen for a high influence; None where chosen at random.
        epoch: Updates of an epoch.
    """
    plan, settings = study.plan, study.score

    def array(what: str) -> Any:
        stored = f"{name}.{what}"
        return record.array(stored) if stored in record.array_names() else None

    scores = member_scores(array("unique"), array("controls"), array("null_means"))
    places = record.array("canaries.places")
    accuracy = _mean(array("test_accuracy")[plan.bare], settings)
    epochs = array("updates") / epoch
    planted_m = scores.value[plan.grid]
    significant = scores.p_value <= settings.significance + 1e-12
    shares = [
        crossed_share(significant[who], confidence=settings.confidence)
        for who in (plan.grid, plan.bare)
    ]
    before = array("influence_before")
    beyond_m = planted_m - scores.value[plan.twins][:, None]
    return VariantResult(
        name=label,
        what=f"{study.model.title} on {study.data.title}",
        changes=changes,
        test_accuracy=Estimate(accuracy.value, max(accuracy.low, 0.0), min(accuracy.high, 1.0)),
        stopped_epoch=Estimate(float(np.median(epochs)), float(epochs.min()), float(epochs.max())),
        members=plan.members,
        blind=int(np.sum(np.ptp(array("null_means"), axis=1) <= TIE)),
        planted=_models(scores, plan.grid, settings),
        unplanted=_models(scores, plan.bare, settings),
        beyond=Estimate.of(crossed_difference(*shares)),
        beyond_m=_mean(beyond_m, settings),
        by_influence=_by_influence(scores, high, plan, settings),
        white_box=_white_box(array("white_box"), plan, settings),
        by_canary=_by_canary(
            scores, plan, places, record.array("canaries.labels"), high=high, influence=before
        ),
        spread=_spread(planted_m, array("unique"), array("redrawn"), array("controls"), plan),
        through=_through(array("through"), study, epoch),
        influence=_influence(before, array("influence_after"), planted_m, places, high, settings),
        activations=_activations(array("activations")),
    )


def _models(scores: MemberScores, who: Any, settings: ScoreSettings) -> Models:
    """Measure some members: ``who`` is a table of seeds by canaries, or independent ones."""
    values, level = scores.value[who], settings.significance + 1e-12
    positive = values > 0
    return Models(
        n=int(values.size),
        share_positive=_share(positive, settings),
        share_significant=_share(scores.p_value[who] <= level, settings),
        share_t_test=_share(scores.t_test[who] <= level, settings),
        mean_positive=float(values[positive].mean()) if positive.any() else None,
        mean=_mean(values, settings),
        largest=float(values.max()),
    )


def _by_canary(
    scores: MemberScores,
    plan: FeaturePlan,
    places: NDArray[np.int64],
    labels: NDArray[np.int64],
    *,
    high: Bools | None,
    influence: Floats | None,
) -> tuple[Canary, ...]:
    twins = tuple(scores.value[plan.twins].tolist())
    return tuple(
        Canary(
            example=int(places[canary]),
            label=int(labels[canary]),
            high=None if high is None else bool(high[canary]),
            influence=None if influence is None else float(influence[canary]),
            m=tuple(scores.value[plan.grid[:, canary]].tolist()),
            p=tuple(scores.p_value[plan.grid[:, canary]].tolist()),
            twin_m=twins,
        )
        for canary in range(plan.canaries)
    )


def _by_influence(
    scores: MemberScores, high: Bools | None, plan: FeaturePlan, settings: ScoreSettings
) -> ByInfluence | None:
    """Models whose canary was chosen for a high influence, and those for a low one."""
    if high is None:
        return None
    beyond = scores.value[plan.grid] - scores.value[plan.twins][:, None]

    def half(mine: Bools) -> NoHalf | Half:
        if not mine.any():
            return NoHalf(absent=NO_CANARY)
        models = _models(scores, plan.grid[:, mine], settings)
        return Half(
            canaries=int(mine.sum()),
            n=models.n,
            share_significant=models.share_significant,
            mean=models.mean,
            beyond_m=_mean(beyond[:, mine], settings),
        )

    return ByInfluence(high=half(high), low=half(~high))


def _white_box(values: Floats, plan: FeaturePlan, settings: ScoreSettings) -> WhiteBox:
    """Each planted member's M_w of its own canary's class, and its twin's of the same class."""
    canaries = np.arange(plan.canaries)
    planted = values[plan.grid, canaries]
    return WhiteBox(
        planted=_mean(planted, settings),
        twins=_mean(values[plan.twins[:, None], canaries], settings),
        largest=float(planted.max()),
    )


def _spread(
    planted: Floats, unique: Floats, redrawn: Floats, controls: Floats, plan: FeaturePlan
) -> Spread:
    """How much M differs between seeds, between canaries and between draws of random patches."""
    drawn = np.concatenate([controls.mean(axis=1, keepdims=True), redrawn], axis=1)
    m = unique.mean(axis=1, keepdims=True) - drawn
    by_draw = m[plan.grid].std(axis=2, ddof=1) if m.shape[1] > 1 else None
    both = (planted.min(axis=0) < 0) & (planted.max(axis=0) > 0)
    return Spread(
        seeds=_root_mean_square(planted.std(axis=0, ddof=1)),
        canaries=float(planted.mean(axis=0).std(ddof=1)) if plan.canaries > 1 else None,
        patches=None if by_draw is None else _root_mean_square(by_draw),
        sign_changes=float(both.mean()),
    )


def _root_mean_square(deviations: Floats) -> float:
    return float(np.sqrt(np.mean(deviations**2)))


def _through(values: Floats | None, study: FeatureStudy, epoch: int) -> Through | None:
    if values is None:
        return None
    plan, settings = study.plan, study.score
    steps = settings.steps(epoch=epoch, epochs=plan.epochs)
    return Through(
        epoch=tuple(step / epoch for step in steps),
        planted=tuple(_mean(row[plan.grid], settings) for row in values),
        unplanted=tuple(_mean(row[plan.bare], settings) for row in values),
    )


def _influence(
    before: Floats | None,
    after: Floats | None,
    planted: Floats,
    places: NDArray[np.int64],
    high: Bools | None,
    settings: ScoreSettings,
) -> Influence | None:
    """Does M follow the influence that the image had, and what does the patch do to it?"""
    if before is None or after is None:
        return None
    m, strong = planted.mean(axis=0), before > np.median(before) if high is None else high

    def related(measure: Any) -> Estimate | None:
        try:
            return Estimate.of(measure(first=before, second=m, confidence=settings.confidence))
        except (NotEnoughEvidence, InvalidInput):
            return None

    return Influence(
        pearson=related(linear_agreement),
        spearman=related(rank_agreement),
        n=len(before),
        changes=tuple(
            InfluenceChange(example=example, before=without, after=stamped, high=is_high)
            for example, without, stamped, is_high in zip(
                places.tolist(), before.tolist(), after.tolist(), strong.tolist(), strict=True
            )
        ),
    )


def _activations(shares: Floats | None) -> Activations | None:
    if shares is None:
        return None
    order = np.argsort(-shares[0], kind="stable")[:SHOWN_UNITS]
    letter, chance, unplanted = map(tuple, shares[:, order].tolist())
    return Activations(units=shares.shape[1], letter=letter, random=chance, unplanted=unplanted)


def _mean(values: Floats, settings: ScoreSettings) -> Estimate:
    return Estimate.of(crossed_mean(values, confidence=settings.confidence))


def _share(flags: Bools, settings: ScoreSettings) -> Estimate:
    return Estimate.of(crossed_share(flags, confidence=settings.confidence))
