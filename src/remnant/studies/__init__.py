"""One file a question: a plan, a population, probes and measures strung together."""

from remnant.studies.exposure import ExposureStudy, estimate_exposure, run_exposure
from remnant.studies.exposure_audit import ExposureAudit, SecretExposure, measure_exposure
from remnant.studies.exposure_training import (
    ExposureTrainingStudy,
    estimate_exposure_training,
    run_exposure_training,
)
from remnant.studies.forgetting import ForgettingStudy, estimate_forgetting, run_forgetting
from remnant.studies.questions import Study
from remnant.studies.recipe import read_recipe, study_from
from remnant.studies.running import estimate_study, run_study
from remnant.studies.settings import Execution
from remnant.studies.text_forgetting import (
    TextForgettingStudy,
    estimate_text_forgetting,
    run_text_forgetting,
)

__all__ = [
    "Execution",
    "ExposureAudit",
    "ExposureStudy",
    "ExposureTrainingStudy",
    "ForgettingStudy",
    "SecretExposure",
    "Study",
    "TextForgettingStudy",
    "estimate_exposure",
    "estimate_exposure_training",
    "estimate_forgetting",
    "estimate_study",
    "estimate_text_forgetting",
    "measure_exposure",
    "read_recipe",
    "run_exposure",
    "run_exposure_training",
    "run_forgetting",
    "run_study",
    "run_text_forgetting",
    "study_from",
]
