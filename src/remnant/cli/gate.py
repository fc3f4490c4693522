"""``remnant exposure --limit``: the exposure gate on the canaries of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from remnant.studies.exposure_verdict import (
    CanaryPool,
    ExposureJudgement,
    MeasuredCanary,
    judge_exposure,
)

if TYPE_CHECKING:
    from remnant.cli.exposure_told import Measured
    from remnant.studies.canary_exposure import CanaryExposure


def judge(
    measured: Sequence[Measured],
    limit: float,
    judged: int | None = None,
    share: float | None = None,
) -> ExposureJudgement:
    """Judge the planted canaries of all sets in one model.

    Args:
        measured: The sets. Canaries are tested, and compared with controls, set by set, and each
            set with judged canaries needs a positive control of its own.
        limit, judged, share: See ``judge_exposure``.

    Raises:
        NotEnoughEvidence: There is no canary to judge.
    """
    pools = [_pool(each) for each in measured]
    return judge_exposure(pools, limit=limit, judged=judged, share=share, budget="--max-nodes")


def _pool(each: Measured) -> CanaryPool:
    canaries = [_measured(canary, each.number) for canary in each.found.each]
    return CanaryPool(
        canaries=tuple(canary for canary in canaries if canary.repeats),
        controls=tuple(canary for canary in canaries if not canary.repeats),
        p_values={group.repeats: group.p_value for group in each.found.groups},
        name=f"set {each.number}",
    )


def _measured(canary: CanaryExposure, number: int) -> MeasuredCanary:
    found = canary.found
    return MeasuredCanary(
        name=f"{canary.name} of set {number}",
        repeats=canary.repeats,
        trial=number,
        bits=found.bits,
        low=found.low,
        high=found.high,
        saturated=found.saturated,
        sampled=found.rank is None,
    )
