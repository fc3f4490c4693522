"""Remnant measures what a model still remembers of its training data, and how fast it forgets.

Names are imported on first use, so that ``import remnant`` and ``remnant --help`` answer at once.
``__all__`` is the front of the package. Other names that can be imported from here are documented
in their rooms, such as ``remnant.measures``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.canaries import Template, plant
    from remnant.canaries.natural import redact, scan
    from remnant.integrations.membership.images import audit_images
    from remnant.integrations.membership.labelled_texts import audit_text_classifier
    from remnant.integrations.membership.scores import audit_scores
    from remnant.integrations.membership.texts import audit_texts
    from remnant.integrations.training.audit import Audit
    from remnant.measures.epsilon.attack_rates import epsilon_lower_bound
    from remnant.measures.exposure.curve import exposure_curve
    from remnant.measures.features.unique_features import m_score
    from remnant.measures.forgetting.curve import forgetting_curve
    from remnant.measures.forgetting.instance_scores import instance_scores
    from remnant.measures.forgetting.one_run import one_run_forgetting
    from remnant.measures.prediction.lira import lira
    from remnant.measures.prediction.predicted import predicted_memorisation
    from remnant.measures.prediction.psmi import psmi
    from remnant.measures.prediction.rmia import rmia
    from remnant.population import Population
    from remnant.probes.influence import self_influence
    from remnant.search import extract
    from remnant.studies.exposure.audit import measure_exposure
    from remnant.studies.question_result import load
    from remnant.studies.reporting import write_report

__version__ = "0.3.0"

_NAMES = {
    "canaries": ("Patch", "Planted", "Template", "plant"),
    "canaries.natural": ("Redacted", "Scan", "redact", "scan"),
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
    "studies.question_result": ("QuestionResult", "load"),
    "studies.reporting": ("write_report",),
}
_HOME = {name: f"remnant.{module}" for module, names in _NAMES.items() for name in names}
# Packages that are named whole: ``remnant.theory.renyi_bound``.
_ROOMS = {"theory"}

__all__ = [
    "Audit",
    "Population",
    "Template",
    "__version__",
    "audit_images",
    "audit_scores",
    "audit_text_classifier",
    "audit_texts",
    "epsilon_lower_bound",
    "exposure_curve",
    "extract",
    "forgetting_curve",
    "instance_scores",
    "lira",
    "load",
    "m_score",
    "measure_exposure",
    "one_run_forgetting",
    "plant",
    "predicted_memorisation",
    "psmi",
    "redact",
    "rmia",
    "scan",
    "self_influence",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"remnant.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'remnant' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
