"""Exposure of the canaries of a set, each group tested against chance, and the gate on sets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from remnant.canaries import CanarySet
from remnant.errors import NotEnoughEvidence
from remnant.measures import ExtrapolatedExposure, pooled_exposure_test
from remnant.measures.membership import saw_them
from remnant.models.protocols import SequenceModel, TextScorer
from remnant.studies.exposure.audit import (
    MAX_NODES,
    PILOT,
    REFERENCES,
    ExposureAudit,
    Method,
    Progress,
    measure_exposure,
)
from remnant.studies.exposure.result import CanaryExposure, RepeatsExposure
from remnant.studies.exposure.verdict import CanaryPool, ExposureJudgement, judge_exposure

_CLOSE = 1e-3  # bits; many times what float32 loses on a text


@dataclass(frozen=True, slots=True, eq=False)
class SetExposure:
    """The exposure of a canary set in one model.

    Attributes:
        each: Canaries in the order of the set, then controls.
        groups: By repeats, fewest first; the controls come last.
        method: ``"exact"`` or ``"sampled"``, for all but those in ``walked``. Sampling that drew
            all secrets is exact.
        reason: Why this method was used.
        walked: Names of those that were ranked exactly because the references were saturated.
        walked_reason: Why that was possible; empty where nothing was ranked so.
        extrapolated: The skew-normal fit to the references, where it was requested and there are
            enough of them.
        calibrated: Whether the costs are differences to reference models'.
        n_references: How many secrets were sampled.
        nodes: Rows passed to the model.
        arithmetic: How low precision was held to float64, in a sentence; empty for models of
            float32 or float64.
        alone: The same secrets without calibration, in the model and then in each reference model;
            empty where costs are not calibrated.
    """

    each: tuple[CanaryExposure, ...]
    groups: tuple[RepeatsExposure, ...]
    method: str
    reason: str
    walked: tuple[str, ...]
    walked_reason: str
    extrapolated: ExtrapolatedExposure | None
    calibrated: bool
    n_references: int
    nodes: int
    arithmetic: str = ""
    alone: tuple[MeasuredAlone, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredAlone:
    """The exposure of a set in one model without calibration; see ``SetExposure``."""

    each: tuple[CanaryExposure, ...]
    groups: tuple[RepeatsExposure, ...]


_Measure = Callable[[Sequence[str], Method, int], ExposureAudit]
"""Measures some secrets by a method, with a number of references."""


def measure_canaries(
    model: SequenceModel | TextScorer,
    canary_set: CanarySet,
    *,
    rng: np.random.Generator,
    method: Method = "auto",
    references: int = REFERENCES,
    reference_models: Sequence[SequenceModel | TextScorer] = (),
    fit: bool = False,
    max_nodes: int = MAX_NODES,
    max_seconds: float | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> SetExposure:
    """Measure the exposure of all canaries and controls, and test each number of repeats.

    With ``"auto"``, saturated canaries (no reference is as cheap) are ranked exactly in a walk of
    their own where the budget allows it. Such a walk is short, because little of the tree costs
    less than they do. A walk that includes the controls visits most of the tree.

    Args:
        model: The model under audit.
        canary_set: What was planted, and its controls.
        rng: Draws the references.
        method, references, reference_models: See ``measure_exposure``.
        fit: Fit a skew-normal law to the references; all of them are then scored, also where
            exact ranks need none. Without it nothing is fitted.
        max_nodes, max_seconds, memory: Budgets of each walk.
        progress: See ``measure_exposure``.

    Guarantees:
        * The same generator gives the same references, whichever method is chosen.

    Raises:
        InvalidInput: See ``measure_exposure``.
        NotEnoughEvidence: No references where sampling needs them.
    """
    secrets = [canary.secret for canary in (*canary_set.canaries, *canary_set.controls)]

    def measure(some: Sequence[str], how: Method, many: int) -> ExposureAudit:
        return measure_exposure(
            model,
            canary_set.template,
            secrets=some,
            # A pilot decides which method is tried, and no number of it is kept.
            rng=rng if many == references else np.random.default_rng(0),
            method=how,
            references=many,
            reference_models=reference_models,
            max_nodes=max_nodes,
            max_seconds=max_seconds,
            memory=memory,
            fit=fit,
            progress=progress,
        )

    pilot = first = min(references, PILOT)
    if method == "sampled" or reference_models or fit or isinstance(model, TextScorer):
        first = references
    elif method == "exact":
        first = 0
    audit = _audit_all(
        measure,
        secrets,
        method,
        first=first,
        references=references,
        ranks=not isinstance(model, TextScorer),
    )
    exact: Mapping[int, CanaryExposure] = {}
    walked_reason, nodes = "", audit.nodes
    saturated = [place for place, measured in enumerate(audit.each) if measured.saturated]
    served = isinstance(model, TextScorer)
    if method == "auto" and not reference_models and saturated and not served:
        walk = measure([secrets[place] for place in saturated], "auto", pilot)
        nodes += walk.nodes
        if walk.method == "exact":
            walked_reason = walk.reason
            exact = {
                place: dataclasses.replace(
                    ranked, skew_normal_bits=audit.each[place].skew_normal_bits
                )
                for place, ranked in zip(saturated, walk.each, strict=True)
            }
    each = _each(canary_set, audit, exact)
    return SetExposure(
        each=each,
        groups=_groups(each, len(audit.reference_costs)),
        method=audit.method,
        reason=audit.reason,
        walked=tuple(each[place].name for place in exact),
        walked_reason=walked_reason,
        extrapolated=audit.extrapolated,
        calibrated=audit.calibrated,
        n_references=len(audit.reference_costs),
        nodes=nodes,
        arithmetic="" if audit.arithmetic is None else audit.arithmetic.sentence,
        alone=tuple(_alone(canary_set, model) for model in audit.alone),
    )


def reference_fault(sets: Iterable[SetExposure]) -> str:
    """Why the reference models of a measurement cannot be used; empty where they can.

    Canaries are drawn at random, so that a model that never saw them has them at chance. One that
    saw them hides what the model under audit remembers.
    """
    p_value = saw_them.suspected(
        group.p_value
        for measured in sets
        for model in measured.alone[1:]
        for group in model.groups
        if group.repeats
    )
    return saw_them.reference_fault(p_value, what="planted canaries", score="are more exposed")


def _alone(canary_set: CanarySet, audit: ExposureAudit) -> MeasuredAlone:
    each = _each(canary_set, audit, {})
    return MeasuredAlone(each, _groups(each, len(audit.reference_costs)))


def _audit_all(
    measure: _Measure,
    secrets: Sequence[str],
    method: Method,
    *,
    first: int,
    references: int,
    ranks: bool,
) -> ExposureAudit:
    """Measure all secrets by one method, which ``first`` references decide on.

    Sampling that draws all secrets of the space gives exact ranks, if ``ranks``: the precision of a
    served model is not known.
    """
    audit = measure(secrets, method, first)
    if audit.method == "sampled" and first < references:
        sampled = measure(secrets, "sampled", references)
        nodes = audit.nodes + sampled.nodes
        audit = dataclasses.replace(sampled, reason=audit.reason, nodes=nodes)
    drawn = len(secrets) + len(audit.reference_costs)
    if ranks and audit.method == "sampled" and drawn == audit.space:
        space = f"{audit.space:,}".replace(",", " ")
        audit = dataclasses.replace(
            audit,
            method="exact",
            reason=f"exact: all {space} secrets were scored",
            each=_ranked(audit),
            complete=True,
            alone=tuple(
                dataclasses.replace(model, method="exact", each=_ranked(model), complete=True)
                for model in audit.alone
            ),
        )
    return audit


def _each(
    canary_set: CanarySet, audit: ExposureAudit, exact: Mapping[int, CanaryExposure]
) -> tuple[CanaryExposure, ...]:
    """Canaries and controls with what was measured; an exact rank goes before a sampled one."""
    named = [(f"canary {at}", times) for at, times in enumerate(canary_set.repeats, start=1)]
    named += [(f"control {at}", 0) for at in range(1, len(canary_set.controls) + 1)]
    # Where a budget ends a walk that was not asked for, the audit itself falls back on sampling.
    cut = audit.method == "exact" and not audit.complete
    return tuple(
        dataclasses.replace(
            exact.get(place, measured),
            name=name,
            repeats=times,
            ended=cut and measured.rank != measured.rank_low,
        )
        for place, ((name, times), measured) in enumerate(zip(named, audit.each, strict=True))
    )


def _ranked(audit: ExposureAudit) -> tuple[CanaryExposure, ...]:
    """Rank secrets among all of the space, whose costs are known.

    Costs that rounding could swap count against the canary, and not for its lowest rank.
    """
    costs = np.concatenate([[measured.cost for measured in audit.each], audit.reference_costs])
    ranked = []
    for measured in audit.each:
        cost = measured.cost
        high = int((costs <= cost + _CLOSE).sum())
        low = int((costs < cost - _CLOSE).sum()) + int((costs == cost).sum())
        most, least = (math.log2(audit.space) - math.log2(rank) for rank in (low, high))
        ranked.append(
            dataclasses.replace(
                measured, bits=least, low=least, high=most, rank=high, rank_low=low, saturated=False
            )
        )
    return tuple(ranked)


def _groups(each: Sequence[CanaryExposure], references: int) -> tuple[RepeatsExposure, ...]:
    numbers = sorted({canary.repeats for canary in each}, key=lambda times: times or math.inf)
    return tuple(
        _group([canary for canary in each if canary.repeats == times], references)
        for times in numbers
    )


def _group(alike: Sequence[CanaryExposure], references: int) -> RepeatsExposure:
    bits = [canary.bits for canary in alike]
    lows = [canary.bits if canary.at_least is None else canary.at_least for canary in alike]
    # Exact bits in the place of saturated ones leave the test valid: given that no reference was
    # as cheap, chance makes the exact exposure smaller than the tail that the test allows for.
    sampled = any(canary.sampled for canary in alike)
    p_value, reason = None, None
    if any(canary.ended for canary in alike):
        reason = "a budget ended the walk, and bounds are not tested"
    else:
        try:
            p_value = pooled_exposure_test(
                bits, shared_references=references if sampled else None
            ).p_value
        except NotEnoughEvidence as fault:
            reason = fault.message
    return RepeatsExposure(
        repeats=alike[0].repeats,
        n=len(alike),
        mean_bits=float(np.mean(bits)),
        at_least=any(canary.at_least is not None for canary in alike),
        mean_low=float(np.mean(lows)),
        median_bits=float(np.median(lows)),
        p_value=p_value,
        p_value_reason=reason,
    )


def judge_sets(
    exposures: Mapping[int, SetExposure],
    *,
    limit: float,
    judged: int | None = None,
    share: float | None = None,
    budget: str = "max_nodes",
    judged_setting: str = "judged=",
    remark: str = "",
) -> ExposureJudgement:
    """Judge the planted canaries of all sets in one model.

    Args:
        exposures: Of each set, by its number. Canaries are tested, and compared with controls, set
            by set, and each set with judged canaries needs a positive control of its own.
        limit, judged, share, budget, judged_setting: See ``judge_exposure``.
        remark: A sentence on the canaries, at the end of the sentence and the claim.

    Raises:
        NotEnoughEvidence: There is no canary to judge.
    """
    alone = {number: exposure.alone[0] for number, exposure in exposures.items() if exposure.alone}
    judgement = judge_exposure(
        [_pool(number, exposure) for number, exposure in exposures.items()],
        uncalibrated=[_pool(number, exposure) for number, exposure in alone.items()],
        reference_fault=reference_fault(exposures.values()),
        limit=limit,
        judged=judged,
        share=share,
        budget=budget,
        judged_setting=judged_setting,
    )
    if not remark:
        return judgement
    return dataclasses.replace(
        judgement,
        sentence=f"{judgement.sentence} {remark}",
        claim=f"{judgement.claim} {remark}",
    )


def _pool(number: int, exposure: SetExposure | MeasuredAlone) -> CanaryPool:
    canaries = [
        dataclasses.replace(canary, name=f"{canary.name} of set {number}", trial=number)
        for canary in exposure.each
    ]
    return CanaryPool(
        canaries=tuple(canary for canary in canaries if canary.repeats),
        controls=tuple(canary for canary in canaries if not canary.repeats),
        p_values={group.repeats: group.p_value for group in exposure.groups},
        name=f"set {number}",
    )
