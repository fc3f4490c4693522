"""The gate: is the exposure of planted canaries under a limit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remnant.measures.exposure import FOUND, references_to_show
from remnant.studies.above_controls import controls_exposed, like_controls, told_apart
from remnant.studies.exposure_verdict import not_all_memory
from remnant.studies.wording import about, times

if TYPE_CHECKING:
    from remnant.cli.exposure_told import Measured
    from remnant.studies.canary_exposure import RepeatsExposure


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the gate says.

    Attributes:
        outcome: ``"PASS"``, ``"FAIL"`` or ``"INCONCLUSIVE"``.
        sentence: Why.
        limit: In bits.
    """

    outcome: str
    sentence: str
    limit: float


def judge(measured: Sequence[Measured], limit: float, judged: int | None = None) -> Judgement:
    """Hold the exposure of planted canaries against a limit in bits.

    Args:
        measured: The sets; there must be a canary to judge in them.
        limit: In bits.
        judged: Only canaries planted at most so often are judged, and those planted more often have
            to be found for a PASS; ``None`` judges all.

    Guarantees:
        * FAIL where the whole interval of one of them is at or above the limit; unless controls are
          more exposed than chance allows at 1 %, some of them at or above the limit, and canaries
          cannot be told from them.
        * PASS where the interval of each of them is under it and, with ``judged``, the canaries
          planted most often are more exposed than chance allows at 1 %, and than such controls.
        * INCONCLUSIVE otherwise.
    """
    planted = [
        (one.found, f"{one.name} of set {each.number}")
        for each in measured
        for one in each.found.each
        if one.repeats and (judged is None or one.repeats <= judged)
    ]
    sure, sure_name = max(planted, key=lambda pair: pair[0].low)
    if sure.low >= limit:
        least = "at least " * (sure.low < sure.high)
        said = (
            f"{sure_name} has an exposure of {least}{sure.low:.2f} bits, at or above the limit of "
            f"{limit:g}"
        )
        return _fail_if_memory(measured, Judgement("FAIL", said, limit), judged)
    far, far_name = max(planted, key=lambda pair: pair[0].high)
    if far.high >= limit:
        upto = f"up to {far.high:.2f} bits" if math.isfinite(far.high) else "any exposure"
        drawn = "draw more references"
        if far.saturated:
            needed = about(references_to_show(limit))
            drawn = f"to show that many bits takes {needed} references: draw them"
        said = (
            f"{far_name} may have {upto}, and the limit is {limit:g}; {drawn}, or give a walk a "
            "larger budget"
        )
        return Judgement("INCONCLUSIVE", said, limit)
    most = "at most " * (far.low < far.high)
    which = "planted" if judged is None else f"planted at most {times(judged)}"
    said = (
        f"the most exposed of {len(planted)} {which}, {far_name}, has {most}{far.high:.2f} bits, "
        f"under the limit of {limit:g}"
    )
    if judged is None:
        return Judgement("PASS", said, limit)
    often = _planted_most(measured, judged)
    if often is None or not _found(measured, often):
        said += "; but no canaries planted more often were found, so that this says nothing"
        return Judgement("INCONCLUSIVE", said, limit)
    return Judgement(
        "PASS", f"{said}, while those planted {times(often.repeats)} were found", limit
    )


def _fail_if_memory(
    measured: Sequence[Measured], found: Judgement, judged: int | None
) -> Judgement:
    """The same, or INCONCLUSIVE where controls are exposed too and canaries are like them."""
    mean = _exposed_controls(measured)
    if mean is None:
        return found
    planted = _rows(measured, 1, judged or math.inf)
    alike = like_controls(planted, _rows(measured, 0, 0), found.limit)
    if alike:
        return Judgement("INCONCLUSIVE", f"{found.sentence}; but {alike}", found.limit)
    return Judgement("FAIL", f"{found.sentence}; {not_all_memory(mean)}", found.limit)


def _found(measured: Sequence[Measured], group: RepeatsExposure) -> bool:
    """Whether canaries planted so often are more exposed than chance allows, and controls have."""
    if group.p_value is None or group.p_value > FOUND:
        return False
    planted = _rows(measured, group.repeats, group.repeats)
    return _exposed_controls(measured) is None or told_apart(planted, _rows(measured, 0, 0))


def _exposed_controls(measured: Sequence[Measured]) -> float | None:
    """What controls have on average, where that is more than chance allows; else None."""
    controls = [group for each in measured for group in each.found.groups if not group.repeats]
    return max(
        (group.mean_low for group in controls if controls_exposed(group.p_value)), default=None
    )


def _rows(measured: Sequence[Measured], least: int, most: float) -> list[dict[str, float]]:
    """The exposures of all that were planted so often, by set."""
    return [
        {"trial": each.number, "bits": one.found.bits}
        for each in measured
        for one in each.found.each
        if least <= one.repeats <= most
    ]


def _planted_most(measured: Sequence[Measured], judged: int) -> RepeatsExposure | None:
    """The group planted most often, if that is more often than those judged."""
    groups = [group for each in measured for group in each.found.groups if group.repeats > judged]
    return max(groups, key=lambda group: group.repeats, default=None)
