"""What a feature study concludes, and what it did not look at."""

from __future__ import annotations

import math
from collections.abc import Sequence

from remnant.measures.forgetting.verdict import cannot_exclude
from remnant.records.outcomes import RULES, Outcome
from remnant.studies.features.recipe import FeatureStudy
from remnant.studies.features.result import VariantResult
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Gate, Tested
from remnant.studies.shared.wording import counted


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


def blindness(*, test_accuracy: Estimate, members: int, blind: int | None, majority: float) -> str:
    """Why a patch could not be seen in these models even if it were memorised; else empty.

    The positive control of the gate: models must be right more often than one who always names the
    commonest class, and each must answer differently to different patches. It does not show that
    a memorised patch would be detected.

    Args:
        test_accuracy: With its interval.
        members: How many models there are.
        blind: How many of them answer the same whatever the patch.
        majority: Share of the commonest class among test images.
    """
    accuracy, low, _ = test_accuracy
    if low <= majority:
        return (
            f"The models learnt nothing that a patch could be part of: their test accuracy is "
            f"{accuracy:.1%} (lower bound {low:.1%}), and the commonest class gives "
            f"{majority:.1%}. Train longer."
        )
    if blind:
        return (
            f"{blind} of {counted(members, 'model')} "
            f"{'gives' if blind == 1 else 'give'} the same answers whatever the patch, so "
            "a memorised one would not be detected."
        )
    return ""


def feature_gate(study: FeatureStudy, plain: VariantResult, *, majority: float) -> Gate:
    """Judge whether more planted models memorised the patch than the limit allows.

    See ``feature_outcome`` for the rule, and ``blindness`` for the positive control without which
    nothing is judged.

    Args:
        study: Names the limit.
        plain: The variant that is the recipe itself.
        majority: Share of the commonest class among test images.
    """
    settings, unplanted = study.score, plain.unplanted.share_significant
    blind = blindness(
        test_accuracy=plain.test_accuracy,
        members=plain.members,
        blind=plain.blind,
        majority=majority,
    )
    if blind:
        return _gate("INCONCLUSIVE", blind, _no_claim(blind), settings.limit)
    outcome = feature_outcome(
        beyond=plain.beyond,
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
    elif unplanted.low > settings.significance:
        reason = (
            "models that never saw the patch react to it more often than the test allows (at least "
            f"{unplanted.low:.1%}, allowed {settings.significance:.1%}), so planted ones cannot "
            "show more. Choose another patch."
        )
        within = plain.beyond.high <= settings.limit
        where = f"all of it within the limit {limit}" if within else f"the limit is {limit}"
        after, claim = f"{where}, but {reason}", _no_claim(reason)
    else:
        after = f"the limit {limit} lies inside it. {_advice(study, plain)}"
    sentence = f"{_measured(study, plain)}: {after}"
    return _gate(outcome, sentence, claim, settings.limit, detected=plain.beyond.low > 0.0)


def _gate(
    outcome: Outcome, sentence: str, claim: str, limit: float, detected: bool | None = None
) -> Gate:
    return Gate(
        outcome=outcome,
        sentence=sentence,
        claim=claim,
        limit=limit,
        rules=RULES,
        detected=detected,
    )


def _measured(study: FeatureStudy, plain: VariantResult) -> str:
    """What was measured, as the beginning of a sentence."""
    settings, models = study.score, plain.planted.n
    value, low, high = plain.beyond
    return (
        f"Of {counted(models, 'model')} that {'was' if models == 1 else 'were'} trained on one "
        f"stamped image, {plain.planted.share_significant.value:.1%} react to the patch more than "
        f"to patches never planted (p <= {settings.significance:g}); of {plain.unplanted.n} that "
        f"never saw it, {plain.unplanted.share_significant.value:.1%} do. The difference is "
        f"{value:.1%} ({settings.confidence:.0%} interval {low:.1%} to {high:.1%})"
    )


def _no_claim(reason: str) -> str:
    return f"No claim: {reason[0].lower()}{reason[1:]}"


def _claim(study: FeatureStudy, plain: VariantResult, outcome: str) -> str:
    """The bound with its n; where it is an upper one, what so many trainings cannot exclude."""
    seeds, canaries = study.plan.seeds, study.plan.canaries
    _, low, high = (max(float(end), 0.0) for end in plain.beyond)
    bound = f"At least {low:.1%}" if outcome == "FAIL" else f"At most {high:.1%}"
    others = "" if outcome == "FAIL" and seeds > 1 else f"; {cannot_exclude(seeds)}"
    return (
        f"{bound} of models trained on one stamped image react to the patch beyond models that "
        f"never saw it ({study.score.confidence:.0%} interval, "
        f"{counted(canaries, 'canary', 'canaries')} x {counted(seeds, 'training')}, "
        f"{plain.unplanted.n} unplanted){others}."
    )


def _advice(study: FeatureStudy, plain: VariantResult) -> str:
    """How many times as many models would bring the nearer end to the limit."""
    value, low, high = plain.beyond
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


def feature_scope(study: FeatureStudy, variants: Sequence[VariantResult]) -> Tested:
    """Say what was tested, and what was not."""
    plan, first = study.plan, variants[0]
    ways = ", ".join(f"{variant.name} ({variant.changes})" for variant in variants[1:])
    tested = [
        f"{counted(plan.canaries, 'training image')}, each stamped with {study.patch.what} in "
        f"{counted(plan.seeds, 'training')} of its own ({first.what}), against "
        f"{counted(len(plan.bare), 'training')} with nothing planted",
        f"the answers to {counted(study.images.count, 'image')} ({study.images.name}) with the "
        f"patch, with random ones and with {study.score.nulls} never planted: no label, no "
        "training data",
    ]
    if ways:
        tested.append(f"the same in other ways to train: {ways}")
    return Tested(
        tested=tuple(tested),
        not_tested=(
            "patches of other sizes, contrasts or places, and features that are no patch",
            "a patch on several training images: this is about one",
            "whether what the patch says can be extracted from a model: only whether it reacts",
            "whether the test detects a memorised patch: no model was trained on many stamped "
            "images",
            "other models, other data, other training settings",
        ),
    )
