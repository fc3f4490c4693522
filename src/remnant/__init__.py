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
    from remnant.measures.counterfactual import (
        CounterfactualMemorization,
        counterfactual_memorization,
    )
    from remnant.measures.exposure import Exposure, exposure
    from remnant.measures.exposure_curve import ExposureCurve, exposure_curve
    from remnant.measures.extrapolation import ExtrapolatedExposure, extrapolated_exposure
    from remnant.measures.feature_score import MScore
    from remnant.measures.forgetting import ForgettingCurve, forgetting_curve
    from remnant.measures.lira import Lira, lira
    from remnant.measures.lira_leave_one_out import LiraLeaveOneOut, lira_leave_one_out
    from remnant.measures.mahalanobis import Mahalanobis, mahalanobis
    from remnant.measures.one_run import OneRunForgetting, one_run_forgetting
    from remnant.measures.predicted import PredictedMemorisation, predicted_memorisation
    from remnant.measures.prediction import PredictionQuality, prediction_quality
    from remnant.measures.psmi import Psmi, PsmiFit, fit_psmi, psmi
    from remnant.measures.rmia import Rmia, rmia
    from remnant.measures.unique_features import m_score, probability_gain, white_box_m_score
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
    from remnant.search import ExactExposure, Extraction, exact_exposure, extract
    from remnant.studies.exposure_audit import ExposureAudit, measure_exposure

__version__ = "0.2.0"

_HOME = {
    "CounterfactualMemorization": "remnant.measures.counterfactual",
    "EarlyPrediction": "remnant.integrations.early_prediction",
    "ExactExposure": "remnant.search",
    "Exposure": "remnant.measures.exposure",
    "ExposureAudit": "remnant.studies.exposure_audit",
    "ExposureCurve": "remnant.measures.exposure_curve",
    "Extraction": "remnant.search",
    "ExtrapolatedExposure": "remnant.measures.extrapolation",
    "FeaturePlan": "remnant.plans",
    "ForgettingCurve": "remnant.measures.forgetting",
    "InfluenceCheckpoints": "remnant.probes.influence",
    "InjectPlan": "remnant.plans",
    "InsertPlan": "remnant.plans",
    "Lira": "remnant.measures.lira",
    "LiraLeaveOneOut": "remnant.measures.lira_leave_one_out",
    "MScore": "remnant.measures.feature_score",
    "Mahalanobis": "remnant.measures.mahalanobis",
    "OneRunForgetting": "remnant.measures.one_run",
    "Patch": "remnant.canaries",
    "PoisonPlan": "remnant.plans",
    "Population": "remnant.population",
    "PredictedMemorisation": "remnant.measures.predicted",
    "PredictionQuality": "remnant.measures.prediction",
    "Psmi": "remnant.measures.psmi",
    "PsmiFit": "remnant.measures.psmi",
    "Rmia": "remnant.measures.rmia",
    "ShadowPlan": "remnant.plans",
    "StaggeredPlan": "remnant.plans",
    "Template": "remnant.canaries",
    "counterfactual_memorization": "remnant.measures.counterfactual",
    "exact_exposure": "remnant.search",
    "exposure": "remnant.measures.exposure",
    "exposure_curve": "remnant.measures.exposure_curve",
    "extract": "remnant.search",
    "extrapolated_exposure": "remnant.measures.extrapolation",
    "fit_psmi": "remnant.measures.psmi",
    "forgetting_curve": "remnant.measures.forgetting",
    "lira": "remnant.measures.lira",
    "lira_leave_one_out": "remnant.measures.lira_leave_one_out",
    "m_score": "remnant.measures.unique_features",
    "mahalanobis": "remnant.measures.mahalanobis",
    "measure_exposure": "remnant.studies.exposure_audit",
    "one_run_forgetting": "remnant.measures.one_run",
    "predicted_memorisation": "remnant.measures.predicted",
    "prediction_quality": "remnant.measures.prediction",
    "probability_gain": "remnant.measures.unique_features",
    "psmi": "remnant.measures.psmi",
    "rmia": "remnant.measures.rmia",
    "self_influence": "remnant.probes.influence",
    "white_box_m_score": "remnant.measures.unique_features",
}
# Packages that are named whole: ``remnant.theory.renyi_bound``.
_ROOMS = {"theory"}

__all__ = [
    "CounterfactualMemorization",
    "EarlyPrediction",
    "ExactExposure",
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
    "Lira",
    "LiraLeaveOneOut",
    "MScore",
    "Mahalanobis",
    "OneRunForgetting",
    "Patch",
    "PoisonPlan",
    "Population",
    "PredictedMemorisation",
    "PredictionQuality",
    "Psmi",
    "PsmiFit",
    "Rmia",
    "ShadowPlan",
    "StaggeredPlan",
    "Template",
    "__version__",
    "counterfactual_memorization",
    "exact_exposure",
    "exposure",
    "exposure_curve",
    "extract",
    "extrapolated_exposure",
    "fit_psmi",
    "forgetting_curve",
    "lira",
    "lira_leave_one_out",
    "m_score",
    "mahalanobis",
    "measure_exposure",
    "one_run_forgetting",
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
