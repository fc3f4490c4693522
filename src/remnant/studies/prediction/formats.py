"""Predictors, thresholds and correlations in print."""

from __future__ import annotations

from collections.abc import Sequence

NAMES = {
    "psmi": "PSMI",
    "loss": "Loss",
    "logit_gap": "Logit gap",
    "mahalanobis": "Mahalanobis",
    "lt_iqr": "LT-IQR",
    "early_lira": "Early LiRA",
}
NEEDS_MORE = {
    "lt_iqr": "the whole run",
    "early_lira": "all models, early",
}
_IN_TEXT = {
    "psmi": "PSMI",
    "loss": "the loss",
    "logit_gap": "the logit gap",
    "mahalanobis": "the Mahalanobis distance",
    "lt_iqr": "LT-IQR",
    "early_lira": "early LiRA",
}


def name_of(predictor: str) -> str:
    """A predictor within a sentence."""
    return _IN_TEXT[predictor]


def needs_of(predictor: str) -> str:
    """What has to be trained before the predictor can be computed."""
    return NEEDS_MORE.get(predictor, "one model, early")


def share_text(share: float) -> str:
    """A share in percent, with two decimals close to 100 %.

    Example:
        >>> share_text(0.95), share_text(0.0776), share_text(0.99951)
        ('95 %', '7.8 %', '99.95 %')
    """
    digits = 1 if share < 0.999 else 2
    return f"{100.0 * share:.{digits}f}".rstrip("0").rstrip(".") + " %"


def others_text(values: Sequence[float]) -> str:
    """AUC on the other targets, from the lowest to the highest; a dash where there is none."""
    if not values:
        return "–"
    low, high = (f"{end(values):.3f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def signed_text(value: float) -> str:
    """A number of either sign with two digits."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def threshold_text(threshold: float) -> str:
    """A threshold of LiRA's log ratio."""
    return f"{threshold:g}".replace("-", "−")
