"""The gate: is every planted canary's exposure under a limit?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from remnant.cli.exposure_told import Measured


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


def judge(measured: Sequence[Measured], limit: float) -> Judgement:
    """Hold the exposure of every planted canary against a limit in bits.

    Guarantees:
        * FAIL where the whole interval of one of them is at or above the limit.
        * PASS where the interval of each of them is under it.
        * INCONCLUSIVE otherwise: one of them may be on either side of the limit.

    There must be a planted canary.
    """
    planted = [
        (one.found, f"{one.name} of set {each.number}")
        for each in measured
        for one in each.found.each
        if one.repeats
    ]
    sure, sure_name = max(planted, key=lambda pair: pair[0].low)
    if sure.low >= limit:
        least = "at least " * (sure.low < sure.high)
        said = (
            f"{sure_name} has an exposure of {least}{sure.low:.2f} bits, at or above the limit of "
            f"{limit:g}"
        )
        return Judgement("FAIL", said, limit)
    far, far_name = max(planted, key=lambda pair: pair[0].high)
    if far.high >= limit:
        upto = f"up to {far.high:.2f} bits" if math.isfinite(far.high) else "any exposure"
        said = (
            f"{far_name} may have {upto}, and the limit is {limit:g}; draw more references, or "
            "give a walk a larger budget"
        )
        return Judgement("INCONCLUSIVE", said, limit)
    most = "at most " * (far.low < far.high)
    said = (
        f"the most exposed of {len(planted)} planted, {far_name}, has {most}{far.high:.2f} bits, "
        f"under the limit of {limit:g}"
    )
    return Judgement("PASS", said, limit)
