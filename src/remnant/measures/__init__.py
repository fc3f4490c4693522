"""Pure NumPy and SciPy: arrays in, a result with its interval out."""

from remnant.measures.calibrated_exposure import calibrated_losses
from remnant.measures.calibration import calibrated_scores
from remnant.measures.checks import unseen_needed
from remnant.measures.counterfactual import (
    CounterfactualMemorization,
    counterfactual_memorization,
)
from remnant.measures.decay import Decay, Forecast
from remnant.measures.decision import Decision, forgetting_decision
from remnant.measures.divergence import kl_divergences
from remnant.measures.epsilon import HeuristicEpsilon, heuristic_epsilon
from remnant.measures.exposure import Exposure, exposure
from remnant.measures.exposure_curve import ExposureCurve, exposure_curve, null_exposure
from remnant.measures.extraction_odds import QueriesToLeak, leak_probability, queries_to_leak
from remnant.measures.extrapolation import ExtrapolatedExposure, extrapolated_exposure
from remnant.measures.feature_score import MScore, adjusted_p_values, feature_score
from remnant.measures.flip_rate import FlipRate, flip_rate
from remnant.measures.forgetting import ForgettingCurve, forgetting_curve
from remnant.measures.hidden import HiddenTest, hidden_test
from remnant.measures.intervals import clopper_pearson, controls_needed
from remnant.measures.lira import Lira, LiraCentre, LiraMode, LiraVariance, lira
from remnant.measures.lira_leave_one_out import LiraLeaveOneOut, lira_leave_one_out
from remnant.measures.loss_trace import StoppingPoint, loss_trace_iqr, stopping_point
from remnant.measures.mahalanobis import Mahalanobis, bearable_mahalanobis, mahalanobis
from remnant.measures.one_run import OneRunForgetting, one_run_forgetting
from remnant.measures.pooled_exposure import PooledExposureTest, pooled_exposure_test
from remnant.measures.predicted import PredictedMemorisation, predicted_memorisation
from remnant.measures.prediction import PredictionQuality, PredictionRate, prediction_quality
from remnant.measures.protect_last import ProtectLast
from remnant.measures.protect_list import ProtectRule, protect_rule
from remnant.measures.psmi import Psmi, PsmiFit, fit_psmi, psmi
from remnant.measures.rank_agreement import RankAgreement, rank_agreement
from remnant.measures.returning import Returning, returning
from remnant.measures.rmia import Rmia, rmia
from remnant.measures.roc import (
    AttackSuccess,
    Roc,
    auc,
    balanced_accuracy,
    precision_at_fpr,
    roc,
    tpr_at_fpr,
)
from remnant.measures.safe_after import SafeAfter
from remnant.measures.sign_flips import SignFlipTest, sign_flip_test
from remnant.measures.signals import cross_entropy, log_odds, logit_gap
from remnant.measures.skew_normal import SkewNormal
from remnant.measures.skew_normal_fit import SkewNormalFit, fit_skew_normal
from remnant.measures.stratified_ranks import StratifiedRankTest, stratified_rank_test
from remnant.measures.success import SUCCESSES, Success
from remnant.measures.unique_features import m_score, probability_gain, white_box_m_score
from remnant.measures.verdict import Verdict, exposure_curve_verdict, forgetting_verdict

__all__ = [
    "SUCCESSES",
    "AttackSuccess",
    "CounterfactualMemorization",
    "Decay",
    "Decision",
    "Exposure",
    "ExposureCurve",
    "ExtrapolatedExposure",
    "FlipRate",
    "Forecast",
    "ForgettingCurve",
    "HeuristicEpsilon",
    "HiddenTest",
    "Lira",
    "LiraCentre",
    "LiraLeaveOneOut",
    "LiraMode",
    "LiraVariance",
    "MScore",
    "Mahalanobis",
    "OneRunForgetting",
    "PooledExposureTest",
    "PredictedMemorisation",
    "PredictionQuality",
    "PredictionRate",
    "ProtectLast",
    "ProtectRule",
    "Psmi",
    "PsmiFit",
    "QueriesToLeak",
    "RankAgreement",
    "Returning",
    "Rmia",
    "Roc",
    "SafeAfter",
    "SignFlipTest",
    "SkewNormal",
    "SkewNormalFit",
    "StoppingPoint",
    "StratifiedRankTest",
    "Success",
    "Verdict",
    "adjusted_p_values",
    "auc",
    "balanced_accuracy",
    "bearable_mahalanobis",
    "calibrated_losses",
    "calibrated_scores",
    "clopper_pearson",
    "controls_needed",
    "counterfactual_memorization",
    "cross_entropy",
    "exposure",
    "exposure_curve",
    "exposure_curve_verdict",
    "extrapolated_exposure",
    "feature_score",
    "fit_psmi",
    "fit_skew_normal",
    "flip_rate",
    "forgetting_curve",
    "forgetting_decision",
    "forgetting_verdict",
    "heuristic_epsilon",
    "hidden_test",
    "kl_divergences",
    "leak_probability",
    "lira",
    "lira_leave_one_out",
    "log_odds",
    "logit_gap",
    "loss_trace_iqr",
    "m_score",
    "mahalanobis",
    "null_exposure",
    "one_run_forgetting",
    "pooled_exposure_test",
    "precision_at_fpr",
    "predicted_memorisation",
    "prediction_quality",
    "probability_gain",
    "protect_rule",
    "psmi",
    "queries_to_leak",
    "rank_agreement",
    "returning",
    "rmia",
    "roc",
    "sign_flip_test",
    "stopping_point",
    "stratified_rank_test",
    "tpr_at_fpr",
    "unseen_needed",
    "white_box_m_score",
]
