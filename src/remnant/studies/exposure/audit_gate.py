"""The exposure gate on the canary sets of one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from remnant.studies.exposure.canary_sets import (
    MeasuredAlone,
    SetExposure,
    reference_fault,
)
from remnant.studies.exposure.verdict import (
    CanaryPool,
    ExposureJudgement,
    judge_exposure,
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
    return replace(
        judgement,
        sentence=f"{judgement.sentence} {remark}",
        claim=f"{judgement.claim} {remark}",
    )


def _pool(number: int, exposure: SetExposure | MeasuredAlone) -> CanaryPool:
    canaries = [
        replace(canary, name=f"{canary.name} of set {number}", trial=number)
        for canary in exposure.each
    ]
    return CanaryPool(
        canaries=tuple(canary for canary in canaries if canary.repeats),
        controls=tuple(canary for canary in canaries if not canary.repeats),
        p_values={group.repeats: group.p_value for group in exposure.groups},
        name=f"set {number}",
    )
