"""What "the attack succeeds" means: four rates of one trial's scores, higher = more likely seen."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from remnant.measures.resampling import resampled_accuracy, resampled_auc

Floats = NDArray[np.float64]
Success = Literal["accuracy", "precision", "tpr", "auc"]
SUCCESSES: tuple[Success, ...] = ("accuracy", "precision", "tpr", "auc")


def chance_level(success: Success, fpr: float) -> float:
    """What an attack without knowledge reaches: 0.5, or the FPR itself for a TPR."""
    return fpr if success == "tpr" else 0.5


def rates_at_fpr(seen: Floats, unseen: Floats, fpr: float) -> tuple[float, float]:
    """The TPR, and the realised FPR, of the rule "seen iff the score is above t".

    ``t`` is the (k+1)-th largest unseen score with ``k = floor(fpr * n_unseen)``, so at most k
    unseen scores are flagged, fewer where scores tie at t. With ``k >= n_unseen`` all are flagged.
    """
    k = math.floor(fpr * unseen.size + 1e-9)
    if k >= unseen.size:
        return 1.0, 1.0
    threshold = np.partition(unseen, unseen.size - 1 - k)[unseen.size - 1 - k]
    return float(np.mean(seen > threshold)), float(np.mean(unseen > threshold))


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
