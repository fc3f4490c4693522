"""From canaries, scores and batches of one training to the parts of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries.canary_set import CanarySet
from remnant.measures import exposure as sampled_exposure
from remnant.measures.forgetting.recency import Uses
from remnant.records.outcomes import finding_row
from remnant.records.typed import Absent
from remnant.studies.exposure.audit import ExposureAudit
from remnant.studies.exposure.measure import (
    TrialExposure,
    canary_pool,
    exposure_by_repeats,
    exposures,
    reference_costs,
)
from remnant.studies.exposure.result import (
    CanaryExposure,
    ExposureByRepeats,
    ExposureGate,
    Exposures,
)
from remnant.studies.exposure.verdict import CanaryPool, judge_exposure
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import counted
from remnant.studies.training_audit.forgetting import MeasuredForgetting, measured_forgetting
from remnant.studies.training_audit.result import (
    Course,
    Forgetting,
    LevelAtStep,
    Overhead,
    Sightings,
    TrainingAuditResult,
)

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
_NEVER_USED = "No canary was in any batch that was trained on, so a low exposure says nothing."


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was measured in one training.

    Attributes:
        canaries: What was planted, and the controls.
        trained: Exposure of canaries and then of controls in the trained model.
        base: The same secrets in the model without its adapter; None where there is none.
        scores: Costs in bits by step, of canaries, then controls, then references.
        uses: ``(lines, 3)``: step, canary and how often it was in the step's batches.
        context: Tokens before the canary's own in a training row.
        overhead: What scoring cost.
        data: What was trained on, in words.
        windows: The window of each canary that a staggered plan meant; None for other plans.
        controls_used: How many controls were in a batch.
    """

    canaries: CanarySet
    trained: ExposureAudit
    base: ExposureAudit | None
    scores: Mapping[int, Floats]
    uses: Whole
    context: int
    overhead: Overhead
    data: str
    windows: Whole | None = None
    controls_used: int = 0


def training_audit(
    measured: Measured, *, limit: float | None, judged: int | None, share: float | None = None
) -> TrainingAuditResult:
    """Return the result of an audit.

    Args:
        measured: What was measured.
        limit: The gate's limit in bits; None for a finding.
        judged: Only canaries planted at most so often are judged; None judges all.
        share: The share of judged canaries that may be at or above the limit.
    """
    canary_set = measured.canaries
    planted = len(canary_set.canaries)
    counts = np.bincount(
        measured.uses[:, 1], weights=measured.uses[:, 2], minlength=planted
    ).astype(np.int64)
    trial = TrialExposure(
        canaries=canary_set,
        uses=counts,
        planted=measured.trained,
        twin=measured.base,
        searches={},
    )
    exposure = exposures([trial])
    sampled = exposure.method == "sampled"
    references = len(measured.trained.reference_costs)
    repeats = exposure_by_repeats(exposure, shared_references=references if sampled else None)
    sightings = _sightings(measured, counts)
    return TrainingAuditResult(
        verdict=_verdict(exposure, repeats, sightings, limit=limit, judged=judged, share=share),
        exposure=exposure,
        repeats=repeats,
        costs=reference_costs(trial, exposure)
        if np.isfinite(measured.trained.reference_costs).any()
        else Absent("no reference with a finite cost was sampled"),
        course=course(measured.scores, canary_set),
        forgetting=_forgetting(measured),
        sightings=sightings,
        overhead=measured.overhead,
        scope=_scope(measured, sightings),
    )


def _forgetting(measured: Measured) -> Forgetting | Absent:
    """The curve by recency of canaries, which are compared with the controls."""
    canary_set = measured.canaries
    secrets = len(canary_set.canaries) + len(canary_set.controls)
    never = np.full(len(canary_set.controls), -1, dtype=np.int64)
    curve = measured_forgetting(
        scores={step: -costs[:secrets] for step, costs in measured.scores.items()},
        uses=Uses.of(measured.uses, examples=secrets),
        levels=np.concatenate([np.array(canary_set.repeats, dtype=np.int64), never * 0]),
        planned=None if measured.windows is None else np.concatenate([measured.windows, never]),
        seed=canary_set.seed,
    )
    return curve.part if isinstance(curve, MeasuredForgetting) else curve


def _sightings(measured: Measured, counts: Whole) -> Sightings:
    steps = measured.uses[:, 0]
    return Sightings(
        planted=len(counts),
        seen=int((counts > 0).sum()),
        uses=int(counts.sum()),
        fewest=int(counts.min(initial=0) if not len(counts) else counts.min()),
        most=int(counts.max(initial=0)),
        first_step=int(steps.min()) if len(steps) else None,
        last_step=int(steps.max()) if len(steps) else None,
        context=measured.context,
        controls=measured.controls_used or None,
    )


def course(scores: Mapping[int, Floats], canary_set: CanarySet) -> Course | Absent:
    """Return mean exposure by step and by how often canaries were planted.

    Args:
        scores: Costs in bits by step, of canaries, then controls, then references.
        canary_set: The canaries and controls.
    """
    repeats = np.array([*canary_set.repeats, *[0] * len(canary_set.controls)], dtype=np.int64)
    secrets = len(repeats)
    if not scores or not secrets:
        return Absent("canaries were scored at no step")
    references = len(next(iter(scores.values()))) - secrets
    if references <= 0:
        return Absent("no reference was scored")
    rows = []
    for step, costs in sorted(scores.items()):
        ranked = sampled_exposure(
            canary_losses=costs[:secrets],
            reference_losses=costs[secrets:],
            space=canary_set.template.space,
        )
        for times in np.unique(repeats).tolist():
            alike = repeats == times
            rows.append(
                LevelAtStep(
                    step=step,
                    repeats=times,
                    n=int(alike.sum()),
                    mean_bits=float(ranked.bits[alike].mean()),
                    saturated=int(ranked.saturated[alike].sum()),
                )
            )
    return Course(references=references, ceiling_bits=math.log2(references + 1), rows=tuple(rows))


def _verdict(
    exposure: Exposures,
    repeats: ExposureByRepeats,
    sightings: Sightings,
    *,
    limit: float | None,
    judged: int | None,
    share: float | None,
) -> ExposureGate | Finding | Absent:
    if not exposure.canaries:
        return Absent("no canary was planted")
    if limit is None:
        return _finding(exposure, repeats, sightings)
    pool = canary_pool(exposure, repeats)

    def judge(canaries: tuple[CanaryExposure, ...]) -> dict[str, Any]:
        return judge_exposure(
            [replace(pool, canaries=canaries)],
            limit=limit,
            judged=judged,
            share=share,
            judged_setting="judged=",
        ).row()

    row = judge(pool.canaries)
    if row["outcome"] == "PASS":
        row = _of_trained(row, pool, sightings, judged=judged, judge=judge)
    return ExposureGate(**row)


def _of_trained(
    row: dict[str, Any],
    pool: CanaryPool,
    sightings: Sightings,
    *,
    judged: int | None,
    judge: Callable[[tuple[CanaryExposure, ...]], dict[str, Any]],
) -> dict[str, Any]:
    """A PASS is about canaries that the training used as often as they were planted."""
    if sightings.trained_controls:
        return row | _no_claim(sightings.trained_controls)
    if not sightings.uses:
        return row | _no_claim(_NEVER_USED)
    most = math.inf if judged is None else judged
    kept = tuple(
        canary for canary in pool.canaries if canary.repeats > most or canary.uses >= canary.repeats
    )
    left_out = len(pool.canaries) - len(kept)
    if not left_out:
        return row
    which = (
        f"{left_out} of {row['judged']} judged canaries were in batches less often than they were "
        "planted"
    )
    if left_out == row["judged"]:
        return row | _no_claim(f"{which}, so a low exposure says nothing.")
    row = judge(kept)
    return row | {"sentence": f"{row['sentence']} {which} and were not judged."}


def _no_claim(why: str) -> dict[str, str]:
    """What takes the place of a PASS that says nothing."""
    return {
        "outcome": "INCONCLUSIVE",
        "sentence": why,
        "claim": f"No claim: {why[0].lower()}{why[1:]}",
    }


def _finding(exposure: Exposures, repeats: ExposureByRepeats, sightings: Sightings) -> Finding:
    """What to say where no limit was set."""
    highest = exposure.highest
    most = 0.0 if highest is None else highest.shown
    sentence = (
        f"The most exposed of {counted(len(exposure.canaries), 'canary', 'canaries')} has "
        f"{most:.1f} of {exposure.ceiling_bits:.1f} bits. No limit was set, so that nothing was "
        "judged."
    )
    if not sightings.uses:
        sentence = f"{_NEVER_USED} {sentence}"
    if sightings.trained_controls:
        sentence = f"{sightings.trained_controls} {sentence}"
    return Finding(
        **finding_row(
            headline="Exposure measured, not judged",
            sentence=sentence,
            advice="Set limit= to have the outcome judged.",
        )
    )


def _scope(measured: Measured, sightings: Sightings) -> Tested:
    canary_set = measured.canaries
    tested = [
        f"One training on {measured.data}, with "
        f"{counted(len(canary_set.canaries), 'canary', 'canaries')} that were "
        f"{sightings.uses} times in its batches.",
        f"{counted(len(canary_set.controls), 'control')} of the same template, never planted.",
    ]
    if measured.base is not None:
        tested.append("The same secrets in the model without its adapter.")
    return Tested(
        tested=tuple(tested),
        not_tested=(
            "Secrets of another format, and secrets that were in the data already.",
            "Attacks that do not go through the model's probabilities.",
            "How much another training would differ: there was one.",
        ),
    )
