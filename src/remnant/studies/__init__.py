"""One room a question: a plan, a population, probes and measures put together.

Names are imported on first use: reading a record must not load PyTorch.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.studies.choices.recipe import ExposureTrainingStudy
    from remnant.studies.exposure.audit import ExposureAudit, measure_exposure
    from remnant.studies.exposure.recipe import ExposureStudy
    from remnant.studies.exposure.result import CanaryExposure
    from remnant.studies.forgetting.recipe import ForgettingStudy
    from remnant.studies.forgetting.text_recipe import TextForgettingStudy
    from remnant.studies.pipeline import estimate_study, run_study
    from remnant.studies.recipe import read_recipe, study_from
    from remnant.studies.shared.settings import Execution
    from remnant.studies.shared.study import Study

_HOME = {
    "CanaryExposure": "remnant.studies.exposure.result",
    "Execution": "remnant.studies.shared.settings",
    "ExposureAudit": "remnant.studies.exposure.audit",
    "ExposureStudy": "remnant.studies.exposure.recipe",
    "ExposureTrainingStudy": "remnant.studies.choices.recipe",
    "ForgettingStudy": "remnant.studies.forgetting.recipe",
    "Study": "remnant.studies.shared.study",
    "TextForgettingStudy": "remnant.studies.forgetting.text_recipe",
    "estimate_study": "remnant.studies.pipeline",
    "measure_exposure": "remnant.studies.exposure.audit",
    "read_recipe": "remnant.studies.recipe",
    "run_study": "remnant.studies.pipeline",
    "study_from": "remnant.studies.recipe",
}

_RENAMED = {
    "SecretExposure": "CanaryExposure",
    "estimate_choices": "estimate_study",
    "estimate_exposure": "estimate_study",
    "estimate_exposure_training": "estimate_study",
    "estimate_forgetting": "estimate_study",
    "estimate_text_forgetting": "estimate_study",
    "run_choices": "run_study",
    "run_exposure": "run_study",
    "run_exposure_training": "run_study",
    "run_forgetting": "run_study",
    "run_text_forgetting": "run_study",
}

__all__ = [
    "CanaryExposure",
    "Execution",
    "ExposureAudit",
    "ExposureStudy",
    "ExposureTrainingStudy",
    "ForgettingStudy",
    "Study",
    "TextForgettingStudy",
    "estimate_study",
    "measure_exposure",
    "read_recipe",
    "run_study",
    "study_from",
]


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        warnings.warn(
            f"remnant.studies.{name} is called {_RENAMED[name]} now; the old name will be removed.",
            DeprecationWarning,
            stacklevel=2,
        )
        name = _RENAMED[name]
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
