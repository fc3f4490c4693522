"""Did a reference model see what it is compared on? One test for canaries and for records."""

from __future__ import annotations

from collections.abc import Iterable

SUSPECTED = 0.05
"""A reference model is suspected at a p-value of at most this.

It is larger than that at which an attack counts as one that found something: a reference model that
is wrongly suspected costs an INCONCLUSIVE, and one that is wrongly trusted a false PASS.
"""


def suspected(p_values: Iterable[float | None]) -> float | None:
    """The smallest p-value, corrected for their number, where the model is suspected; else None.

    Args:
        p_values: Each of "the reference model alone does not distinguish what was trained on";
            None where that could not be tested.

    Guarantees:
        * A model that saw nothing is suspected with a probability of at most 5 %.

    Example:
        >>> suspected([0.3, None, 0.02]), suspected([0.3, 0.04]), suspected([None])
        (0.04, None, None)
    """
    known = [p_value for p_value in p_values if p_value is not None]
    if not known:
        return None
    smallest = min(known) * len(known)
    return smallest if smallest <= SUSPECTED else None


def reference_fault(p_value: float | None, *, what: str, score: str) -> str:
    """Why a suspected reference model cannot be used, as the end of a sentence.

    Args:
        p_value: As ``suspected`` returns it; None gives an empty sentence.
        what: What the model may have been trained on.
        score: What these do in it.

    Example:
        >>> reference_fault(0.001, what="controls", score="score higher")
        'controls score higher in a reference model than chance allows (p = 0.001), as in a model \
that was trained on them'
    """
    if p_value is None:
        return ""
    return (
        f"{what} {score} in a reference model than chance allows (p = {p_value:.2g}), as in a "
        "model that was trained on them"
    )
