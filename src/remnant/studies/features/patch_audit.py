"""An audit of a patch as a result and as a page; never what the patch says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from remnant.records.typed import plain
from remnant.report.blocks import Page
from remnant.report.curve import SPACE
from remnant.report.numerals import counted
from remnant.studies.features.audit_page import TITLE, page
from remnant.studies.features.audit_result import (
    NULL_VALUES,
    SCORE_NAMES,
    SIDES,
    Audit,
    FeatureAuditResult,
    GatedAudit,
    ModelScores,
    Score,
    TaskCheck,
)
from remnant.studies.features.result import PatchPlace, PictureRow
from remnant.studies.shared.estimates import Estimate
from remnant.studies.shared.pages import RunFacts
from remnant.studies.shared.result_parts import Tested

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from remnant.canaries import Patch
    from remnant.measures import MScore
    from remnant.studies.features.audit import FeatureAudit, Scores
    from remnant.studies.features.audit_inputs import AuditInputs, Settings
    from remnant.studies.features.task_control import TaskControl

QUESTION = "feature-audit"
PER_IMAGE = "{}_per_image"
"""Name of the array with M of the model, or of the twin, for each image."""


@dataclass(frozen=True, slots=True, eq=False)
class PatchAudit:
    """An audit with everything that its result says.

    Attributes:
        judged: Scores and verdict.
        settings: How the patch was scored.
        patch: The patch.
        what: Its kind and size in words.
        inputs: Models and images.
        files: Names of the files, by option.
    """

    judged: FeatureAudit
    settings: Settings
    patch: Patch
    what: str
    inputs: AuditInputs
    files: Mapping[str, str] = field(default_factory=dict)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """M of the model and of the twin, for each image and for each patch never planted."""
        arrays = {}
        for side in SIDES:
            if (scores := getattr(self.judged, side)) is not None:
                arrays[PER_IMAGE.format(side)] = scores.black_box.per_image
                arrays[NULL_VALUES.format(side)] = scores.black_box.null_values
        return arrays


def tested(audit: PatchAudit) -> list[str]:
    """Return what was tested, in sentences."""
    settings, images = audit.settings, audit.inputs.images
    shape = " x ".join(str(side) for side in images.shape[1:])
    lines = [
        f"{audit.what} at row {audit.patch.row}, column {audit.patch.column}"
        + ("" if audit.patch.opacity == 1.0 else f", opacity {audit.patch.opacity:g}"),
        f"{_counted(len(images), 'image')} of {shape}, any images: each as it is, with the patch, "
        f"with a random patch ({settings.control}), and with {settings.nulls} "
        f"{settings.never_planted}",
        f"the model's answers were taken for {audit.inputs.model.kind}",
    ]
    if audit.inputs.labelled is not None:
        lines.append(
            f"{_counted(len(audit.inputs.labelled), 'image')} of label {settings.label}, for the "
            "white-box scores"
        )
    if audit.judged.task is not None:
        lines.append(
            f"{_counted(audit.judged.task.images, 'labelled image')}, for whether the model learnt "
            f"its task: {audit.judged.task.right} get their label"
        )
    control = audit.judged.control
    if control is not None and not control.untested:
        lines.append(
            f"whether the same test finds the patch in a copy of the model that was trained on "
            f"{_counted(control.trained, 'image')} with it"
        )
    if control is not None and control.variants:
        names = ", ".join(variant.name for variant in control.variants)
        lines.append(f"the patch {names}")
    if audit.judged.twin is not None:
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
    if audit.judged.outcome != "FAIL":
        lines.append("that the patch was not memorised: finding nothing is no proof of that")
    if audit.judged.twin is None:
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
    judged, settings = audit.judged, audit.settings
    return (Audit if judged.limit is None else GatedAudit)(
        **plain(judged.verdict) | {"limit": settings.limit},
        significance=settings.significance,
        confidence=settings.confidence,
        p_values=judged.p_values,
        task=None if judged.task is None else _task(judged.task),
        patch_control=judged.control,
        patch=PatchPlace.of(audit.patch, audit.what),
        files=dict(audit.files),
        outputs=audit.inputs.model.kind,
        images=len(audit.inputs.images),
        shape=tuple(audit.inputs.images.shape[1:]),
        label=settings.label,
        control=settings.control,
        against="words" if settings.against == "words" else "pixels",
        seed=settings.seed,
        model=_scores(judged.model),
        twin=None if judged.twin is None else _scores(judged.twin),
        beyond_twin=judged.beyond,
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
        verdict=audit.judged.verdict,
        scope=Tested(tested=result.tested, not_tested=result.not_tested),
        audit=result,
    )


def unrecorded_page(audit: PatchAudit) -> Page:
    """Return the page of an audit that has no record; it shows no pictures."""
    run = RunFacts(
        name="",
        question=QUESTION,
        complete=True,
        fingerprint="",
        plan={},
        recipe={},
        ledger=(),
        groups=(),
        array=audit.arrays().__getitem__,
    )
    return Page(
        title=TITLE,
        question=QUESTION,
        name="",
        fingerprint="",
        complete=True,
        blocks=tuple(page(feature_audit_result(audit), run)),
    )


def _counted(count: int, thing: str) -> str:
    """A count with plain spaces, as the record and JSON have it."""
    return counted(count, thing).replace(SPACE, " ")


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


def _task(task: TaskControl) -> TaskCheck:
    return TaskCheck(
        images=task.images,
        right=task.right,
        low=task.low,
        majority=task.majority,
        p_value=task.p_value,
        learnt=not task.reason,
    )
