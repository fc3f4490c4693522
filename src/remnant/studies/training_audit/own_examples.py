"""From scores of one's own examples in one training to the parts of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NotEnoughEvidence, require
from remnant.measures.exposure.detection import Detection, detection
from remnant.measures.forgetting.attackers import hold_for_all
from remnant.measures.forgetting.control import ERROR
from remnant.measures.forgetting.one_run import OTHER_REFERENCES
from remnant.measures.forgetting.one_run_attackers import reference_scores
from remnant.measures.forgetting.recency import Uses
from remnant.measures.forgetting.verdict import (
    CHECK_SIGN,
    REVERSED,
    Verdict,
    cannot_exclude,
    percent,
    rounded_down,
    rounded_up,
)
from remnant.measures.statistics.checks import check_gate_confidence
from remnant.measures.statistics.evidence_faults import alike_fault
from remnant.measures.statistics.success import trial_success
from remnant.records.outcomes import Outcome, finding_row, gate_row
from remnant.records.typed import Absent
from remnant.studies.exposure.result import ExposureGate
from remnant.studies.one_run.measure import attackers_at_end
from remnant.studies.shared.result_parts import Finding, Tested
from remnant.studies.shared.wording import counted, times
from remnant.studies.training_audit.forgetting import MeasuredForgetting, measured_forgetting
from remnant.studies.training_audit.result import (
    AucAtStep,
    DetectedExamples,
    DetectedLevel,
    Forgetting,
    Overhead,
    RankedExample,
    Sightings,
    TrainingAuditResult,
)

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Bools = NDArray[np.bool_]
_STREAM = 7  # of random numbers, beside those of the audit
_NO_TEMPLATE = Absent("examples of one's own have no template, so there are no secrets to rank")
_NEVER_USED = "No planted example was in any batch that was trained on, so that nothing was tested."
_MORE_EXAMPLES = "Pass more examples and more controls."
_MORE = "Plant more examples, plant them more often, or train longer."


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredExamples:
    """What was measured in one training with examples of one's own.

    Attributes:
        kind: What the examples are.
        repeats: How often each planted example was planted.
        controls: How many controls there are.
        drawn: Whether they were drawn at random from one pool with the planted ones.
        scores: By step, higher = more likely seen, of planted examples and then of controls.
        score: What a score is, in words.
        final: The step of the trained model's scores.
        uses: ``(lines, 3)``: step, example and how often it was in the step's batches.
        context: Tokens before an example's own in a training row.
        overhead: What scoring cost.
        data: What was trained on, in words.
        seed: Draws the resamples behind the intervals.
        windows: The window of each planted example that a staggered plan meant, else None.
        controls_used: How many controls were in a batch.
        references: Scores in models that saw none of the examples, ``(models, examples)``, in the
            order of ``scores``; None where there are none.
    """

    kind: Literal["texts", "images"]
    repeats: Whole
    controls: int
    drawn: bool
    scores: Mapping[int, Floats]
    score: str
    final: int
    uses: Whole
    context: int
    overhead: Overhead
    data: str
    seed: int
    windows: Whole | None = None
    controls_used: int = 0
    references: Floats | None = None


def examples_audit(
    measured: MeasuredExamples, *, limit: float | None, judged: int | None
) -> TrainingAuditResult:
    """Return the result of an audit with examples of one's own.

    Args:
        measured: What was measured.
        limit: The gate's limit, an AUC above 0.5 and under 1; None for a finding.
        judged: Only examples planted at most so often are judged; None judges all.

    Raises:
        NotEnoughEvidence: The trained model was not scored.
    """
    if measured.final not in measured.scores:
        raise NotEnoughEvidence(
            "The trained model was not scored, so that nothing can be judged.",
            hint="Its scores were not numbers: lower the learning rate.",
        )
    planted = len(measured.repeats)
    counts = np.bincount(
        measured.uses[:, 1], weights=measured.uses[:, 2], minlength=planted
    ).astype(np.int64)
    sightings = _sightings(measured, counts)
    kept = _trained_on(measured.repeats, counts)
    detected = _detection(measured, kept)
    part = _part(measured, detected, counts, kept, judged=judged)
    if limit is None:
        verdict: ExposureGate | Finding = _finding(part, sightings)
    else:
        short = measured.repeats[kept & (counts < measured.repeats)]
        row = judge_detection(
            detected,
            part,
            limit=limit,
            judged=judged,
            used=sightings.uses > 0,
            trained_controls=sightings.trained_controls,
            fully_used=~np.isin(detected.repeats, short),
        )
        verdict = ExposureGate(**row)
    return TrainingAuditResult(
        verdict=verdict,
        exposure=_NO_TEMPLATE,
        repeats=_NO_TEMPLATE,
        costs=_NO_TEMPLATE,
        course=_NO_TEMPLATE,
        forgetting=_forgetting(measured),
        sightings=sightings,
        overhead=measured.overhead,
        scope=_scope(measured, sightings),
        detection=part,
    )


def _trained_on(repeats: Whole, counts: Whole) -> Bools:
    """The planted examples that are compared with the controls.

    Of each group planted equally often these are the examples that were in batches as often as they
    were planted; where most examples in batches were not, all of those; where none was in a batch,
    all.
    """
    kept = np.ones(len(repeats), dtype=bool)
    for level in np.unique(repeats):
        group = repeats == level
        fully, used = counts[group] >= level, counts[group] > 0
        if used.any():
            kept[group] = fully if 2 * fully.sum() >= used.sum() else used
    return kept


def judge_detection(
    detected: Detection,
    part: DetectedExamples,
    *,
    limit: float,
    judged: int | None,
    used: bool,
    trained_controls: str = "",
    fully_used: Bools | None = None,
) -> dict[str, Any]:
    """Judge the AUC of each group of examples planted equally often.

    FAIL where the one-sided lower bound of a judged group, corrected for their number, is above the
    limit. PASS where every judged group's one-sided upper bound is at or under it, for every
    attacker that could be computed, reference models do not seem to have seen the examples, these
    were in batches as often as they were planted, no control was in a batch, most scores do not tie
    with those of controls, and the attack found
    some group, judged or not, which is the positive control. Otherwise INCONCLUSIVE.

    Args:
        detected: What was measured.
        part: The same as a part of the result.
        limit: The largest AUC allowed.
        judged: Only groups planted at most so often are judged; None judges all.
        used: Whether any planted example was in a batch.
        trained_controls: Why controls make no comparison; empty where they do.
        fully_used: Whether the examples of each group were in batches as often as they were
            planted; None where all were.

    Returns:
        The row of the gate.
    """
    faults: list[str] = []
    check_gate_confidence("confidence", detected.confidence, faults)
    require(faults)
    chosen = _judged(detected, judged)
    rows = np.flatnonzero(chosen)
    upper = detected.upper(detected.confidence)
    lower = detected.lower(1.0 - (1.0 - detected.confidence) / rows.size)
    worst = int(rows[np.argmax(upper[rows])])
    sure = f"one-sided {percent(detected.confidence)} bound"

    def made(outcome: Outcome, sentence: str, claim: str) -> dict[str, Any]:
        detected_there = bool(lower[rows].max() > 0.5 or detected.p_values[rows].min() <= ERROR)
        return gate_row(
            outcome=outcome, sentence=sentence, claim=claim, limit=limit, detected=detected_there
        )

    if not used:
        return made(
            "INCONCLUSIVE", _NEVER_USED, f"No claim: {_NEVER_USED[0].lower()}{_NEVER_USED[1:]}"
        )
    fault = detected.evidence.evidence.reference_fault
    if lower[rows].max() > limit:
        row = int(rows[np.argmax(lower[rows])])
        said = f"{_in_words(detected, part, row)}, at least {rounded_down(lower[row])} ({sure})"
        if fault.of_controls:
            return made(
                "INCONCLUSIVE",
                f"{said}; but {fault.reason}. {OTHER_REFERENCES}",
                f"No claim: {fault.reason}.",
            )
        return made("FAIL", f"{said}: above the limit of {limit:g}.", f"{said}.")
    said = f"{_in_words(detected, part, worst)}, at most {rounded_up(upper[worst])} ({sure})"
    claim = f"{said}; {cannot_exclude(1)}."
    if upper[worst] > limit:
        return made(
            "INCONCLUSIVE", f"{said}: not under the limit of {limit:g}. {_MORE_EXAMPLES}", claim
        )
    under = f"{said}: under the limit of {limit:g}"
    alike = alike_fault(detected.evidence.evidence.tied_pairs[rows].max(axis=0))
    if alike:
        return made("INCONCLUSIVE", f"{under}; but {alike}.", f"No claim: {alike}.")
    if fault.reason:
        return made(
            "INCONCLUSIVE",
            f"{under}; but {fault.reason}. {OTHER_REFERENCES}",
            f"No claim: {fault.reason}.",
        )
    if upper[rows].min() < 0.5:
        return made(
            "INCONCLUSIVE", f"{under}; but {REVERSED}. {CHECK_SIGN}", f"No claim: {REVERSED}."
        )
    if trained_controls:
        why = f"{trained_controls[0].lower()}{trained_controls[1:]}"
        return made("INCONCLUSIVE", f"{under}; but {why}", f"No claim: {why}")
    short = rows[:0] if fully_used is None else rows[~fully_used[rows]]
    if short.size:
        why = (
            f"most {part.kind} planted {times(detected.repeats[short[0]])} were in batches less "
            "often than that"
        )
        return made(
            "INCONCLUSIVE", f"{under}; but {why}. Train for a whole epoch.", f"No claim: {why}."
        )
    if not part.found:
        none = f"No claim: {part.control[0].lower()}{part.control[1:]}"
        return made("INCONCLUSIVE", f"{under}. {part.control} {_MORE}", none)
    held = hold_for_all(
        Verdict("PASS", f"{under}. {part.control}", claim, limit, lag=0.0),
        {other.name: other.high for other in attackers_at_end(detected.evidence, chosen)},
        what="attack AUC",
        confidence=detected.confidence,
        doubts={
            other.name: other.doubt(detected.confidence, 0.5)
            for other in detected.evidence.evidence.others
        },
    )
    return made(held.outcome, held.sentence, held.claim)


def _judged(detected: Detection, judged: int | None) -> Bools:
    """Which groups are judged."""
    return np.asarray(detected.repeats <= (judged or detected.repeats.max()))


def examples_course(
    scores: Mapping[int, Floats], repeats: Whole, *, calibrate: bool
) -> tuple[AucAtStep, ...]:
    """Return the AUC by step and by how often examples were planted.

    Args:
        scores: By step, of planted examples and then of controls.
        repeats: How often each planted example was planted.
        calibrate: Whether the scores of the first step are subtracted.
    """
    if not scores:
        return ()
    first = scores[min(scores)] if calibrate else 0.0
    planted = len(repeats)
    rows = []
    for step, values in sorted(scores.items()):
        risen = np.asarray(values, dtype=np.float64) - first
        for level in np.unique(repeats).tolist():
            seen = risen[:planted][repeats == level]
            area = trial_success(seen, risen[planted:], success="auc", fpr=0.1)
            rows.append(AucAtStep(step=step, repeats=level, n=len(seen), auc=area))
    return tuple(rows)


def _course(measured: MeasuredExamples, kept: Bools, *, calibrate: bool) -> tuple[AucAtStep, ...]:
    """The AUC by step of the examples that the final one is about."""
    every = _with_controls(measured, kept)
    scores = {step: values[every] for step, values in measured.scores.items()}
    if measured.references is not None:
        models = measured.references[:, None, every]
        scores = {
            step: reference_scores(values[None], models).scores[0]
            for step, values in scores.items()
        }
    return examples_course(scores, measured.repeats[kept], calibrate=calibrate)


def _with_controls(measured: MeasuredExamples, kept: Bools) -> Bools:
    """The planted examples that are kept, and all controls."""
    return np.concatenate([kept, np.ones(measured.controls, dtype=bool)])


def _detection(measured: MeasuredExamples, kept: Bools) -> Detection:
    planted = len(measured.repeats)
    final, before = measured.scores[measured.final], measured.scores.get(0)
    if measured.final == 0:
        before = None
    return detection(
        scores=final[:planted][kept],
        control_scores=final[planted:],
        repeats=measured.repeats[kept],
        before=None if before is None else before[:planted][kept],
        control_before=None if before is None else before[planted:],
        references=None
        if measured.references is None
        else measured.references[:, _with_controls(measured, kept)],
        rng=np.random.default_rng([measured.seed, _STREAM]),
    )


def _part(
    measured: MeasuredExamples,
    detected: Detection,
    counts: Whole,
    kept: Bools,
    *,
    judged: int | None,
) -> DetectedExamples:
    found = bool((detected.p_values <= ERROR).any())
    best = int(np.argmin(detected.p_values))
    control = (
        f"The attack found no group of planted {measured.kind}, so that a low AUC says nothing."
    )
    if found:
        control = (
            f"The attack found the {measured.kind} planted {times(detected.repeats[best])}: a "
            f"rank-sum test against the controls gives p = {detected.p_values[best]:.2g}, "
            "corrected for all tests."
        )
    ranks = detected.ranks
    return DetectedExamples(
        kind=measured.kind,
        levels=tuple(
            DetectedLevel(
                repeats=int(detected.repeats[i]),
                n=int(detected.n[i]),
                auc=float(detected.auc[i]),
                auc_low=float(detected.auc_low[i]),
                auc_high=float(detected.auc_high[i]),
                tpr=float(detected.tpr[i]),
                tpr_low=float(detected.tpr_low[i]),
                tpr_high=float(detected.tpr_high[i]),
                p_value=float(detected.p_values[i]),
            )
            for i in range(len(detected.repeats))
        ),
        examples=tuple(
            RankedExample(
                number=int(i) + 1,
                repeats=int(measured.repeats[i]),
                uses=int(counts[i]),
                bits=float(ranks.bits[j]),
                low=float(ranks.low[j]),
                high=float(ranks.high[j]) if np.isfinite(ranks.high[j]) else None,
                saturated=bool(ranks.saturated[j]),
            )
            for j, i in enumerate(np.flatnonzero(kept))
        ),
        course=_course(measured, kept, calibrate=detected.calibrated),
        controls=detected.n_controls,
        controls_drawn=measured.drawn,
        score=measured.score,
        calibrated=detected.calibrated,
        fpr=detected.fpr,
        ceiling_bits=float(ranks.ceiling),
        found=found,
        control=control,
        confidence=detected.confidence,
        method=detected.method,
        attacker=detected.attacker,
        references=detected.references,
        others=attackers_at_end(detected.evidence, _judged(detected, judged)),
    )


def _in_words(detected: Detection, part: DetectedExamples, row: int) -> str:
    n = int(detected.n[row])
    return (
        f"The AUC of {detected.attacker} is {detected.auc[row]:.3f} on {n} {part.kind} planted "
        f"{times(detected.repeats[row])}, against {detected.n_controls} controls"
    )


def _finding(part: DetectedExamples, sightings: Sightings) -> Finding:
    """What to say where no limit was set."""
    level = part.highest
    sentence = (
        f"The highest AUC is {level.auc:.3f} ({percent(part.confidence)} CI {level.auc_low:.3f} to "
        f"{level.auc_high:.3f}), on {level.n} {part.kind} planted {times(level.repeats)}. "
        f"{part.control} No limit was set, so that nothing was judged."
    )
    if not sightings.uses:
        sentence = f"{_NEVER_USED} {sentence}"
    if sightings.trained_controls:
        sentence = f"{sightings.trained_controls} {sentence}"
    return Finding(
        **finding_row(
            headline="Attack success measured, not judged",
            sentence=sentence,
            advice="Set limit= to an AUC between 0.5 and 1 to have the outcome judged.",
        )
    )


def _sightings(measured: MeasuredExamples, counts: Whole) -> Sightings:
    steps = measured.uses[:, 0]
    return Sightings(
        planted=len(counts),
        seen=int((counts > 0).sum()),
        uses=int(counts.sum()),
        fewest=int(counts.min()),
        most=int(counts.max()),
        first_step=int(steps.min()) if len(steps) else None,
        last_step=int(steps.max()) if len(steps) else None,
        context=measured.context,
        controls=measured.controls_used or None,
    )


def _forgetting(measured: MeasuredExamples) -> Forgetting | Absent:
    """The curve by recency of the planted examples."""
    never = np.full(measured.controls, -1, dtype=np.int64)
    curve = measured_forgetting(
        scores=measured.scores,
        uses=Uses.of(measured.uses, examples=len(measured.repeats) + measured.controls),
        levels=np.concatenate([measured.repeats, never * 0]),
        planned=None if measured.windows is None else np.concatenate([measured.windows, never]),
        seed=measured.seed,
        references=measured.references,
    )
    return curve.part if isinstance(curve, MeasuredForgetting) else curve


def _scope(measured: MeasuredExamples, sightings: Sightings) -> Tested:
    planted = len(measured.repeats)
    source = (
        "drawn at random from the same pool, never planted"
        if measured.drawn
        else "given apart from them, never planted"
    )
    not_tested: tuple[str, ...] = (
        "Which single example can be extracted: the AUC is about groups of them.",
        "Attacks that do not go through the model's probabilities.",
        "How much another training would differ: there was one.",
    )
    if not measured.drawn:
        not_tested = (
            "Whether the controls were drawn the same way as the planted examples: without that, "
            "a difference between them need not be memory.",
            *not_tested,
        )
    return Tested(
        tested=(
            f"One training on {measured.data}, with {planted} {measured.kind} of one's own that "
            f"were {sightings.uses} times in its batches.",
            f"{counted(measured.controls, 'control')}, {source}.",
        ),
        not_tested=not_tested,
    )
