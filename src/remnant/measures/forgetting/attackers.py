"""A claim against every attacker that a run computed: the weakest bound is the one that counts.

A run often holds scores of several attackers: one with reference models, one with an earlier
checkpoint, one with the model alone. Which is strongest depends on the lag. "No attacker succeeds"
is shown where each of them is shown not to, so a PASS asks for all upper bounds and needs no
correction for their number (an intersection-union test).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from remnant.measures.forgetting.verdict import Verdict, percent, rounded_up

Floats = NDArray[np.float64]
Upper = Callable[[float], Floats]


def strongest(uppers: Sequence[Upper]) -> Upper:
    """Return the largest upper bound of several attackers at each lag, for a confidence."""
    return lambda confidence: reduce(np.maximum, [upper(confidence) for upper in uppers])


def hold_for_all(
    verdict: Verdict, others: Mapping[str, float], *, what: str, confidence: float, digits: int = 3
) -> Verdict:
    """The verdict of a named attacker beside the bounds of the others.

    Args:
        verdict: Of the named one.
        others: The one-sided upper bounds of the others at the same lag, by name.
        what: The measurement's name, such as "attack AUC".
        confidence: Of each bound.
        digits: Of each number.

    Guarantees:
        * A PASS stays one only where every bound is at or under the limit. FAIL and INCONCLUSIVE
          stay as they are.
    """
    if verdict.outcome != "PASS" or not others:
        return verdict
    said = {name: f"{name} (at most {rounded_up(high, digits)})" for name, high in others.items()}
    above = [said[name] for name, high in others.items() if high > verdict.limit]
    if not above:
        claim = (
            f"{verdict.claim.removesuffix('.')}. The same holds for {_listed([*said.values()])}."
        )
        return replace(verdict, claim=claim)
    reason = (
        f"{what} is not shown to be within the limit of {verdict.limit:g} for {_listed(above)}, "
        f"with {percent(confidence)} confidence"
    )
    return replace(
        verdict,
        outcome="INCONCLUSIVE",
        sentence=f"{verdict.sentence} But {reason}.",
        claim=f"No claim: {reason}.",
    )


def _listed(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
