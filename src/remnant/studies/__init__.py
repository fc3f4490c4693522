"""One room a question: a plan, a population, probes and measures put together.

Names are imported on first use: reading a record must not load PyTorch.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remnant.studies.choices.recipe import ExposureTrainingStudy
    from remnant.studies.choices.run import estimate_choices, run_choices
    from remnant.studies.exposure.audit import ExposureAudit, measure_exposure
    from remnant.studies.exposure.recipe import ExposureStudy
    from remnant.studies.exposure.result import CanaryExposure
    from remnant.studies.exposure.run import estimate_exposure, run_exposure
    from remnant.studies.forgetting.recipe import ForgettingStudy
    from remnant.studies.forgetting.run import estimate_forgetting, run_forgetting
    from remnant.studies.forgetting.sequence_run import (
        estimate_sequence_forgetting,
        run_sequence_forgetting,
    )
    from remnant.studies.forgetting.text_recipe import TextForgettingStudy
    from remnant.studies.recipe import read_recipe, study_from
    from remnant.studies.registry import estimate_study, run_study
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
    "estimate_choices": "remnant.studies.choices.run",
    "estimate_exposure": "remnant.studies.exposure.run",
    "estimate_forgetting": "remnant.studies.forgetting.run",
    "estimate_study": "remnant.studies.registry",
    "estimate_sequence_forgetting": "remnant.studies.forgetting.sequence_run",
    "measure_exposure": "remnant.studies.exposure.audit",
    "read_recipe": "remnant.studies.recipe",
    "run_choices": "remnant.studies.choices.run",
    "run_exposure": "remnant.studies.exposure.run",
    "run_forgetting": "remnant.studies.forgetting.run",
    "run_study": "remnant.studies.registry",
    "run_sequence_forgetting": "remnant.studies.forgetting.sequence_run",
    "study_from": "remnant.studies.recipe",
}

_RENAMED = {
    "SecretExposure": "CanaryExposure",
    "estimate_exposure_training": "estimate_choices",
    "estimate_text_forgetting": "estimate_sequence_forgetting",
    "run_exposure_training": "run_choices",
    "run_text_forgetting": "run_sequence_forgetting",
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
    "estimate_choices",
    "estimate_exposure",
    "estimate_forgetting",
    "estimate_sequence_forgetting",
    "estimate_study",
    "measure_exposure",
    "read_recipe",
    "run_choices",
    "run_exposure",
    "run_forgetting",
    "run_sequence_forgetting",
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
