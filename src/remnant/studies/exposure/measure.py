"""From models and secrets to the parts of an exposure result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet
from remnant.errors import NotEnoughEvidence
from remnant.measures import pooled_exposure_test
from remnant.measures.exposure.by_rank import NULL_MEAN_BITS
from remnant.measures.statistics.trial_mean import trial_mean
from remnant.plans import InsertPlan
from remnant.records import Record
from remnant.records.typed import Absent, plain, put_parts
from remnant.search import Extraction
from remnant.studies.exposure.above_controls import above_controls
from remnant.studies.exposure.audit import ExposureAudit
from remnant.studies.exposure.result import (
    CanaryExposure,
    Candidate,
    CostMark,
    ExposureByRepeats,
    ExposureGate,
    Exposures,
    Extractions,
    ReferenceCosts,
    Search,
    SkewNormalLaw,
)
from remnant.studies.exposure.verdict import CanaryPool, judge_exposure
from remnant.studies.shared.gates import with_learnt_task
from remnant.studies.shared.result_parts import LanguageTask, Tested
from remnant.studies.shared.text_settings import MeasureSettings
from remnant.studies.shared.wording import counted, each_times
from remnant.tasks.secrets import SecretWords

Given = Literal["source", "beginning"] | None


@dataclass(frozen=True, slots=True)
class TrialSearch:
    """The outcome of a search for secrets in one model, without the secrets.

    Attributes:
        certified, nodes, space, tolerance: See ``Extraction``.
        candidates: For each secret found, the place of the trial's canary that it is (None where
            it is none), and its cost in bits; the cheapest first.
    """

    certified: bool
    nodes: int
    space: int
    tolerance: float
    candidates: tuple[tuple[int | None, float], ...]

    @classmethod
    def of(cls, extraction: Extraction, canaries: CanarySet) -> TrialSearch:
        """Return the outcome of a search in a model of the trial with these canaries."""
        places = {canary.secret: j for j, canary in enumerate(canaries.canaries)}
        return cls(
            certified=extraction.certified,
            nodes=extraction.nodes,
            space=extraction.space,
            tolerance=extraction.tolerance,
            candidates=tuple((places.get(secret), bits) for secret, bits in extraction.candidates),
        )


@dataclass(frozen=True, slots=True, eq=False)
class TrialExposure:
    """What was measured in one trial; canaries first, then controls.

    Attributes:
        canaries: The trial's canary set.
        uses: How often training used each canary.
        planted: Exposure in the member that was trained on the canaries.
        twin: The same secrets in the member that was not; ``None`` where the plan has none.
        searches: Extraction from each of the two, by the member's name.
    """

    canaries: CanarySet
    uses: NDArray[np.int64]
    planted: ExposureAudit
    twin: ExposureAudit | None
    searches: dict[str, TrialSearch]


def put_exposure_results(
    plan: InsertPlan,
    measure: MeasureSettings,
    record: Record,
    trials: Sequence[TrialExposure],
    *,
    task: LanguageTask,
    scope: Tested,
    given: Given = None,
) -> None:
    """Put exposure, extraction, the task, the verdict and the scope into the record; no secret.

    Args:
        plan, measure: Of the study.
        record: That they are put into.
        trials: What was measured.
        task: How well the models predict validation text. The verdict is no PASS where that is no
            better than a uniform guess.
        scope: What the study tests.
        given: What a translator was given: each secret's own ``"source"``, so that references have
            no common histogram, or the ``"beginning"`` of all.
    """
    exposure = exposures(trials, given=given)
    common = given != "source"
    shared = len(trials[0].planted.reference_costs) if exposure.method == "sampled" else None
    repeats = exposure_by_repeats(exposure, shared_references=shared if common else None)
    costs: ReferenceCosts | Absent
    if not measure.references:
        costs = Absent("the study samples no references")
    elif not common:
        costs = Absent("each secret has references of its own: those given its source")
    else:
        costs = reference_costs(trials[0], exposure)
    judgement = judge_exposure(
        [canary_pool(exposure, repeats)],
        limit=measure.limit,
        judged=measure.judged or min(plan.repeats),
        share=measure.share,
        trainings=len(trials),
        copying=not common,
    )
    put_parts(
        record,
        exposure=exposure,
        repeats=repeats,
        costs=costs,
        extraction=extractions(trials, top=measure.top),
        task=task,
        verdict=ExposureGate(**with_learnt_task(judgement.row(), plain(task))),
        scope=scope,
    )


def canary_pool(exposure: Exposures, repeats: ExposureByRepeats) -> CanaryPool:
    """The canaries and controls of all trials, for the gate."""
    return CanaryPool(
        canaries=exposure.canaries,
        controls=exposure.controls,
        p_values={level.repeats: level.pooled_pvalue for level in repeats.levels},
        twin_mean_bits={
            level.repeats: level.twin_mean_bits
            for level in repeats.levels
            if level.twin_mean_bits is not None
        },
    )


def insertion_scope(plan: InsertPlan, words: SecretWords) -> Tested:
    """What a study with inserted secrets tests, and what it does not."""
    twins = [f"A twin of each run that differs in the planted {words.unit}s alone."]
    once = ["How much another training run would differ: there was one."]
    return Tested(
        tested=(
            f"{counted(plan.trials, 'training run')} of {plan.steps} steps on {words.data}, "
            f"with {words.canaries} planted {each_times(plan.repeats)}.",
            *words.tested,
            f"{counted(plan.controls, 'control')} of the same template, never planted.",
            *(twins if plan.twin else ()),
        ),
        not_tested=(
            f"Secrets of another format, and secrets that were in the {words.place} already.",
            "Attacks that do not go through the model's probabilities.",
            *words.not_tested,
            *(once if plan.trials == 1 else ()),
        ),
    )


def exposures(trials: Sequence[TrialExposure], *, given: Given = None) -> Exposures:
    """Return the exposure of every canary and control of all trials.

    Args:
        trials: What was measured.
        given: See ``put_exposure_results``.
    """
    method, reason = _method(trials)
    tolerances = [
        trial.planted.tolerance for trial in trials if trial.planted.tolerance is not None
    ]
    canaries: list[CanaryExposure] = []
    controls: list[CanaryExposure] = []
    for number, trial in enumerate(trials):
        planted = len(trial.canaries.canaries)
        for j in range(len(trial.planted.each)):
            kind, rows = ("canary", canaries) if j < planted else ("control", controls)
            rows.append(_exposed(trial, j, name=f"{kind} {len(rows) + 1}", number=number))
    return Exposures(
        template=trials[0].canaries.template.pattern,
        space=trials[0].planted.space,
        ceiling_bits=math.log2(trials[0].planted.space),
        method=method,
        reason=reason,
        tolerance=max(tolerances, default=None),
        nodes=sum(trial.planted.nodes for trial in trials),
        null_mean_bits=NULL_MEAN_BITS,
        canaries=tuple(canaries),
        controls=tuple(controls),
        given=given,
    )


def _exposed(trial: TrialExposure, j: int, *, name: str, number: int) -> CanaryExposure:
    """The secret at place ``j`` of a trial: canaries come first, then controls."""
    is_canary = j < len(trial.canaries.canaries)
    return replace(
        trial.planted.each[j],
        name=name,
        trial=number,
        repeats=trial.canaries.repeats[j] if is_canary else 0,
        uses=int(trial.uses[j]) if is_canary else 0,
        twin_bits=None if trial.twin is None else trial.twin.each[j].bits,
    )


def _method(trials: Sequence[TrialExposure]) -> tuple[Literal["exact", "sampled"], str]:
    """By which method all trials were measured, and why: exact only if each of them was."""
    audits = [trial.planted for trial in trials]
    shown = next((at for at, audit in enumerate(audits) if audit.method != "exact"), 0)
    reason = audits[shown].reason
    if len({audit.reason for audit in audits}) > 1:
        reason += f", in trial {shown + 1}"
    if audits[shown].method == "exact":
        return "exact", reason
    secrets = [secret for audit in audits for secret in audit.each]
    exact = sum(secret.rank is not None for secret in secrets)
    if exact:
        reason += f"; {exact} of {len(secrets)} canaries and controls "
        reason += f"{'was' if exact == 1 else 'were'} ranked exactly all the same"
    return "sampled", reason


def exposure_by_repeats(
    exposure: Exposures, *, shared_references: int | None = None
) -> ExposureByRepeats:
    """Return mean exposure against repeats, with a test of each against chance and controls.

    A p-value is None where too few sampled references are shared by too many canaries, and of
    controls against themselves. The interval of a mean is over trials; None for one trial, and
    where references were saturated: the mean is then at least ``mean_at_least``, into which these
    enter with their lower ends.
    """
    rows = [*exposure.controls, *exposure.canaries]
    counts = sorted({row.repeats for row in rows})
    groups = [[row for row in rows if row.repeats == repeats] for repeats in counts]
    twins = [[row.twin_bits for row in group if row.twin_bits is not None] for group in groups]
    over_trials = [_over_trials(group, exposure.ceiling_bits) for group in groups]
    return ExposureByRepeats(
        repeats=tuple(counts),
        n=tuple(len(group) for group in groups),
        mean_bits=tuple(float(np.mean([row.bits for row in group])) for group in groups),
        mean_at_least=tuple(map(_at_least, groups)),
        mean_low=tuple(ends[0] for ends in over_trials),
        mean_high=tuple(ends[1] for ends in over_trials),
        median_bits=tuple(float(np.median([row.shown for row in group])) for group in groups),
        twin_mean_bits=tuple(float(np.mean(bits)) if bits else None for bits in twins),
        pooled_pvalue=tuple(
            _pooled([row.bits for row in group], shared_references) for group in groups
        ),
        control_pvalue=tuple(
            above_controls(group, exposure.controls) if repeats else None
            for repeats, group in zip(counts, groups, strict=True)
        ),
    )


def _at_least(rows: Sequence[CanaryExposure]) -> float | None:
    """Lower bound of a mean, where some of its exposures are saturated; else None."""
    if not any(row.saturated for row in rows):
        return None
    return float(np.mean([row.shown for row in rows]))


def _over_trials(rows: Sequence[CanaryExposure], most: float) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean exposure of canaries planted equally often."""
    if any(row.saturated for row in rows):
        return None, None
    trials = sorted({row.trial for row in rows})
    means = [np.mean([row.bits for row in rows if row.trial == trial]) for trial in trials]
    interval = trial_mean(means, most=most)
    return interval.low, interval.high


def _pooled(bits: list[float], shared_references: int | None) -> float | None:
    try:
        return float(pooled_exposure_test(bits, shared_references=shared_references).p_value)
    except NotEnoughEvidence:
        return None


def reference_costs(trial: TrialExposure, exposure: Exposures, *, bins: int = 40) -> ReferenceCosts:
    """Return the histogram of the references' costs, with the trial's canaries marked."""
    audit = trial.planted
    finite = audit.reference_costs[np.isfinite(audit.reference_costs)]
    counts, edges = np.histogram(finite, bins=bins)
    extrapolated = audit.extrapolated
    law = None if extrapolated is None else extrapolated.fit
    return ReferenceCosts(
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        n_references=len(audit.reference_costs),
        skew_normal=None
        if law is None
        else SkewNormalLaw(shape=law.shape, location=law.location, scale=law.scale),
        ks_pvalue=None if extrapolated is None else float(extrapolated.ks_pvalue),
        marked=tuple(
            CostMark(
                name=canary.name,
                repeats=canary.repeats,
                cost=canary.cost,
                bits=canary.bits,
                at_least=canary.low if canary.saturated else None,
            )
            for canary in exposure.canaries
            if canary.trial == 0 and math.isfinite(canary.cost)
        ),
        member="planted, trial 1",
    )


def extractions(trials: Sequence[TrialExposure], *, top: int) -> Extractions:
    """Return what was extracted from each model, named by canary; no secret is in it.

    Args:
        trials: With their searches.
        top: How many secrets each search was to return.
    """
    searches = []
    before = 0
    for trial in trials:
        for member, search in trial.searches.items():
            candidates = []
            for j, bits in search.candidates:
                candidates.append(
                    Candidate(
                        bits=bits if math.isfinite(bits) else None,
                        canary=None if j is None else f"canary {before + j + 1}",
                        repeats=None if j is None else trial.canaries.repeats[j],
                    )
                )
            searches.append(
                Search(
                    member=member,
                    asked=top,
                    certified=search.certified,
                    nodes=search.nodes,
                    space=search.space,
                    tolerance=search.tolerance,
                    candidates=tuple(candidates),
                )
            )
        before += len(trial.canaries.canaries)
    return Extractions(searches=tuple(searches))
