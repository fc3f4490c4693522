"""What a feature study concludes, and what it did not look at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.studies.features import FeatureStudy


def verdict_fields(study: FeatureStudy, plain: dict[str, Any]) -> dict[str, Any]:
    """Say whether more planted models memorised the patch than the limit allows.

    FAIL where the whole interval of the share beyond unplanted models is above the limit, PASS
    where all of it is within, else INCONCLUSIVE.

    Args:
        study: Asked with this limit.
        plain: The variant that is the recipe itself, as plain data.
    """
    settings = study.score
    value, low, high = plain["beyond"]
    planted, unplanted = (plain[kind]["share_significant"][0] for kind in ("planted", "unplanted"))
    told = (
        f"Of {plain['planted']['n']} models that were trained on one stamped image, {planted:.1%} "
        f"react to the patch more than to patches never planted (p <= {settings.significance:g}); "
        f"of {plain['unplanted']['n']} that never saw it, {unplanted:.1%} do. The difference is "
        f"{value:.1%} ({settings.confidence:.0%} interval {low:.1%} to {high:.1%})"
    )
    limit = f"{settings.limit:.1%}"
    if low > settings.limit:
        outcome, after = "FAIL", f"all of it above the limit {limit}."
    elif high <= settings.limit:
        outcome, after = "PASS", f"all of it within the limit {limit}."
    else:
        outcome, after = (
            "INCONCLUSIVE",
            f"the limit {limit} lies inside it. {_advice(study, plain)}",
        )
    sentence = f"{told}: {after}"
    return {"outcome": outcome, "sentence": sentence, "limit": settings.limit, "lag": None}


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
        f"About {times * study.plan.seeds} seeds and {times * study.plan.unplanted} unplanted "
        f"models (here {study.plan.seeds} and {study.plan.unplanted}) would make it {end} if the "
        "value holds."
    )


def scope_fields(study: FeatureStudy, variants: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return what was tested, and what was not."""
    plan, first = study.plan, variants[0]
    ways = ", ".join(f"{one['name']} ({one['changes']})" for one in variants[1:])
    tested = [
        f"{plan.canaries} training images, each stamped with {study.patch.what} in {plan.seeds} "
        f"trainings of its own ({first['what']}), against {len(plan.bare)} trainings with "
        "nothing planted",
        f"the answers to {study.images.count} images ({study.images.name}) with the patch, with "
        f"random ones and with {study.score.nulls} never planted: no label, no training data",
    ]
    if ways:
        tested.append(f"the same in other ways to train: {ways}")
    return {
        "tested": tested,
        "not_tested": [
            "patches of other sizes, contrasts or places, and features that are no patch",
            "a patch on several training images: this is about one",
            "whether what the patch says can be read out of a model: only whether it reacts to it",
            "other models, other data, other training settings",
        ],
    }
