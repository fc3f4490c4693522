"""What a study of features and an audit of one model conclude, and what was not looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from remnant.measures.features.feature_score import TIE
from remnant.measures.forgetting.verdict import cannot_exclude
from remnant.records.outcomes import RULES, Outcome
from remnant.studies.features.sentences import nats_text
from remnant.studies.shared.result_parts import Finding, Gate, Tested
from remnant.studies.shared.wording import counted

if TYPE_CHECKING:
    from remnant.studies.features.audit_inputs import Scores, Settings
    from remnant.studies.features.audit_result import PatchControl
    from remnant.studies.features.controls import TaskControl
    from remnant.studies.features.recipe import FeatureStudy
    from remnant.studies.features.result import VariantResult
    from remnant.studies.shared.estimates import Estimate

_FINDINGS: dict[Outcome, tuple[str, str]] = {
    "FAIL": (
        "The model reacts to the patch",
        "Find the training images that hold it, remove them, and train again.",
    ),
    "PASS": ("No evidence that the patch was memorised", ""),
    "INCONCLUSIVE": (
        "No evidence that the patch was memorised",
        "Give a limit on M (--limit) to judge it, and a twin (--twin) to compare with.",
    ),
}


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


# -- the audit of one model ------------------------------------------------------------------------


def audit_blindness(model: Scores, classes: int) -> str:
    """Why one model could not show a memorised patch; empty where it could.

    A part of the positive control of a PASS: the model reacts to patches, and names more than one
    class. ``task_control`` and ``patch_control`` are the others.
    """
    nulls = model.black_box.null_values
    if float(np.ptp(nulls)) <= TIE:
        return "The model answers the same whatever the patch, so a limit on M shows nothing."
    if classes < 2:
        return (
            "The model names one class for all images, as an untrained one does, so a limit on M "
            "shows nothing. Give images of several classes, or check the model."
        )
    return ""


def audit_outcome(
    model: Scores,
    twin: Scores | None,
    p_values: tuple[float, ...],
    settings: Settings,
    blind: str,
) -> tuple[Outcome, str]:
    """The outcome of an audit, and the sentence about it.

    FAIL: evidence that the model reacts to the patch, and the twin, if there is one, does not.
    PASS: none, and M is under the limit. Else INCONCLUSIVE.

    Args:
        model, twin: Their scores.
        p_values: Of the model's tested scores, corrected for their number.
        settings: How they were made.
        blind: Why this model could not show a memorised patch.
    """
    names = ("M", "the white-box M_w")
    shown = [at for at, p in enumerate(p_values) if p <= settings.significance]
    of = "" if len(p_values) == 1 else ", corrected for two tests"
    reacts = f"the model reacts to this patch more than to {settings.never_planted}"
    m = model.black_box
    measured = (
        f"M is {nats_text(m.value)} nats ({100 * m.confidence:g}% interval over images "
        f"{nats_text(m.low)} to {nats_text(m.high)})"
    )
    if not shown:
        least = min(p_values)
        sentence = f"There is no evidence that {reacts}: p = {least:.2g}{of}; {measured}"
        if settings.limit is None:
            return "INCONCLUSIVE", f"{sentence}. That does not show that it was not memorised."
        if blind:
            return "INCONCLUSIVE", f"{blind} {measured}; p = {least:.2g}{of}."
        if m.high < settings.limit:
            return "PASS", f"{sentence}, all of it under the limit of {settings.limit:g}."
        return "INCONCLUSIVE", f"{sentence}, and the limit is {settings.limit:g}."
    evidence = " and ".join(f"{names[at]} (p = {p_values[at]:.2g})" for at in shown)
    if twin is None:
        return "FAIL", f"There is evidence that {reacts}, by {evidence}{of}; {measured}."
    theirs = [twin.tested[at].p_value for at in shown]
    if min(theirs) <= settings.significance:
        return "INCONCLUSIVE", (
            f"{reacts[0].upper()}{reacts[1:]}, by {evidence}{of}; but so does the twin, which was "
            f"trained without it (p = {min(theirs):.2g}): the patch is conspicuous by itself, and "
            f"this is no evidence that it was memorised; {measured}."
        )
    return "FAIL", (
        f"There is evidence that {reacts}, by {evidence}{of}, and the twin, which was trained "
        f"without it, does not (p = {min(theirs):.2g}); {measured}."
    )


def audit_claim(
    model: Scores,
    task: TaskControl | None,
    control: PatchControl | None,
    blind: str,
    outcome: Outcome,
) -> str:
    """The strongest statement that the evidence of an audit supports."""
    if blind and outcome != "FAIL":
        return _no_claim(blind)
    m = model.black_box
    learnt = ""
    if outcome == "PASS" and task is not None and control is not None:
        learnt = f" {task.measured} (lower bound {task.low:.1%}, 99% confidence). {control.claim}"
    bound = f"at most {nats_text(m.high, up=True)}"
    if outcome == "FAIL":
        bound = f"{nats_text(m.value)}, at least {nats_text(m.low)}"
    return (
        f"In this one model M of this patch is {bound} nats ({100 * m.confidence:g}% interval over "
        f"{m.n_images} images, {m.n_nulls} patches never planted); what "
        "happens in up to 95 % of trainings may be missing from one (95 % "
        f"confidence).{learnt}"
    )


def audit_verdict(
    outcome: Outcome, sentence: str, claim: str, limit: float | None
) -> Gate | Finding:
    """The outcome of a gate where an audit has a limit, else a finding."""
    if limit is not None:
        return _gate(outcome, sentence, claim, limit, detected=outcome == "FAIL")
    headline, advice = _FINDINGS[outcome]
    return Finding(headline=headline, sentence=sentence, advice=advice, rules=RULES)
