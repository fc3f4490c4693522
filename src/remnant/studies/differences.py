"""How far variants lie from their study, as a record keeps it."""

from __future__ import annotations

from typing import Any

from remnant.errors import InvalidInput, NotEnoughEvidence
from remnant.measures.curve_difference import TrialCurve, curve_difference
from remnant.measures.holm import holm

_ROWS = ("mean", "mean_low", "mean_high", "p_value", "confidence", "method")


def difference_fields(
    label: str, curve: TrialCurve, base: TrialCurve, confidence: float
) -> dict[str, Any]:
    """Return how far a variant's curve lies above the study's own, or why it cannot be said."""
    try:
        found = curve_difference(curve, base, confidence=confidence)
    except (InvalidInput, NotEnoughEvidence) as fault:
        return {"label": label, "absent": str(fault)}
    return {"label": label, **{name: getattr(found, name) for name in _ROWS}}


def adjust_for_number(differences: list[dict[str, Any]]) -> None:
    """Correct the p-values of differences for their number, in place; some may have none."""
    known = [one for one in differences if one.get("p_value") is not None]
    if known:
        for one, adjusted in zip(known, holm([one["p_value"] for one in known]), strict=True):
            one["adjusted_p_value"] = float(adjusted)
