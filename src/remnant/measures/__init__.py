"""Pure NumPy and SciPy: arrays in, a result with its interval out."""

from remnant.measures.calibration import calibrated_scores
from remnant.measures.checks import unseen_needed
from remnant.measures.forgetting import ForgettingCurve, forgetting_curve
from remnant.measures.intervals import clopper_pearson, controls_needed
from remnant.measures.roc import (
    AttackSuccess,
    Roc,
    auc,
    balanced_accuracy,
    precision_at_fpr,
    roc,
    tpr_at_fpr,
)
from remnant.measures.signals import cross_entropy, log_odds, logit_gap
from remnant.measures.success import SUCCESSES, Success
from remnant.measures.verdict import Verdict, forgetting_verdict

__all__ = [
    "SUCCESSES",
    "AttackSuccess",
    "ForgettingCurve",
    "Roc",
    "Success",
    "Verdict",
    "auc",
    "balanced_accuracy",
    "calibrated_scores",
    "clopper_pearson",
    "controls_needed",
    "cross_entropy",
    "forgetting_curve",
    "forgetting_verdict",
    "log_odds",
    "logit_gap",
    "precision_at_fpr",
    "roc",
    "tpr_at_fpr",
    "unseen_needed",
]
