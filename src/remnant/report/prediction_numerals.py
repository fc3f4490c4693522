"""Predictors and their numbers in print."""

from __future__ import annotations

from collections.abc import Sequence

from remnant.report.curve import percent
from remnant.report.numerals import count_text
from remnant.report.prediction_view import Check, Estimate

NAMES = {
    "psmi": "PSMI",
    "loss": "Loss",
    "logit_gap": "Logit gap",
    "mahalanobis": "Mahalanobis",
    "lt_iqr": "LT-IQR",
    "early_lira": "Early LiRA",
}
_IN_TEXT = {
    "psmi": "PSMI",
    "loss": "the loss",
    "logit_gap": "the logit gap",
    "mahalanobis": "the Mahalanobis distance",
    "lt_iqr": "LT-IQR",
    "early_lira": "early LiRA",
}
NEEDS_MORE = {
    "lt_iqr": "the whole run",
    "early_lira": "all models, early",
}
_EARLY = "one model, early"


def name_of(predictor: str) -> str:
    """A predictor in the middle of a sentence."""
    return _IN_TEXT[predictor]


def needs_of(predictor: str) -> str:
    """What has to be trained before the predictor can be asked."""
    return NEEDS_MORE.get(predictor, _EARLY)


def epoch_text(epoch: float) -> str:
    """A number of epochs with the digits it has, such as ``6`` or ``0.25``."""
    return count_text(round(epoch)) if epoch == round(epoch) or epoch >= 100 else f"{epoch:.3g}"


def epochs_text(epochs: float) -> str:
    """Epochs with their unit."""
    return f"{epoch_text(epochs)} epoch{'' if epochs == 1 else 's'}"


def estimate_text(found: Estimate) -> str:
    """A number between 0 and 1 with its interval, such as ``0.931 (0.900 to 0.951)``."""
    return f"{found.value:.3f} ({ends_text(found)})"


def ends_text(found: Estimate) -> str:
    """Both ends as plain numbers."""
    return f"{found.low:.3f} to {found.high:.3f}"


def rate_text(found: Estimate) -> str:
    """A share with its interval, such as ``7.7 % (2.1 % to 18.5 %)``."""
    return f"{percent(found.value)} ({rate_ends(found)})"


def rate_ends(found: Estimate) -> str:
    """Both ends as shares."""
    return f"{percent(found.low)} to {percent(found.high)}"


def others_text(values: Sequence[float]) -> str:
    """AUC of the other targets, from the lowest to the highest; a dash where there is none."""
    if not values:
        return "–"
    low, high = (f"{end(values):.3f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def held_text(check: Check) -> str:
    """Whether a list kept to its stated rate, in two or three words."""
    return "held" if check.held else "not held" if check.refuted else "exceeded within chance"


def signed_text(value: float) -> str:
    """A number of either sign with two digits."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def threshold_text(threshold: float) -> str:
    """A threshold of LiRA's log ratio in print."""
    return f"{threshold:g}".replace("-", "−")
