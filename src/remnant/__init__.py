"""Remnant measures what a model still remembers of its training data, and how fast it forgets.

Names are imported on first use, so that ``import remnant`` and ``remnant --help`` answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant import theory
    from remnant.canaries import Patch, Template
    from remnant.integrations.early_prediction import EarlyPrediction
    from remnant.integrations.membership.images import audit_images
    from remnant.integrations.membership.labelled_texts import audit_text_classifier
    from remnant.integrations.membership.outcome import MembershipAudit
    from remnant.integrations.membership.scores import audit_scores
    from remnant.integrations.membership.texts import audit_texts
    from remnant.integrations.training.audit import Audit
    from remnant.integrations.training.finishing import AuditOutcome
    from remnant.measures.epsilon.attack_rates import EpsilonLowerBound, epsilon_lower_bound
    from remnant.measures.epsilon.canaries_needed import CanariesNeeded, canaries_needed
    from remnant.measures.epsilon.from_scores import ScoresEpsilon, epsilon_from_scores
    from remnant.measures.epsilon.one_run import (
        OneRunEpsilon,
        one_run_epsilon,
        one_run_from_scores,
    )
    from remnant.measures.exposure.by_rank import Exposure, exposure
    from remnant.measures.exposure.curve import ExposureCurve, exposure_curve
    from remnant.measures.exposure.extrapolation import ExtrapolatedExposure, extrapolated_exposure
    from remnant.measures.features.feature_score import MScore
    from remnant.measures.features.unique_features import (
        m_score,
        probability_gain,
        white_box_m_score,
    )
    from remnant.measures.forgetting.curve import ForgettingCurve, forgetting_curve
    from remnant.measures.forgetting.instance_scores import InstanceScores, instance_scores
    from remnant.measures.forgetting.one_run import OneRunForgetting, one_run_forgetting
    from remnant.measures.prediction.counterfactual import (
        CounterfactualMemorization,
        counterfactual_memorization,
    )
    from remnant.measures.prediction.lira import Lira, LiraLeaveOneOut, lira, lira_leave_one_out
    from remnant.measures.prediction.mahalanobis import Mahalanobis, mahalanobis
    from remnant.measures.prediction.predicted import PredictedMemorisation, predicted_memorisation
    from remnant.measures.prediction.psmi import Psmi, PsmiFit, fit_psmi, psmi
    from remnant.measures.prediction.quality import PredictionQuality, prediction_quality
    from remnant.measures.prediction.rmia import Rmia, rmia
    from remnant.plans import (
        FeaturePlan,
        InjectPlan,
        InsertPlan,
        PoisonPlan,
        ShadowPlan,
        StaggeredPlan,
    )
    from remnant.population import Population
    from remnant.probes.influence import InfluenceCheckpoints, self_influence
    from remnant.records.typed import Result
    from remnant.search import (
        ExactExposure,
        ExactExposures,
        Extraction,
        exact_exposure,
        extract,
    )
    from remnant.studies.exposure.audit import ExposureAudit, measure_exposure
    from remnant.studies.question_result import load

__version__ = "0.3.0"

_NAMES = {
    "canaries": ("Patch", "Template"),
    "integrations.early_prediction": ("EarlyPrediction",),
    "integrations.membership.images": ("audit_images",),
    "integrations.membership.labelled_texts": ("audit_text_classifier",),
    "integrations.membership.outcome": ("MembershipAudit",),
    "integrations.membership.scores": ("audit_scores",),
    "integrations.membership.texts": ("audit_texts",),
    "integrations.training.audit": ("Audit",),
    "integrations.training.finishing": ("AuditOutcome",),
    "measures.epsilon.attack_rates": ("EpsilonLowerBound", "epsilon_lower_bound"),
    "measures.epsilon.canaries_needed": ("CanariesNeeded", "canaries_needed"),
    "measures.epsilon.from_scores": ("ScoresEpsilon", "epsilon_from_scores"),
    "measures.epsilon.one_run": ("OneRunEpsilon", "one_run_epsilon", "one_run_from_scores"),
    "measures.exposure.by_rank": ("Exposure", "exposure"),
    "measures.exposure.curve": ("ExposureCurve", "exposure_curve"),
    "measures.exposure.extrapolation": ("ExtrapolatedExposure", "extrapolated_exposure"),
    "measures.features.feature_score": ("MScore",),
    "measures.features.unique_features": ("m_score", "probability_gain", "white_box_m_score"),
    "measures.forgetting.curve": ("ForgettingCurve", "forgetting_curve"),
    "measures.forgetting.instance_scores": ("InstanceScores", "instance_scores"),
    "measures.forgetting.one_run": ("OneRunForgetting", "one_run_forgetting"),
    "measures.prediction.counterfactual": (
        "CounterfactualMemorization",
        "counterfactual_memorization",
    ),
    "measures.prediction.lira": ("Lira", "LiraLeaveOneOut", "lira", "lira_leave_one_out"),
    "measures.prediction.mahalanobis": ("Mahalanobis", "mahalanobis"),
    "measures.prediction.predicted": ("PredictedMemorisation", "predicted_memorisation"),
    "measures.prediction.psmi": ("Psmi", "PsmiFit", "fit_psmi", "psmi"),
    "measures.prediction.quality": ("PredictionQuality", "prediction_quality"),
    "measures.prediction.rmia": ("Rmia", "rmia"),
    "plans": (
        "FeaturePlan",
        "InjectPlan",
        "InsertPlan",
        "PoisonPlan",
        "ShadowPlan",
        "StaggeredPlan",
    ),
    "population": ("Population",),
    "probes.influence": ("InfluenceCheckpoints", "self_influence"),
    "records.typed": ("Result",),
    "search": ("ExactExposure", "ExactExposures", "Extraction", "exact_exposure", "extract"),
    "studies.exposure.audit": ("ExposureAudit", "measure_exposure"),
    "studies.question_result": ("load",),
}
_HOME = {name: f"remnant.{module}" for module, names in _NAMES.items() for name in names}
# Packages that are named whole: ``remnant.theory.renyi_bound``.
_ROOMS = {"theory"}

__all__ = [
    "Audit",
    "AuditOutcome",
    "CanariesNeeded",
    "CounterfactualMemorization",
    "EarlyPrediction",
    "EpsilonLowerBound",
    "ExactExposure",
    "ExactExposures",
    "Exposure",
    "ExposureAudit",
    "ExposureCurve",
    "Extraction",
    "ExtrapolatedExposure",
    "FeaturePlan",
    "ForgettingCurve",
    "InfluenceCheckpoints",
    "InjectPlan",
    "InsertPlan",
    "InstanceScores",
    "Lira",
    "LiraLeaveOneOut",
    "MScore",
    "Mahalanobis",
    "MembershipAudit",
    "OneRunEpsilon",
    "OneRunForgetting",
    "Patch",
    "PoisonPlan",
    "Population",
    "PredictedMemorisation",
    "PredictionQuality",
    "Psmi",
    "PsmiFit",
    "Result",
    "Rmia",
    "ScoresEpsilon",
    "ShadowPlan",
    "StaggeredPlan",
    "Template",
    "__version__",
    "audit_images",
    "audit_scores",
    "audit_text_classifier",
    "audit_texts",
    "canaries_needed",
    "counterfactual_memorization",
    "epsilon_from_scores",
    "epsilon_lower_bound",
    "exact_exposure",
    "exposure",
    "exposure_curve",
    "extract",
    "extrapolated_exposure",
    "fit_psmi",
    "forgetting_curve",
    "instance_scores",
    "lira",
    "lira_leave_one_out",
    "load",
    "m_score",
    "mahalanobis",
    "measure_exposure",
    "one_run_epsilon",
    "one_run_forgetting",
    "one_run_from_scores",
    "predicted_memorisation",
    "prediction_quality",
    "probability_gain",
    "psmi",
    "rmia",
    "self_influence",
    "theory",
    "white_box_m_score",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"remnant.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'remnant' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
