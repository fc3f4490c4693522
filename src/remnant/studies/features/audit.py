"""Scores a patch on a model and on its twin, judges what that is evidence of, and makes the result.

The result never holds what the patch says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.measures import adjusted_p_values, m_score, probability_gain, white_box_m_score
from remnant.measures.features.unique_features import FLOOR
from remnant.measures.statistics.mean_interval import mean_interval
from remnant.records.outcomes import Outcome
from remnant.records.typed import plain
from remnant.studies.features.audit_inputs import AuditInputs, Classifier, Scores, Settings
from remnant.studies.features.audit_result import (
    NULL_VALUES,
    SCORE_NAMES,
    SIDES,
    Audit,
    FeatureAuditResult,
    GatedAudit,
    ModelScores,
    PatchControl,
    Score,
)
from remnant.studies.features.controls import (
    NO_LABELS,
    TaskControl,
    images_of_control,
    patch_control,
    task_control,
)
from remnant.studies.features.result import PatchPlace, PictureRow
from remnant.studies.features.verdict import (
    audit_blindness,
    audit_claim,
    audit_outcome,
    audit_verdict,
)
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.result_parts import Finding, Gate, Tested
from remnant.studies.shared.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from remnant.canaries import Patch, Patches
    from remnant.measures import MScore

_DRAWS = 999
LARGEST_M = -math.log(FLOOR)
"""No M is larger, in nats: a divergence of one image is at most that."""
PER_IMAGE = "{}_per_image"
"""Name of the array with M of the model, or of the twin, for each image."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PatchAudit:
    """The scores of a patch, what they are evidence of, and everything that the result says.

    Attributes:
        settings: How the patch was scored.
        patch: The patch.
        what: Its kind and size in words.
        inputs: Models and images.
        files: Names of the files, by option.
        model: The model's scores.
        twin: Of a model that was trained without the patch; None where none was given.
        beyond: M of the model less the twin's; None without one.
        p_values: Of the model's tested scores, corrected for their number (Holm).
        task: How well the model names labelled images; None without a limit or without labels.
        control: Whether the patch can be found, and whether a variant of it is; None where no PASS
            depends on it.
        outcome: FAIL: evidence. PASS: none, M under the limit, a model that reacts to patches and
            learnt its task, and a control that does not speak against it. Else INCONCLUSIVE.
        sentence: The outcome in a sentence.
        claim: The strongest statement that the evidence supports.
    """

    settings: Settings
    patch: Patch
    what: str
    inputs: AuditInputs
    files: Mapping[str, str] = field(default_factory=dict)
    model: Scores
    twin: Scores | None
    beyond: Estimate | None
    p_values: tuple[float, ...]
    task: TaskControl | None
    control: PatchControl | None
    outcome: Outcome
    sentence: str
    claim: str

    @property
    def verdict(self) -> Gate | Finding:
        """The outcome of a gate where a limit was given, else a finding."""
        return audit_verdict(self.outcome, self.sentence, self.claim, self.settings.limit)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """M of the model and of the twin, for each image and for each patch never planted."""
        arrays = {}
        for side in SIDES:
            if (scores := getattr(self, side)) is not None:
                arrays[PER_IMAGE.format(side)] = scores.black_box.per_image
                arrays[NULL_VALUES.format(side)] = scores.black_box.null_values
        return arrays


def feature_audit(
    inputs: AuditInputs,
    model: Scores,
    twin: Scores | None,
    patch: Patch,
    nulls: Patches | None,
    settings: Settings,
    progress: Callable[[int, int], None],
    *,
    what: str,
    files: Mapping[str, str],
) -> PatchAudit:
    """Judge the scores of a model, beside those of its twin.

    Args:
        inputs: Models and images.
        model: What ``patch_scores`` gives for the model.
        twin: The same for the twin; None where there is none.
        patch, nulls: What they were given.
        settings: How the patch was scored.
        progress: Of the control, which is tested only if a PASS depends on it.
        what: Kind and size of the patch in words.
        files: Names of the files, by option.
    """
    p_values = tuple(adjusted_p_values(model.tested, alpha=settings.significance).tolist())
    answers = [inputs.model(part).argmax(dim=1) for part in inputs.images.split(settings.batch)]
    classes = len({int(label) for part in answers for label in part})
    task = control = None
    if settings.limit is not None and inputs.task is not None:
        rng = np.random.default_rng([settings.seed, 5])
        task = task_control(inputs.model, inputs.task, batch=settings.batch, rng=rng)
    blind = audit_blindness(model, classes) or (NO_LABELS if task is None else task.reason)
    outcome, sentence = audit_outcome(model, twin, p_values, settings, blind)
    if outcome == "PASS":
        control = patch_control(inputs, patch, nulls, settings, progress)
        if blind := control.reason:
            outcome, sentence = audit_outcome(model, twin, p_values, settings, blind)
    return PatchAudit(
        settings=settings,
        patch=patch,
        what=what,
        inputs=inputs,
        files=files,
        model=model,
        twin=twin,
        beyond=None if twin is None else _difference(model, twin, settings),
        p_values=p_values,
        task=task,
        control=control,
        outcome=outcome,
        sentence=sentence,
        claim=audit_claim(model, task, control, blind, outcome),
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


def tested(audit: PatchAudit) -> list[str]:
    """Return what was tested, in sentences."""
    settings, images = audit.settings, audit.inputs.images
    shape = " x ".join(str(side) for side in images.shape[1:])
    lines = [
        f"{audit.what} at row {audit.patch.row}, column {audit.patch.column}"
        + ("" if audit.patch.opacity == 1.0 else f", opacity {audit.patch.opacity:g}"),
        f"{counted(len(images), 'image')} of {shape}, any images: each as it is, with the patch, "
        f"with a random patch ({settings.control}), and with {settings.nulls} "
        f"{settings.never_planted}",
        f"the model's answers were taken for {audit.inputs.model.kind}",
    ]
    if audit.inputs.labelled is not None:
        lines.append(
            f"{counted(len(audit.inputs.labelled), 'image')} of label {settings.label}, for the "
            "white-box scores"
        )
    if audit.task is not None:
        lines.append(
            f"{counted(audit.task.images, 'labelled image')}, for whether the model learnt "
            f"its task: {audit.task.right} get their label"
        )
    control = audit.control
    if control is not None and not control.untested:
        lines.append(
            f"whether the same test finds the patch in a copy of the model that was trained on "
            f"{counted(control.trained, 'image')} with it"
        )
    if control is not None and control.variants:
        names = ", ".join(variant.name for variant in control.variants)
        lines.append(f"the patch {names}")
    if audit.twin is not None:
        lines.append("the same on a twin, said to be trained without the patch")
    return lines


def not_tested(audit: PatchAudit) -> list[str]:
    """Return what was not tested, in sentences."""
    lines = [
        "whether the patch was in the training data: that the model reacts to it is seen, not why",
        "what another training run of the same recipe would give: intervals are over images, for "
        "this one model",
        "other renderings: another size, place or typeface of the same text",
    ]
    if audit.outcome != "FAIL":
        lines.append("that the patch was not memorised: finding nothing is no proof of that")
    if audit.twin is None:
        lines.append(
            "whether the patch is conspicuous by itself: a twin that was trained without it would "
            "show that (--twin)"
        )
    if audit.settings.against == "words":
        lines.append("names against names: random letters are no names, which may look different")
    if audit.inputs.labelled is None:
        lines.append("the class under which it was planted: --label asks about one")
    return lines


def audit_result(
    audit: PatchAudit, *, report: Path | None = None, pictures: tuple[PictureRow, ...] | None = None
) -> Audit:
    """Return everything that was measured, as it is stored and printed as JSON."""
    settings = audit.settings
    return (Audit if settings.limit is None else GatedAudit)(
        **plain(audit.verdict) | {"limit": settings.limit},
        significance=settings.significance,
        confidence=settings.confidence,
        p_values=audit.p_values,
        task=None if audit.task is None else audit.task.check,
        patch_control=audit.control,
        patch=PatchPlace.of(audit.patch, audit.what),
        files=dict(audit.files),
        outputs=audit.inputs.model.kind,
        images=len(audit.inputs.images),
        shape=tuple(audit.inputs.images.shape[1:]),
        label=settings.label,
        control=settings.control,
        against="words" if settings.against == "words" else "pixels",
        seed=settings.seed,
        model=_scores(audit.model),
        twin=None if audit.twin is None else _scores(audit.twin),
        beyond_twin=audit.beyond,
        tested=tuple(tested(audit)),
        not_tested=tuple(not_tested(audit)),
        report=None if report is None else str(report),
        pictures=pictures,
    )


def feature_audit_result(
    audit: PatchAudit, *, pictures: tuple[PictureRow, ...] | None = None
) -> FeatureAuditResult:
    """Return the whole result, as a record holds it."""
    result = audit_result(audit, pictures=pictures)
    return FeatureAuditResult(
        verdict=audit.verdict,
        scope=Tested(tested=result.tested, not_tested=result.not_tested),
        audit=result,
    )


def _score(score: MScore) -> Score:
    nulls = score.null_values
    return Score(
        value=Estimate(score.value, score.low, score.high),
        confidence=score.confidence,
        p_value=score.p_value,
        rank=round(score.p_value * (1 + score.n_nulls)),
        nulls=score.n_nulls,
        null_median=float(np.median(nulls)),
        null_largest=float(nulls.max()),
        t_test_p_value=score.t_test_p_value,
        carried_by_few="few carry the score" in score.method,
        images=score.n_images,
        method=score.method,
        convention=score.convention,
    )


def _scores(scores: Scores) -> ModelScores:
    measured = {name: getattr(scores, name) for name in SCORE_NAMES}
    return ModelScores(**{name: score and _score(score) for name, score in measured.items()})
