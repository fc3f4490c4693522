"""From models and secrets to exposure, extraction and a verdict, as plain data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from remnant.canaries import CanarySet, Template
from remnant.errors import NotEnoughEvidence, PlanError
from remnant.measures import pooled_exposure_test
from remnant.measures.exposure import NULL_MEAN_BITS
from remnant.measures.trial_mean import trial_mean
from remnant.plans import InsertPlan
from remnant.records import Record
from remnant.search import Extraction
from remnant.studies.above_controls import above_controls
from remnant.studies.exposure_audit import ExposureAudit, SecretExposure
from remnant.studies.exposure_settings import MeasureSettings
from remnant.studies.exposure_verdict import CanaryPool, MeasuredCanary, judge_exposure
from remnant.studies.planted_text import PlantedText
from remnant.studies.wording import counted, each_times

if TYPE_CHECKING:
    from remnant.studies.exposure import ExposureStudy

Floats = NDArray[np.float64]


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
    searches: dict[str, Extraction]


def put_exposure_results(
    study: ExposureStudy, planted: PlantedText, record: Record, trials: Sequence[TrialExposure]
) -> None:
    """Put everything that the study measured into the record; no secret is in it."""
    put_trials(study.plan, study.measure, record, trials)
    members = study.plan.members_of("planted")
    record.put_result(
        "task",
        {
            "validation_bits": float(record.array("validation_bits")[members].mean()),
            "validation_tokens": int(planted.validation[:, 1:].size),
            "token": study.text.level,
            "uniform_bits": math.log2(planted.vocabulary.size),
        },
    )
    record.put_result("scope", _scope(study, planted))


def put_trials(
    plan: InsertPlan,
    measure: MeasureSettings,
    record: Record,
    trials: Sequence[TrialExposure],
    *,
    given: str | None = None,
) -> None:
    """Put exposure, extraction and the verdict into the record.

    Args:
        plan, measure: Of the study.
        record: That they are put into.
        trials: What was measured.
        given: What a translator was given: each secret's own ``"source"``, so that references have
            no common histogram, or the ``"beginning"`` of all.
    """
    exposure = exposure_fields(trials) | {"given": given}
    common = given != "source"
    shared = len(trials[0].planted.reference_costs) if exposure["method"] == "sampled" else None
    repeats = repeats_fields(exposure, shared_references=shared if common else None)
    judged = measure.judged or min(plan.repeats)
    record.put_result("exposure", exposure)
    record.put_result("repeats", repeats)
    if not measure.references:
        record.put_absent("costs", "the study samples no references")
    elif not common:
        record.put_absent("costs", "each secret has references of its own: those given its source")
    else:
        record.put_result("costs", costs_fields(trials[0], exposure))
    record.put_result("extraction", extraction_fields(trials, top=measure.top))
    found = judge_exposure(
        [canary_pool(exposure, repeats)],
        limit=measure.limit,
        judged=judged,
        share=measure.share,
        trainings=len(trials),
        copying=not common,
    )
    record.put_result("verdict", found.row())


def canary_pool(exposure: dict[str, Any], repeats: dict[str, Any]) -> CanaryPool:
    """The canaries and controls of all trials, for the gate.

    Args:
        exposure, repeats: As ``exposure_fields`` and ``repeats_fields`` return them.
    """

    def measured(row: dict[str, Any]) -> MeasuredCanary:
        return MeasuredCanary(
            name=row["name"],
            repeats=row["repeats"],
            trial=row["trial"],
            bits=row["bits"],
            low=row["low"],
            high=math.inf if row["high"] is None else row["high"],
            saturated=row["saturated"],
            sampled=row["rank"] is None,
        )

    return CanaryPool(
        canaries=tuple(map(measured, exposure["canaries"])),
        controls=tuple(map(measured, exposure["controls"])),
        p_values=dict(zip(repeats["repeats"], repeats["pooled_pvalue"], strict=True)),
        twin_mean_bits={
            many: twin
            for many, twin in zip(repeats["repeats"], repeats["twin_mean_bits"], strict=True)
            if twin is not None
        },
    )


def check_space(plan: InsertPlan, measure: MeasureSettings, template: Template) -> None:
    """Refuse a plan or a limit that the template is too small for.

    Raises:
        PlanError: More secrets are needed than there are, the limit cannot be reached, or nothing
            is judged.
    """
    needed = plan.canaries + plan.controls
    if needed > template.space:
        raise PlanError(
            f"The plan needs {needed} secrets, and the template has {template.space}.",
            hint="Use a template with a larger space.",
        )
    if measure.limit > math.log2(template.space):
        raise PlanError(
            f"measure.limit={measure.limit:g} cannot be reached: a secret of this "
            f"template has at most {math.log2(template.space):.2f} bits.",
            hint="Lower the limit, or use a template with a larger space.",
        )
    if measure.judged is not None and measure.judged < min(plan.repeats):
        raise PlanError(
            f"measure.judged={measure.judged} judges nothing: every canary is planted at least "
            f"{min(plan.repeats)} times."
        )


def _scope(study: ExposureStudy, planted: PlantedText) -> dict[str, list[str]]:
    plan = study.plan
    tested = [
        f"{counted(plan.trials, 'training run')} of {plan.steps} steps on {planted.examples} "
        f"windows of {study.text.window} {study.text.level}s, with "
        f"{counted(plan.canaries, 'canary', 'canaries')} planted {each_times(plan.repeats)}.",
        f"{counted(plan.controls, 'control')} of the same template, never planted.",
    ]
    if plan.twin:
        tested.append("A twin of each run that differs in the planted windows alone.")
    not_tested = [
        "Secrets of another format, and secrets that were in the text already.",
        "Attacks that do not go through the model's probabilities.",
    ]
    if plan.trials == 1:
        not_tested.append("How much another training run would differ: there was one.")
    return {"tested": tested, "not_tested": not_tested}


def exposure_fields(trials: Sequence[TrialExposure]) -> dict[str, Any]:
    """Return the exposure of every canary and control as plain data; no secret is in it."""
    method, reason = _method(trials)
    tolerances = [one.planted.tolerance for one in trials if one.planted.tolerance is not None]
    canaries: list[dict[str, Any]] = []
    controls: list[dict[str, Any]] = []
    for number, trial in enumerate(trials):
        planted = len(trial.canaries.canaries)
        for j, one in enumerate(trial.planted.each):
            kind, rows = ("canary", canaries) if j < planted else ("control", controls)
            twin = None if trial.twin is None else trial.twin.each[j].bits
            rows.append(
                {
                    "name": f"{kind} {len(rows) + 1}",
                    "trial": number,
                    "repeats": trial.canaries.repeats[j] if j < planted else 0,
                    "uses": int(trial.uses[j]) if j < planted else 0,
                    **_secret_fields(one),
                    "twin_bits": twin,
                }
            )
    return {
        "template": trials[0].canaries.template.pattern,
        "space": trials[0].planted.space,
        "ceiling_bits": math.log2(trials[0].planted.space),
        "method": method,
        "reason": reason,
        "tolerance": max(tolerances, default=None),
        "nodes": sum(trial.planted.nodes for trial in trials),
        "null_mean_bits": NULL_MEAN_BITS,
        "canaries": canaries,
        "controls": controls,
    }


def _method(trials: Sequence[TrialExposure]) -> tuple[str, str]:
    """By which method all trials were measured, and why: exact only if each of them was."""
    audits = [trial.planted for trial in trials]
    shown = next((at for at, one in enumerate(audits) if one.method != "exact"), 0)
    method, reason = audits[shown].method, audits[shown].reason
    if len({one.reason for one in audits}) > 1:
        reason += f", in trial {shown + 1}"
    each = [one for audit in audits for one in audit.each]
    exact = sum(one.rank is not None for one in each)
    if method != "exact" and exact:
        reason += f"; {exact} of {len(each)} canaries and controls "
        reason += f"{'was' if exact == 1 else 'were'} ranked exactly all the same"
    return method, reason


def _secret_fields(one: SecretExposure) -> dict[str, Any]:
    return {
        "bits": one.bits,
        "low": one.low,
        "high": one.high if math.isfinite(one.high) else None,
        "rank": one.rank,
        "cost": one.cost if math.isfinite(one.cost) else None,
        "saturated": one.saturated,
        "skew_normal_bits": one.skew_normal_bits,
    }


def repeats_fields(
    exposure: dict[str, Any], *, shared_references: int | None = None
) -> dict[str, Any]:
    """Return mean exposure against repeats, with a test of each against chance and controls.

    A p-value is None where too few sampled references are shared by too many canaries, and of
    controls against themselves. The interval of a mean is over trials; None for one trial, and
    where references were saturated: the mean is then at least ``mean_at_least``, into which these
    enter with their lower ends.
    """
    rows = [*exposure["controls"], *exposure["canaries"]]
    counts = sorted({row["repeats"] for row in rows})
    groups = [[row for row in rows if row["repeats"] == many] for many in counts]
    twins = [
        [row["twin_bits"] for row in group if row["twin_bits"] is not None] for group in groups
    ]
    over_trials = [_over_trials(group, exposure["ceiling_bits"]) for group in groups]
    return {
        "repeats": counts,
        "n": [len(group) for group in groups],
        "mean_bits": [float(np.mean([row["bits"] for row in group])) for group in groups],
        "mean_at_least": [_at_least(group) for group in groups],
        "mean_low": [ends[0] for ends in over_trials],
        "mean_high": [ends[1] for ends in over_trials],
        "twin_mean_bits": [float(np.mean(bits)) if bits else None for bits in twins],
        "pooled_pvalue": [
            _pooled([row["bits"] for row in group], shared_references) for group in groups
        ],
        "control_pvalue": [
            above_controls(group, exposure["controls"]) if many else None
            for many, group in zip(counts, groups, strict=True)
        ],
    }


def _at_least(rows: list[dict[str, Any]]) -> float | None:
    """What a mean is at least, where some of its exposures are no more than that; else None."""
    if not any(row["saturated"] for row in rows):
        return None
    return float(np.mean([row["low"] if row["saturated"] else row["bits"] for row in rows]))


def _over_trials(rows: list[dict[str, Any]], most: float) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean exposure of canaries planted equally often."""
    if any(row["saturated"] for row in rows):
        return None, None
    trials = sorted({row["trial"] for row in rows})
    means = [np.mean([row["bits"] for row in rows if row["trial"] == one]) for one in trials]
    found = trial_mean(means, most=most)
    return found.low, found.high


def _pooled(bits: list[float], shared_references: int | None) -> float | None:
    try:
        return float(pooled_exposure_test(bits, shared_references=shared_references).p_value)
    except NotEnoughEvidence:
        return None


def costs_fields(
    trial: TrialExposure, exposure: dict[str, Any], *, bins: int = 40
) -> dict[str, Any]:
    """Return the histogram of the references' costs, with the trial's canaries marked."""
    audit = trial.planted
    finite = audit.reference_costs[np.isfinite(audit.reference_costs)]
    counts, edges = np.histogram(finite, bins=bins)
    fit = audit.extrapolated
    law = None if fit is None else fit.fit
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "n_references": len(audit.reference_costs),
        "skew_normal": None
        if law is None
        else {"shape": law.shape, "location": law.location, "scale": law.scale},
        "ks_pvalue": None if fit is None else float(fit.ks_pvalue),
        "marked": [
            {name: row[name] for name in ("name", "repeats", "cost", "bits")}
            | {"at_least": row["low"] if row["saturated"] else None}
            for row in exposure["canaries"]
            if row["trial"] == 0 and row["cost"] is not None
        ],
        "member": "planted, trial 1",
    }


def extraction_fields(trials: Sequence[TrialExposure], *, top: int) -> dict[str, Any]:
    """Return what was pulled out of each model, named by canary; no secret is in it.

    Args:
        trials: With their searches.
        top: How many secrets each search was asked for.
    """
    made = []
    before = 0
    for trial in trials:
        known = {canary.secret: j for j, canary in enumerate(trial.canaries.canaries)}
        for member, found in trial.searches.items():
            candidates = []
            for secret, bits in found.candidates:
                j = known.get(secret)
                candidates.append(
                    {
                        "bits": bits if math.isfinite(bits) else None,
                        "canary": None if j is None else f"canary {before + j + 1}",
                        "repeats": None if j is None else trial.canaries.repeats[j],
                    }
                )
            made.append(
                {
                    "member": member,
                    "asked": top,
                    "certified": found.certified,
                    "nodes": found.nodes,
                    "space": found.space,
                    "tolerance": found.tolerance,
                    "candidates": candidates,
                }
            )
        before += len(known)
    return {"searches": made}
