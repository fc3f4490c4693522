"""What a feature study concludes, and what it did not look at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from remnant.measures.verdict import cannot_exclude
from remnant.records import Outcome, gate_row
from remnant.studies.wording import counted

if TYPE_CHECKING:
    from remnant.studies.features import FeatureStudy


def feature_outcome(
    *, beyond: Sequence[float], unplanted: Sequence[float], limit: float, significance: float
) -> Outcome:
    """The outcome of the gate, its positive control aside.

    FAIL where the whole interval of the share beyond unplanted models is above the limit. PASS
    where all of it is within, and unplanted models do not react more often than the test's level:
    where they all do, planted ones cannot react more often. Else INCONCLUSIVE.

    Args:
        beyond: Share of planted models that react, less that of unplanted ones, with its interval.
        unplanted: Share of unplanted models that react, with its interval.
        limit: The share that is allowed beyond unplanted models.
        significance: Level of each model's test.
    """
    if beyond[1] > limit:
        return "FAIL"
    if beyond[2] <= limit and unplanted[1] <= significance:
        return "PASS"
    return "INCONCLUSIVE"


def blindness(plain: Mapping[str, Any], *, majority: float) -> str:
    """Why a patch could not be seen in these models even if it were memorised; else empty.

    The positive control of the gate: models must be right more often than one who always names the
    commonest class, and each must answer differently to different patches. It does not show that
    a memorised patch would be detected.

    Args:
        plain: The variant that is the recipe itself: ``test_accuracy`` with its interval, and
            ``blind``, how many models answer the same whatever the patch.
        majority: Share of the commonest class among test images.
    """
    accuracy, low, _ = plain["test_accuracy"]
    if low <= majority:
        return (
            f"The models learnt nothing that a patch could be part of: their test accuracy is "
            f"{accuracy:.1%} (lower bound {low:.1%}), and the commonest class gives "
            f"{majority:.1%}. Train longer."
        )
    if plain["blind"]:
        return (
            f"{plain['blind']} of {counted(plain['members'], 'model')} "
            f"{'gives' if plain['blind'] == 1 else 'give'} the same answers whatever the patch, so "
            "a memorised one would not be detected."
        )
    return ""


def verdict_fields(
    study: FeatureStudy, plain: dict[str, Any], *, majority: float
) -> dict[str, Any]:
    """Say whether more planted models memorised the patch than the limit allows.

    See ``feature_outcome`` for the rule, and ``blindness`` for the positive control without which
    nothing is judged.

    Args:
        study: Asked with this limit.
        plain: The variant that is the recipe itself, as plain data.
        majority: Share of the commonest class among test images.
    """
    settings = study.score
    beyond, unplanted = plain["beyond"], plain["unplanted"]["share_significant"]
    value, low, high = beyond
    planted = plain["planted"]["share_significant"][0]
    models = plain["planted"]["n"]
    measured = (
        f"Of {counted(models, 'model')} that {'was' if models == 1 else 'were'} trained on one "
        f"stamped image, {planted:.1%} react to the patch more than to patches never planted "
        f"(p <= {settings.significance:g}); of {plain['unplanted']['n']} that "
        f"never saw it, {unplanted[0]:.1%} do. The difference is {value:.1%} "
        f"({settings.confidence:.0%} interval {low:.1%} to {high:.1%})"
    )
    blind = blindness(plain, majority=majority)
    if blind:
        return gate_row(
            outcome="INCONCLUSIVE", sentence=blind, claim=_no_claim(blind), limit=settings.limit
        )
    outcome = feature_outcome(
        beyond=beyond,
        unplanted=unplanted,
        limit=settings.limit,
        significance=settings.significance,
    )
    limit = f"{settings.limit:.1%}"
    claim = _claim(study, plain, outcome)
    if outcome == "FAIL":
        after = f"all of it above the limit {limit}."
    elif outcome == "PASS":
        after = f"all of it within the limit {limit}."
    elif unplanted[1] > settings.significance:
        reason = (
            "models that never saw the patch react to it more often than the test allows (at least "
            f"{unplanted[1]:.1%}, allowed {settings.significance:.1%}), so planted ones cannot "
            "show more. Choose another patch."
        )
        within = high <= settings.limit
        where = f"all of it within the limit {limit}" if within else f"the limit is {limit}"
        after, claim = f"{where}, but {reason}", _no_claim(reason)
    else:
        after = f"the limit {limit} lies inside it. {_advice(study, plain)}"
    return gate_row(
        outcome=outcome,
        sentence=f"{measured}: {after}",
        claim=claim,
        limit=settings.limit,
    )


def _no_claim(reason: str) -> str:
    return f"No claim: {reason[0].lower()}{reason[1:]}"


def _claim(study: FeatureStudy, plain: dict[str, Any], outcome: str) -> str:
    """The bound with its n, and what so many trainings cannot exclude."""
    seeds, canaries = study.plan.seeds, study.plan.canaries
    _, low, high = (max(float(end), 0.0) for end in plain["beyond"])
    bound = f"At least {low:.1%}" if outcome == "FAIL" else f"At most {high:.1%}"
    return (
        f"{bound} of models trained on one stamped image react to the patch beyond models that "
        f"never saw it ({study.score.confidence:.0%} interval, "
        f"{counted(canaries, 'canary', 'canaries')} x {counted(seeds, 'training')}, "
        f"{plain['unplanted']['n']} unplanted); {cannot_exclude(seeds)}."
    )


def _advice(study: FeatureStudy, plain: dict[str, Any]) -> str:
    """How many times as many models would bring the nearer end to the limit."""
    value, low, high = plain["beyond"]
    limit = study.score.limit
    gap = abs(value - limit)
    reach = value - low if value > limit else high - value
    end = "FAIL" if value > limit else "PASS"
    factor = math.inf if gap == 0.0 else (reach / gap) ** 2
    if factor > 1e3:
        return "It is too near the limit for more models to settle it; choose another limit."
    times = max(2, math.ceil(factor - 1e-9))
    return (
        f"About {times * study.plan.seeds} seeds and "
        f"{counted(times * study.plan.unplanted, 'unplanted model')} "
        f"(here {study.plan.seeds} and {study.plan.unplanted}) would make it {end} if the value "
        "holds."
    )


def scope_fields(study: FeatureStudy, variants: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return what was tested, and what was not."""
    plan, first = study.plan, variants[0]
    ways = ", ".join(f"{one['name']} ({one['changes']})" for one in variants[1:])
    tested = [
        f"{counted(plan.canaries, 'training image')}, each stamped with {study.patch.what} in "
        f"{counted(plan.seeds, 'training')} of its own ({first['what']}), against "
        f"{counted(len(plan.bare), 'training')} with nothing planted",
        f"the answers to {counted(study.images.count, 'image')} ({study.images.name}) with the "
        f"patch, with random ones and with {study.score.nulls} never planted: no label, no "
        "training data",
    ]
    if ways:
        tested.append(f"the same in other ways to train: {ways}")
    return {
        "tested": tested,
        "not_tested": [
            "patches of other sizes, contrasts or places, and features that are no patch",
            "a patch on several training images: this is about one",
            "whether what the patch says can be extracted from a model: only whether it reacts",
            "whether the test detects a memorised patch: no model was trained on many stamped "
            "images",
            "other models, other data, other training settings",
        ],
    }
