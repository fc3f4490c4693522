"""Pure NumPy and SciPy: arrays in, a result with its interval out."""

from remnant.measures.epsilon.attack_rates import EpsilonLowerBound, epsilon_lower_bound
from remnant.measures.epsilon.canaries_needed import CanariesNeeded, canaries_needed
from remnant.measures.epsilon.from_scores import ScoresEpsilon, epsilon_from_scores
from remnant.measures.epsilon.gaussian import gaussian_delta, gaussian_epsilon
from remnant.measures.epsilon.heuristic import HeuristicEpsilon, heuristic_epsilon
from remnant.measures.epsilon.one_run import (
    OneRunEpsilon,
    one_run_epsilon,
    one_run_from_scores,
)
from remnant.measures.exposure.by_rank import (
    Exposure,
    PooledExposureTest,
    calibrated_losses,
    exposure,
    pooled_exposure_test,
)
from remnant.measures.exposure.curve import ExposureCurve, exposure_curve, null_exposure
from remnant.measures.exposure.disagreement import disagreeing_windows
from remnant.measures.exposure.extraction_odds import (
    QueriesToLeak,
    leak_probability,
    queries_to_leak,
)
from remnant.measures.exposure.extrapolation import ExtrapolatedExposure, extrapolated_exposure
from remnant.measures.features.feature_score import MScore, adjusted_p_values, feature_score
from remnant.measures.features.unique_features import (
    kl_divergences,
    m_score,
    probability_gain,
    white_box_m_score,
)
from remnant.measures.forgetting.curve import ForgettingCurve, forgetting_curve
from remnant.measures.forgetting.decay import Decay, Forecast
from remnant.measures.forgetting.decision import Decision, forgetting_decision
from remnant.measures.forgetting.instance_scores import (
    InstanceScores,
    calibrated_scores,
    instance_scores,
)
from remnant.measures.forgetting.one_run import OneRunForgetting, one_run_forgetting
from remnant.measures.forgetting.residual_memory import HiddenTest, hidden_test
from remnant.measures.forgetting.returning import Returning, returning
from remnant.measures.forgetting.safe_after import ProtectLast, SafeAfter
from remnant.measures.forgetting.second_tests import OwnSetTest, auc_within_label, own_set_test
from remnant.measures.forgetting.verdict import Verdict, exposure_curve_verdict, forgetting_verdict
from remnant.measures.prediction.counterfactual import (
    CounterfactualMemorization,
    counterfactual_memorization,
)
from remnant.measures.prediction.flip_rate import FlipRate, flip_rate
from remnant.measures.prediction.lira import (
    Lira,
    LiraCentre,
    LiraLeaveOneOut,
    LiraMode,
    LiraVariance,
    lira,
    lira_leave_one_out,
)
from remnant.measures.prediction.loss_trace import StoppingPoint, loss_trace_iqr, stopping_point
from remnant.measures.prediction.mahalanobis import Mahalanobis, bearable_mahalanobis, mahalanobis
from remnant.measures.prediction.predicted import PredictedMemorisation, predicted_memorisation
from remnant.measures.prediction.protect_list import ProtectRule, protect_rule
from remnant.measures.prediction.psmi import Psmi, PsmiFit, fit_psmi, psmi
from remnant.measures.prediction.quality import (
    PredictionQuality,
    PredictionRate,
    prediction_quality,
)
from remnant.measures.prediction.rmia import Rmia, rmia
from remnant.measures.prediction.signals import cross_entropy, log_odds, logit_gap
from remnant.measures.statistics.checks import SUCCESSES, Success, unseen_needed
from remnant.measures.statistics.intervals import clopper_pearson, controls_needed
from remnant.measures.statistics.rank_agreement import RankAgreement, rank_agreement
from remnant.measures.statistics.rank_sum import StratifiedRankTest, stratified_rank_test
from remnant.measures.statistics.roc import (
    AttackSuccess,
    Roc,
    auc,
    balanced_accuracy,
    precision_at_fpr,
    roc,
    tpr_at_fpr,
)
from remnant.measures.statistics.sign_flips import SignFlipTest, sign_flip_test
from remnant.measures.statistics.skew_normal import SkewNormal
from remnant.measures.statistics.skew_normal_fit import SkewNormalFit, fit_skew_normal

__all__ = [
    "SUCCESSES",
    "AttackSuccess",
    "CanariesNeeded",
    "CounterfactualMemorization",
    "Decay",
    "Decision",
    "EpsilonLowerBound",
    "Exposure",
    "ExposureCurve",
    "ExtrapolatedExposure",
    "FlipRate",
    "Forecast",
    "ForgettingCurve",
    "HeuristicEpsilon",
    "HiddenTest",
    "InstanceScores",
    "Lira",
    "LiraCentre",
    "LiraLeaveOneOut",
    "LiraMode",
    "LiraVariance",
    "MScore",
    "Mahalanobis",
    "OneRunEpsilon",
    "OneRunForgetting",
    "OwnSetTest",
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
    "ScoresEpsilon",
    "SignFlipTest",
    "SkewNormal",
    "SkewNormalFit",
    "StoppingPoint",
    "StratifiedRankTest",
    "Success",
    "Verdict",
    "adjusted_p_values",
    "auc",
    "auc_within_label",
    "balanced_accuracy",
    "bearable_mahalanobis",
    "calibrated_losses",
    "calibrated_scores",
    "canaries_needed",
    "clopper_pearson",
    "controls_needed",
    "counterfactual_memorization",
    "cross_entropy",
    "disagreeing_windows",
    "epsilon_from_scores",
    "epsilon_lower_bound",
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
    "gaussian_delta",
    "gaussian_epsilon",
    "heuristic_epsilon",
    "hidden_test",
    "instance_scores",
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
    "one_run_epsilon",
    "one_run_forgetting",
    "one_run_from_scores",
    "own_set_test",
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
