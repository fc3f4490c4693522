"""Four attack-success rates of one trial's scores; higher scores mean more likely seen."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from remnant.measures.statistics.checks import Success
from remnant.measures.statistics.resampling import resampled_accuracy, resampled_auc

Floats = NDArray[np.float64]


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
