"""Four attack-success rates of one trial's scores; higher scores mean more likely seen."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from remnant.errors import InvalidInput, require
from remnant.measures.statistics.checks import check_draws, check_rng, check_share
from remnant.measures.statistics.resampling import resampled_accuracy, resampled_auc

Floats = NDArray[np.float64]
Success = Literal["accuracy", "precision", "tpr", "auc"]
SUCCESSES: tuple[Success, ...] = ("accuracy", "precision", "tpr", "auc")
NAMES: dict[Success, str] = {
    "accuracy": "accuracy",
    "precision": "precision",
    "tpr": "true-positive rate",
    "auc": "AUC",
}


def chance_level(success: Success, fpr: float) -> float:
    """What an attack without knowledge reaches: 0.5, or the FPR itself for a TPR."""
    return fpr if success == "tpr" else 0.5


def out_of_reach(limit: float, success: Success, fpr: float | None) -> str:
    """Why no attack can pass a limit; empty where one can.

    Precision at balanced classes is at most 1/(1 + FPR).

    Example:
        >>> out_of_reach(0.95, "precision", 0.1)
        'the limit of 0.95 is not under 0.909, the maximum of precision at FPR 0.1'
    """
    if success != "precision" or fpr is None or limit < 1.0 / (1.0 + fpr):
        return ""
    return (
        f"the limit of {limit:g} is not under {1.0 / (1.0 + fpr):.3f}, the maximum of precision at "
        f"FPR {fpr:g}"
    )


def check_limit(limit: float, *, chance: float, success: str, most: float = 1.0) -> None:
    """Refuse a limit that nothing can be shown to lie under.

    Args:
        limit: To be checked.
        chance: What an attack without knowledge reaches.
        success: The measure's name, for the sentence.
        most: What no value can pass: 1 for a rate, the ceiling for an exposure in bits.

    Raises:
        InvalidInput: ``limit`` is not a number, at or under chance, or not under ``most``.
    """
    faults: list[str] = []
    if most == 1.0:
        check_share("limit", limit, faults)
    elif isinstance(limit, bool) or not isinstance(limit, (int, float, np.integer, np.floating)):
        faults.append(f"limit={limit!r} is not a number")
    elif not limit < most:
        faults.append(f"limit={limit} is not under {most:.4g}, the most that {success} can show")
    require(
        faults,
        hint="Pass the largest success that is allowed, such as 0.6."
        if most == 1.0
        else "Lower the limit.",
    )
    if limit <= chance:
        raise InvalidInput(
            f"limit={limit:g} is not above chance, which is {chance:.4g} for {success}.",
            hint="An attack that knows nothing reaches chance; allow a little more.",
        )


def check_attack(
    success: str,
    *,
    fpr: float,
    confidence: float,
    rng: np.random.Generator,
    draws: int,
    faults: list[str],
) -> None:
    """Note what is wrong with the settings that all curves have."""
    if success not in SUCCESSES:
        faults.append(f"success={success!r} is not one of {', '.join(SUCCESSES)}")
    check_share("fpr", fpr, faults)
    check_share("confidence", confidence, faults)
    check_rng(rng, faults)
    check_draws(draws, faults)


def rates_at_fpr(seen: Floats, unseen: Floats, fpr: float) -> tuple[float, float]:
    """The TPR and FPR of the rule that flags ``k = floor(fpr * n_unseen)`` unseen scores.

    A score is flagged if it is above the (k+1)-th largest unseen score ``t``. Where scores tie at
    ``t``, the rule flags them at random, with the probability at which exactly k unseen scores are
    flagged on average; the rates are expectations over that. The FPR is therefore ``k / n_unseen``,
    with ties and without. With ``k >= n_unseen`` all scores are flagged.
    """
    k = math.floor(fpr * unseen.size + 1e-9)
    if k >= unseen.size:
        return 1.0, 1.0
    threshold = np.partition(unseen, unseen.size - 1 - k)[unseen.size - 1 - k]
    tied = (k - int(np.sum(unseen > threshold))) / int(np.sum(unseen == threshold))
    tpr = (int(np.sum(seen > threshold)) + tied * int(np.sum(seen == threshold))) / seen.size
    return float(tpr), k / unseen.size


def precision_of(tpr: float, fpr: float) -> float:
    """TPR / (TPR + FPR) at balanced classes; chance, 0.5, where nothing at all is flagged."""
    return 0.5 if tpr + fpr == 0.0 else tpr / (tpr + fpr)


def trial_success(seen: Floats, unseen: Floats, *, success: Success, fpr: float) -> float:
    """One trial's attack success from its seen and unseen scores (1-D, finite)."""
    if success in ("tpr", "precision"):
        tpr, realised = rates_at_fpr(seen, unseen, fpr)
        return tpr if success == "tpr" else precision_of(tpr, realised)
    rate = resampled_auc if success == "auc" else resampled_accuracy
    once = (np.ones((seen.size, 1), np.int32), np.ones((unseen.size, 1), np.int32))
    return float(rate(seen, unseen, *once)[0])
