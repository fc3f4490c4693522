"""A claim against every attacker that a run computed: the weakest bound is the one that counts.

A run often holds scores of several attackers: one with reference models, one with an earlier
checkpoint, one with the model alone. Which is strongest depends on the lag. "No attacker succeeds"
is shown where each of them is shown not to, so a PASS asks for all upper bounds and needs no
correction for their number (an intersection-union test). A bound that proves nothing by itself (the
attack is reversed, its scores tie) proves nothing here either. An attacker all of whose scores are
one number is no evidence for or against the claim, which then says that he was not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from remnant.measures.forgetting.verdict import Verdict, percent, rounded_up

Floats = NDArray[np.float64]
BLIND = "all scores are one number"


@dataclass(frozen=True, slots=True, eq=False)
class OtherBounds:
    """The bounds of another attacker at each lag.

    Attributes:
        upper: The one-sided upper bounds.
        doubts: Why each of them proves nothing; empty where it may. ``BLIND`` for an attacker who
            is not judged.
    """

    upper: Floats
    doubts: Sequence[str]

    @property
    def blind(self) -> bool:
        """Whether the attacker sees nothing at any lag."""
        return all(doubt == BLIND for doubt in self.doubts)


def hold_for_all(
    verdict: Verdict,
    others: Mapping[str, float],
    *,
    what: str,
    confidence: float,
    digits: int = 3,
    doubts: Mapping[str, str] | None = None,
) -> Verdict:
    """The verdict of a named attacker beside the bounds of the others.

    Args:
        verdict: Of the named one.
        others: The one-sided upper bounds of the others at the same lag, by name.
        what: The measurement's name, such as "attack AUC".
        confidence: Of each bound.
        digits: Of each number.
        doubts: Why the bound of an attacker proves nothing, by name; ``BLIND`` for one who is not
            judged.

    Guarantees:
        * A PASS stays one only where every bound is at or under the limit and free of doubt. FAIL
          and INCONCLUSIVE stay as they are.
    """
    if verdict.outcome != "PASS" or not others:
        return verdict
    why = doubts or {}
    judged = {name: high for name, high in others.items() if why.get(name) != BLIND}
    said = {name: f"{name} (at most {rounded_up(high, digits)})" for name, high in judged.items()}
    above = [said[name] for name, high in judged.items() if high > verdict.limit]
    doubted = [
        in_doubt(what, name, high, why[name], digits)
        for name, high in judged.items()
        if high <= verdict.limit and why.get(name)
    ]
    if not above and not doubted:
        holds = f" The same holds for {_listed([*said.values()])}." if said else ""
        left_out = not_judged([name for name in others if name not in judged])
        return replace(verdict, claim=f"{verdict.claim.removesuffix('.')}.{holds}{left_out}")
    missed = (
        f"{what} is not shown to be within the limit of {verdict.limit:g} for {_listed(above)}, "
        f"with {percent(confidence)} confidence"
        if above
        else ""
    )
    reason = "; ".join(filter(None, [missed, *doubted]))
    return replace(
        verdict,
        outcome="INCONCLUSIVE",
        sentence=f"{verdict.sentence} But {reason}.",
        claim=f"No claim: {reason}.",
    )


def in_doubt(what: str, name: str, high: float, doubt: str, digits: int = 3) -> str:
    """Why the bound of another attacker proves nothing, in words.

    Example:
        >>> in_doubt("attack AUC", "a rival", 0.2, "that is below chance")
        'attack AUC is at most 0.200 for a rival, but that is below chance'
    """
    return f"{what} is at most {rounded_up(high, digits)} for {name}, but {doubt}"


def not_judged(names: Sequence[str]) -> str:
    """A sentence on the attackers who see nothing, behind a claim; empty where there are none.

    Example:
        >>> not_judged(["a rival"])
        ' Not judged: a rival (all scores are one number).'
    """
    return f" Not judged: {_listed(names)} ({BLIND})." if names else ""


def _listed(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
