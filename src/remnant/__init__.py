"""Remnant measures what a model still remembers of its training data, and how fast it forgets.

Names are imported on first use, so that ``import remnant`` and ``remnant --help`` answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant import theory
    from remnant.canaries import Template
    from remnant.measures.exposure import Exposure, exposure
    from remnant.measures.exposure_curve import ExposureCurve, exposure_curve
    from remnant.measures.extrapolation import ExtrapolatedExposure, extrapolated_exposure
    from remnant.measures.forgetting import ForgettingCurve, forgetting_curve
    from remnant.measures.one_run import OneRunForgetting, one_run_forgetting
    from remnant.plans import InjectPlan, InsertPlan, PoisonPlan, ShadowPlan, StaggeredPlan
    from remnant.population import Population
    from remnant.search import ExactExposure, Extraction, exact_exposure, extract
    from remnant.studies.exposure_audit import ExposureAudit, measure_exposure

__version__ = "0.1.0"

_HOME = {
    "ExactExposure": "remnant.search",
    "Exposure": "remnant.measures.exposure",
    "ExposureAudit": "remnant.studies.exposure_audit",
    "ExposureCurve": "remnant.measures.exposure_curve",
    "Extraction": "remnant.search",
    "ExtrapolatedExposure": "remnant.measures.extrapolation",
    "ForgettingCurve": "remnant.measures.forgetting",
    "InjectPlan": "remnant.plans",
    "InsertPlan": "remnant.plans",
    "OneRunForgetting": "remnant.measures.one_run",
    "PoisonPlan": "remnant.plans",
    "Population": "remnant.population",
    "ShadowPlan": "remnant.plans",
    "StaggeredPlan": "remnant.plans",
    "Template": "remnant.canaries",
    "exact_exposure": "remnant.search",
    "exposure": "remnant.measures.exposure",
    "exposure_curve": "remnant.measures.exposure_curve",
    "extract": "remnant.search",
    "extrapolated_exposure": "remnant.measures.extrapolation",
    "forgetting_curve": "remnant.measures.forgetting",
    "measure_exposure": "remnant.studies.exposure_audit",
    "one_run_forgetting": "remnant.measures.one_run",
}
# Packages that are named whole: ``remnant.theory.renyi_bound``.
_ROOMS = {"theory"}

__all__ = [
    "ExactExposure",
    "Exposure",
    "ExposureAudit",
    "ExposureCurve",
    "Extraction",
    "ExtrapolatedExposure",
    "ForgettingCurve",
    "InjectPlan",
    "InsertPlan",
    "OneRunForgetting",
    "PoisonPlan",
    "Population",
    "ShadowPlan",
    "StaggeredPlan",
    "Template",
    "__version__",
    "exact_exposure",
    "exposure",
    "exposure_curve",
    "extract",
    "extrapolated_exposure",
    "forgetting_curve",
    "measure_exposure",
    "one_run_forgetting",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"remnant.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'remnant' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
