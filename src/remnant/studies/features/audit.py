"""Scores a patch on a model and on its twin, and judges what that is evidence of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from remnant.errors import NotEnoughEvidence, require
from remnant.measures import adjusted_p_values, m_score, probability_gain, white_box_m_score
from remnant.measures.features.divergence import FLOOR
from remnant.measures.features.feature_score import TIE
from remnant.measures.statistics.checks import check_gate_confidence
from remnant.measures.statistics.mean_interval import mean_interval
from remnant.records.outcomes import RULES, Outcome
from remnant.studies.features.audit_result import NEVER_PLANTED
from remnant.studies.features.formats import nats_text
from remnant.studies.features.task_control import (
    NO_LABELS,
    LabelledImages,
    TaskControl,
    task_control,
)
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.parts import Finding, Gate

if TYPE_CHECKING:
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.measures import MScore

_DRAWS = 999
LARGEST_M = -math.log(FLOOR)
"""No M is larger, in nats: a divergence of one image is at most that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a patch is scored."""

    nulls: int
    control: str
    confidence: float
    significance: float
    label: int | None
    limit: float | None
    against: str
    seed: int
    batch: int

    @property
    def never_planted(self) -> str:
        """What the patch is ranked among, in words."""
        return NEVER_PLANTED[self.against]

    @property
    def tests(self) -> int:
        """How many p-values a claim rests on."""
        return 1 if self.label is None else 2

    def check(self) -> None:
        """Refuse what could never show anything.

        Raises:
            InvalidInput: There is a limit, and the confidence is too low for a gate.
            NotEnoughEvidence: No p-value could be at or under the significance.
        """
        faults: list[str] = []
        if self.limit is not None:
            check_gate_confidence("confidence", self.confidence, faults)
        require(faults)
        needed = math.ceil(self.tests / self.significance - 1e-9) - 1
        if self.nulls < needed:
            raise NotEnoughEvidence(
                f"--nulls {self.nulls} cannot show anything at --significance "
                f"{self.significance:g}; it takes at least {needed}.",
                hint="Raise --nulls.",
            )


class Classifier(Protocol):
    """A function from images in [0, 1] to probabilities, ``(n, classes)``.

    Attributes:
        kind: What the model's answers are taken for: "logits" or "probabilities".
    """

    kind: str

    def __call__(self, images: Tensor) -> Tensor:
        """Return probabilities."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class AuditInputs:
    """The models and images of an audit.

    Attributes:
        model, twin: The twin is None where none was given.
        images: ``(n, c, h, w)``, in [0, 1].
        labelled: Images of the class that the patch may be planted under; None without a class.
        task: Images with labels of several classes, which show whether the model learnt its task;
            None where no labels are known.
    """

    model: Classifier
    twin: Classifier | None
    images: Tensor
    labelled: Tensor | None
    task: LabelledImages | None


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
        outcome: FAIL: evidence. PASS: none, M under the limit, and a model that reacts to patches
            and learnt its task. Else INCONCLUSIVE.
        sentence: The outcome in a sentence.
        claim: The strongest statement that the evidence supports.
    """

    model: Scores
    twin: Scores | None
    beyond: Estimate | None
    p_values: tuple[float, ...]
    limit: float | None
    task: TaskControl | None
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
    inputs: AuditInputs, model: Scores, twin: Scores | None, settings: Settings
) -> FeatureAudit:
    """Judge the scores of a model, beside those of its twin.

    Args:
        inputs: Models and images.
        model: What ``patch_scores`` gives for the model.
        twin: The same for the twin; None where there is none.
        settings: How the patch was scored.
    """
    p_values = tuple(adjusted_p_values(model.tested, alpha=settings.significance).tolist())
    answers = [inputs.model(part).argmax(dim=1) for part in inputs.images.split(settings.batch)]
    classes = len({int(label) for part in answers for label in part})
    task = None
    if settings.limit is not None and inputs.task is not None:
        rng = np.random.default_rng([settings.seed, 5])
        task = task_control(inputs.model, inputs.task, batch=settings.batch, rng=rng)
    blind = blindness(model, classes) or (NO_LABELS if task is None else task.reason)
    outcome, sentence = _verdict(model, twin, p_values, settings, blind)
    return FeatureAudit(
        model=model,
        twin=twin,
        beyond=None if twin is None else _difference(model, twin, settings),
        p_values=p_values,
        limit=settings.limit,
        task=task,
        outcome=outcome,
        sentence=sentence,
        claim=_claim(model, task, blind, outcome),
    )


def images_to_answer(inputs: AuditInputs, settings: Settings) -> int:
    """How many images each model has to answer for."""
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
    total, done = images_to_answer(inputs, settings), 0

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
    class. ``task_control`` is the other.
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


def _claim(model: Scores, task: TaskControl | None, blind: str, outcome: Outcome) -> str:
    if blind and outcome != "FAIL":
        return f"No claim: {blind[0].lower()}{blind[1:]}"
    m = model.black_box
    learnt = ""
    if outcome == "PASS" and task is not None:
        learnt = f" {task.measured} (lower bound {task.low:.1%}, 99% confidence)."
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
