"""Scores a patch on a model and on its twin, and judges what that is evidence of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.measures import adjusted_p_values, m_score, probability_gain, white_box_m_score
from remnant.measures.features.divergence import FLOOR
from remnant.measures.features.feature_score import TIE
from remnant.measures.statistics.mean_interval import mean_interval
from remnant.records.outcomes import RULES, Outcome
from remnant.studies.features.audit_inputs import AuditInputs, Classifier, Settings
from remnant.studies.features.audit_result import PatchControl
from remnant.studies.features.formats import nats_text
from remnant.studies.features.patch_control import images_of_control, patch_control
from remnant.studies.features.task_control import NO_LABELS, TaskControl, task_control
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding, Gate

if TYPE_CHECKING:
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.measures import MScore

_DRAWS = 999
LARGEST_M = -math.log(FLOOR)
"""No M is larger, in nats: a divergence of one image is at most that."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What one model makes of the patch.

    Attributes:
        black_box: M on any images.
        white_box, gain: M_w and what is added to the label's probability; None where no label was
            given.
    """

    black_box: MScore
    white_box: MScore | None
    gain: MScore | None

    @property
    def tested(self) -> list[MScore]:
        """The scores whose p-values a claim rests on."""
        return [score for score in (self.black_box, self.white_box) if score is not None]


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


@dataclass(frozen=True, slots=True, eq=False)
class FeatureAudit:
    """The scores of a patch, and what they are evidence of.

    Attributes:
        model: The model's scores.
        twin: Of a model that was trained without the patch; None where none was given.
        beyond: M of the model less the twin's; None without one.
        p_values: Of the model's tested scores, corrected for their number (Holm).
        limit: The limit on M, in nats; None where there is no gate, only a finding.
        task: How well the model names labelled images; None without a limit or without labels.
        control: Whether the patch can be found, and whether a variant of it is; None where no PASS
            depends on it.
        outcome: FAIL: evidence. PASS: none, M under the limit, a model that reacts to patches and
            learnt its task, and a control that does not speak against it. Else INCONCLUSIVE.
        sentence: The outcome in a sentence.
        claim: The strongest statement that the evidence supports.
    """

    model: Scores
    twin: Scores | None
    beyond: Estimate | None
    p_values: tuple[float, ...]
    limit: float | None
    task: TaskControl | None
    control: PatchControl | None
    outcome: Outcome
    sentence: str
    claim: str

    @property
    def verdict(self) -> Gate | Finding:
        """The outcome of a gate where a limit was given, else a finding."""
        if self.limit is not None:
            return Gate(
                outcome=self.outcome,
                sentence=self.sentence,
                claim=self.claim,
                limit=self.limit,
                rules=RULES,
                detected=self.outcome == "FAIL",
            )
        headline, advice = _FINDINGS[self.outcome]
        return Finding(headline=headline, sentence=self.sentence, advice=advice, rules=RULES)


def feature_audit(
    inputs: AuditInputs,
    model: Scores,
    twin: Scores | None,
    patch: Patch,
    nulls: Patches | None,
    settings: Settings,
    progress: Callable[[int, int], None],
) -> FeatureAudit:
    """Judge the scores of a model, beside those of its twin.

    Args:
        inputs: Models and images.
        model: What ``patch_scores`` gives for the model.
        twin: The same for the twin; None where there is none.
        patch, nulls: What they were given.
        settings: How the patch was scored.
        progress: Of the control, which is tested only if a PASS depends on it.
    """
    p_values = tuple(adjusted_p_values(model.tested, alpha=settings.significance).tolist())
    answers = [inputs.model(part).argmax(dim=1) for part in inputs.images.split(settings.batch)]
    classes = len({int(label) for part in answers for label in part})
    task = control = None
    if settings.limit is not None and inputs.task is not None:
        rng = np.random.default_rng([settings.seed, 5])
        task = task_control(inputs.model, inputs.task, batch=settings.batch, rng=rng)
    blind = blindness(model, classes) or (NO_LABELS if task is None else task.reason)
    outcome, sentence = _verdict(model, twin, p_values, settings, blind)
    if outcome == "PASS":
        control = patch_control(inputs, patch, nulls, settings, progress)
        if blind := control.reason:
            outcome, sentence = _verdict(model, twin, p_values, settings, blind)
    return FeatureAudit(
        model=model,
        twin=twin,
        beyond=None if twin is None else _difference(model, twin, settings),
        p_values=p_values,
        limit=settings.limit,
        task=task,
        control=control,
        outcome=outcome,
        sentence=sentence,
        claim=_claim(model, task, control, blind, outcome),
    )


def images_to_answer(inputs: AuditInputs, patch: Patch, settings: Settings) -> int:
    """How many images the models have to answer for, at most."""
    each = _images_a_model(inputs, settings)
    total = each * (1 if inputs.twin is None else 2)
    if settings.limit is not None:
        total += images_of_control(patch, inputs.images, settings)
    return total


def _images_a_model(inputs: AuditInputs, settings: Settings) -> int:
    total = len(inputs.images) * (settings.nulls + 3)
    if inputs.labelled is not None:
        total += len(inputs.labelled) * (2 * settings.nulls + 5)
    return total


def patch_scores(
    ask: Classifier,
    inputs: AuditInputs,
    patch: Patch,
    nulls: Patches | None,
    settings: Settings,
    progress: Callable[[int, int], None],
) -> Scores:
    """Score the patch on one model; every model gets the same images and random patches.

    Args:
        ask: The model, or its twin.
        inputs: The images.
        patch: The patch in question.
        nulls: Patches that were never planted; None for shuffled pixels.
        settings: How it is scored.
        progress: Called with how many images the model has answered, and how many there are.

    Raises:
        InvalidInput, NotEnoughEvidence, UnsupportedModel: The model or the images do not fit.
    """
    shared: dict[str, Any] = {
        "nulls": settings.nulls,
        "null_patches": nulls,
        "batch": settings.batch,
        "confidence": settings.confidence,
        "draws": _DRAWS,
    }
    drawn = shared | {"control": settings.control}
    total, done = _images_a_model(inputs, settings), 0

    def answers(images: Tensor) -> Tensor:
        nonlocal done
        probabilities = ask(images)
        done += len(images)
        progress(min(done, total), total)
        return probabilities

    def rng(which: int) -> np.random.Generator:
        return np.random.default_rng([settings.seed, 2, which])

    black = m_score(answers, inputs.images, patch, rng=rng(0), **drawn)
    if inputs.labelled is None or settings.label is None:
        return Scores(black, None, None)
    own, label = inputs.labelled, settings.label
    white = white_box_m_score(answers, own, patch, label=label, rng=rng(1), **drawn)
    gain = probability_gain(answers, own, patch, label=label, rng=rng(2), **shared)
    return Scores(black, white, gain)


def blindness(model: Scores, classes: int) -> str:
    """Why this model could not show a memorised patch; empty where it could.

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


def _claim(
    model: Scores,
    task: TaskControl | None,
    control: PatchControl | None,
    blind: str,
    outcome: Outcome,
) -> str:
    if blind and outcome != "FAIL":
        return f"No claim: {blind[0].lower()}{blind[1:]}"
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


def _difference(model: Scores, twin: Scores, settings: Settings) -> Estimate:
    """Mean M of the model less the twin's, on the same images and patches."""
    apart = model.black_box.per_image - twin.black_box.per_image
    interval = mean_interval(
        apart,
        bound=-2.0 * math.log(FLOOR),
        confidence=settings.confidence,
        draws=_DRAWS,
        rng=np.random.default_rng([settings.seed, 3]),
    )
    return Estimate(float(apart.mean()), interval.low, interval.high)


def _verdict(
    model: Scores,
    twin: Scores | None,
    p_values: tuple[float, ...],
    settings: Settings,
    blind: str,
) -> tuple[Outcome, str]:
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
