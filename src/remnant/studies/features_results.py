"""From every member's reactions to what was memorised; touches no model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.crossed_interval import (
    CrossedInterval,
    crossed_difference,
    crossed_mean,
    crossed_share,
)
from remnant.measures.feature_score import TIE
from remnant.measures.linear_agreement import linear_agreement
from remnant.measures.rank_agreement import rank_agreement
from remnant.plans import FeaturePlan
from remnant.records import Record
from remnant.studies.features_settings import ScoreSettings

if TYPE_CHECKING:
    from remnant.studies.features import FeatureStudy

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
SHOWN_UNITS = 20
NO_CANARY = "no canary was chosen for it"


@dataclass(frozen=True, slots=True, eq=False)
class MemberScores:
    """Every member's M and its two p-values, each ``(members,)``.

    Attributes:
        value: M.
        p_value: The rank among nulls.
        t_test: The paper's one-tailed paired t-test over images; 1 where all images say the same.
    """

    value: Floats
    p_value: Floats
    t_test: Floats


def member_scores(unique: Floats, controls: Floats, null_means: Floats) -> MemberScores:
    """Score every member as ``feature_score`` does one, without its interval over images.

    Args:
        unique, controls: Reactions to the patch and to random ones, ``(members, n)``.
        null_means: Mean reactions to each null, ``(members, nulls)``.
    """
    apart = unique - controls
    value = apart.mean(axis=1)
    nulls = null_means - controls.mean(axis=1, keepdims=True)
    beaten = (nulls >= value[:, None] - TIE).sum(axis=1)
    spread = apart.std(axis=1, ddof=1)
    told = spread > 1e-12 * np.abs(apart).max(axis=1)
    t = np.divide(value * np.sqrt(apart.shape[1]), spread, out=np.zeros_like(value), where=told)
    return MemberScores(
        value=value,
        p_value=(1.0 + beaten) / (1.0 + nulls.shape[1]),
        t_test=np.where(told, stats.t.sf(t, apart.shape[1] - 1), 1.0),
    )


def variant_fields(
    study: FeatureStudy,
    record: Record,
    name: str,
    *,
    label: str,
    changes: str,
    high: Bools | None,
    epoch: int,
) -> dict[str, Any]:
    """Return what one variant showed, as plain data.

    Args:
        study: The variant, whole.
        record: Holds its arrays.
        name: Before the dot in their names.
        label: What it is called.
        changes: In which it differs from the recipe itself, in words.
        high: Which canaries were chosen for a high influence; None where chosen at random.
        epoch: Updates of an epoch.
    """
    plan, settings = study.plan, study.score

    def array(what: str) -> Any:
        found = f"{name}.{what}"
        return record.array(found) if found in record.array_names() else None

    scores = member_scores(array("unique"), array("controls"), array("null_means"))
    places, labels = record.array("canaries.places"), record.array("canaries.labels")
    accuracy = crossed_mean(array("test_accuracy")[plan.bare], confidence=settings.confidence)
    epochs = array("updates") / epoch
    twin_m = scores.value[plan.twins]
    planted_m = scores.value[plan.grid]
    found = {
        kind: crossed_share(
            scores.p_value[who] <= settings.significance + 1e-12, confidence=settings.confidence
        )
        for kind, who in (("planted", plan.grid), ("unplanted", plan.bare))
    }
    before = array("influence_before")
    return {
        "name": label,
        "what": f"{study.model.name} on {study.data.name}",
        "changes": changes,
        "test_accuracy": [accuracy.value, max(accuracy.low, 0.0), min(accuracy.high, 1.0)],
        "stopped_epoch": [float(np.median(epochs)), float(epochs.min()), float(epochs.max())],
        "members": plan.members,
        "blind": int(np.sum(np.ptp(array("null_means"), axis=1) <= TIE)),
        "planted": _group(scores, plan.grid, settings),
        "unplanted": _group(scores, plan.bare, settings),
        "beyond": _ends(crossed_difference(found["planted"], found["unplanted"])),
        "beyond_m": _ends(
            crossed_mean(planted_m - twin_m[:, None], confidence=settings.confidence)
        ),
        "by_influence": _by_influence(scores, high, plan, settings),
        "white_box": _white_box(array("white_box"), plan, settings),
        "by_canary": [
            {
                "example": int(places[canary]),
                "label": int(labels[canary]),
                "high": None if high is None else bool(high[canary]),
                "influence": None if before is None else float(before[canary]),
                "m": planted_m[:, canary].tolist(),
                "p": scores.p_value[plan.grid[:, canary]].tolist(),
                "twin_m": twin_m.tolist(),
            }
            for canary in range(plan.canaries)
        ],
        "spread": _spread(planted_m, array("unique"), array("redrawn"), array("controls"), plan),
        "through": _through(array("through"), study, epoch),
        "influence": _influence(
            before, array("influence_after"), planted_m, places, high, settings
        ),
        "activations": _activations(array("activations")),
    }


def _group(scores: MemberScores, who: Any, settings: ScoreSettings) -> dict[str, Any]:
    """What some members showed: ``who`` is a table of seeds by canaries, or independent ones."""
    values = scores.value[who]
    level, confidence = settings.significance + 1e-12, settings.confidence
    positive = values > 0
    return {
        "n": int(values.size),
        "share_positive": _ends(crossed_share(positive, confidence=confidence)),
        "share_significant": _ends(
            crossed_share(scores.p_value[who] <= level, confidence=confidence)
        ),
        "share_t_test": _ends(crossed_share(scores.t_test[who] <= level, confidence=confidence)),
        "mean_positive": float(values[positive].mean()) if positive.any() else None,
        "mean": _ends(crossed_mean(values, confidence=confidence)),
        "largest": float(values.max()),
    }


def _by_influence(
    scores: MemberScores, high: Bools | None, plan: FeaturePlan, settings: ScoreSettings
) -> dict[str, Any] | None:
    """Models whose canary was chosen for a high influence, and those for a low one."""
    if high is None:
        return None
    beyond = scores.value[plan.grid] - scores.value[plan.twins][:, None]

    def half(mine: Bools) -> dict[str, Any]:
        if not mine.any():
            return {"absent": NO_CANARY}
        group = _group(scores, plan.grid[:, mine], settings)
        return {
            "canaries": int(mine.sum()),
            **{key: group[key] for key in ("n", "share_significant", "mean")},
            "beyond_m": _ends(crossed_mean(beyond[:, mine], confidence=settings.confidence)),
        }

    return {"high": half(high), "low": half(~high)}


def _white_box(found: Floats, plan: FeaturePlan, settings: ScoreSettings) -> dict[str, Any]:
    """Each planted member's M_w of its own canary's class, and its twin's of the same class."""
    canaries = np.arange(plan.canaries)
    planted = found[plan.grid, canaries]
    twins = found[plan.twins[:, None], canaries]
    return {
        "planted": _ends(crossed_mean(planted, confidence=settings.confidence)),
        "twins": _ends(crossed_mean(twins, confidence=settings.confidence)),
        "largest": float(planted.max()),
    }


def _spread(
    planted: Floats, unique: Floats, redrawn: Floats, controls: Floats, plan: FeaturePlan
) -> dict[str, Any]:
    """How much M differs between seeds, between canaries and between draws of random patches."""
    drawn = np.concatenate([controls.mean(axis=1, keepdims=True), redrawn], axis=1)
    m = unique.mean(axis=1, keepdims=True) - drawn
    by_draw = m[plan.grid].std(axis=2, ddof=1) if m.shape[1] > 1 else None
    both = (planted.min(axis=0) < 0) & (planted.max(axis=0) > 0)
    return {
        "seeds": _root_mean_square(planted.std(axis=0, ddof=1)),
        "canaries": float(planted.mean(axis=0).std(ddof=1)) if plan.canaries > 1 else None,
        "patches": None if by_draw is None else _root_mean_square(by_draw),
        "sign_changes": float(both.mean()),
    }


def _root_mean_square(found: Floats) -> float:
    return float(np.sqrt(np.mean(found**2)))


def _through(found: Floats | None, study: FeatureStudy, epoch: int) -> dict[str, Any] | None:
    if found is None:
        return None
    plan, confidence = study.plan, study.score.confidence
    steps = study.score.steps(epoch=epoch, epochs=plan.epochs)
    return {
        "epoch": [step / epoch for step in steps],
        "planted": [_ends(crossed_mean(row[plan.grid], confidence=confidence)) for row in found],
        "unplanted": [_ends(crossed_mean(row[plan.bare], confidence=confidence)) for row in found],
    }


def _influence(
    before: Floats | None,
    after: Floats | None,
    planted: Floats,
    places: NDArray[np.int64],
    high: Bools | None,
    settings: ScoreSettings,
) -> dict[str, Any] | None:
    """Does M follow the influence that the image had, and what does the patch do to it?"""
    if before is None or after is None:
        return None
    was, m = before, planted.mean(axis=0)
    strong = was > np.median(was) if high is None else high

    def related(measure: Any) -> list[float] | None:
        try:
            found = measure(first=was, second=m, confidence=settings.confidence)
        except (NotEnoughEvidence, InvalidInput):
            return None
        return [found.value, found.low, found.high]

    return {
        "pearson": related(linear_agreement),
        "spearman": related(rank_agreement),
        "n": len(was),
        "changes": [
            {
                "example": int(places[canary]),
                "before": float(was[canary]),
                "after": float(after[canary]),
                "high": bool(strong[canary]),
            }
            for canary in range(len(was))
        ],
    }


def _activations(found: Floats | None) -> dict[str, Any] | None:
    if found is None:
        return None
    order = np.argsort(-found[0], kind="stable")[:SHOWN_UNITS]
    letter, chance, unplanted = found[:, order].tolist()
    return {
        "units": found.shape[1],
        "letter": letter,
        "random": chance,
        "unplanted": unplanted,
    }


def _ends(found: CrossedInterval) -> list[float]:
    return [found.value, found.low, found.high]
