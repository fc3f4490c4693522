"""The gate: is the exposure of planted canaries under a limit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remnant.measures.exposure import is_found, references_to_show
from remnant.studies.above_controls import like_controls, not_all_memory, told_apart
from remnant.studies.wording import about, times

if TYPE_CHECKING:
    from remnant.cli.exposure_told import Measured
    from remnant.studies.canary_exposure import CanaryExposure

    Planted = tuple[Measured, CanaryExposure]


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
        * FAIL where the whole interval of one of them is at or above the limit; unless controls of
          its set are more exposed than chance allows at 1 %, some at or above the limit, and
          canaries cannot be told from them.
        * PASS where the interval of each of them is under it and, with ``judged``, the canaries
          planted most often are more exposed than chance allows at 1 %, and than such controls.
        * INCONCLUSIVE otherwise.
    """
    planted = [
        (each, one)
        for each in measured
        for one in each.found.each
        if one.repeats and (judged is None or one.repeats <= judged)
    ]
    above = [pair for pair in planted if pair[1].found.low >= limit]
    if above:
        return _reached(above, limit, judged)
    farthest = max(planted, key=lambda pair: pair[1].found.high)
    far, far_name = farthest[1].found, _name(*farthest)
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
    often = _found_most(measured, judged)
    if often is None:
        said += "; but no canaries planted more often were found, so that this says nothing"
        return Judgement("INCONCLUSIVE", said, limit)
    return Judgement("PASS", f"{said}, while those planted {times(often)} were found", limit)


def _reached(above: Sequence[Planted], limit: float, judged: int | None) -> Judgement:
    """Judge canaries at or above the limit, before all those of sets with controls at chance."""
    sound = [pair for pair in above if _exposed_controls(pair[0]) is None]
    each, sure = max(sound or above, key=lambda pair: pair[1].found.low)
    found = sure.found
    said = (
        f"{_name(each, sure)} has an exposure of {'at least ' * (found.low < found.high)}"
        f"{found.low:.2f} bits, at or above the limit of {limit:g}"
    )
    mean = _exposed_controls(each)
    if mean is None:
        return Judgement("FAIL", said, limit)
    sets = list({pair[0].number: pair[0] for pair in above}.values())
    alike = like_controls(_rows(sets, 1, judged or math.inf), _rows(sets, 0, 0), limit)
    if alike:
        return Judgement("INCONCLUSIVE", f"{said}; but {alike}", limit)
    return Judgement("FAIL", f"{said}; {not_all_memory(mean)}", limit)


def _found_most(measured: Sequence[Measured], judged: int) -> int | None:
    """How often those planted most were, if that is more often than those judged, and are found."""
    groups = [(group.repeats, each, group) for each in measured for group in each.found.groups]
    often = [one for one in groups if one[0] > judged]
    if not often:
        return None
    repeats, each, group = max(often, key=lambda one: one[0])
    sound = _exposed_controls(each) is None
    told = sound or told_apart(_rows([each], repeats, repeats), _rows([each], 0, 0))
    return repeats if told and is_found(group.p_value) else None


def _exposed_controls(each: Measured) -> float | None:
    """What a set's controls have on average, where that is more than chance allows; else None."""
    controls = (group for group in each.found.groups if not group.repeats)
    return next((group.mean_low for group in controls if is_found(group.p_value)), None)


def _rows(sets: Sequence[Measured], least: int, most: float) -> list[dict[str, float]]:
    """The exposures of all that were planted so often, by set."""
    return [
        {"trial": each.number, "bits": one.found.bits}
        for each in sets
        for one in each.found.each
        if least <= one.repeats <= most
    ]


def _name(each: Measured, one: CanaryExposure) -> str:
    return f"{one.name} of set {each.number}"
