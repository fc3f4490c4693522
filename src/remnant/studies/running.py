"""Carries out any study, whichever question it asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from remnant.studies.exposure import ExposureStudy, estimate_exposure, run_exposure
from remnant.studies.exposure_training import (
    ExposureTrainingStudy,
    estimate_exposure_training,
    run_exposure_training,
)
from remnant.studies.features import FeatureStudy, estimate_features, run_features
from remnant.studies.forgetting import estimate_forgetting, run_forgetting
from remnant.studies.one_run import OneRunStudy, estimate_one_run, run_one_run
from remnant.studies.prediction import PredictionStudy, estimate_prediction, run_prediction
from remnant.studies.questions import Study
from remnant.studies.settings import Execution
from remnant.studies.text_forgetting import (
    TextForgettingStudy,
    estimate_text_forgetting,
    run_text_forgetting,
)
from remnant.studies.text_prediction import (
    TextPredictionStudy,
    estimate_text_prediction,
    run_text_prediction,
)
from remnant.studies.translation import TranslationStudy, estimate_translation, run_translation

Progress = Callable[[str, int, int], None]


def run_study(
    study: Study, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Carry out the study in ``folder``; a run that was cut short goes on."""
    if isinstance(study, ExposureStudy):
        run_exposure(study, folder, execution, progress=progress)
    elif isinstance(study, ExposureTrainingStudy):
        run_exposure_training(study, folder, execution, progress=progress)
    elif isinstance(study, TranslationStudy):
        run_translation(study, folder, execution, progress=progress)
    elif isinstance(study, OneRunStudy):
        run_one_run(study, folder, execution, progress=progress)
    elif isinstance(study, PredictionStudy):
        run_prediction(study, folder, execution, progress=progress)
    elif isinstance(study, FeatureStudy):
        run_features(study, folder, execution, progress=progress)
    elif isinstance(study, TextPredictionStudy):
        run_text_prediction(study, folder, execution, progress=progress)
    elif isinstance(study, TextForgettingStudy):
        run_text_forgetting(study, folder, execution, progress=progress)
    else:
        run_forgetting(study, folder, execution, progress=progress)


def estimate_study(study: Study, execution: Execution) -> dict[str, Any]:
    """Time a few steps of the real thing, write nothing, and say what the whole would take."""
    if isinstance(study, ExposureStudy):
        return estimate_exposure(study, execution)
    if isinstance(study, ExposureTrainingStudy):
        return estimate_exposure_training(study, execution)
    if isinstance(study, TranslationStudy):
        return estimate_translation(study, execution)
    if isinstance(study, OneRunStudy):
        return estimate_one_run(study, execution)
    if isinstance(study, PredictionStudy):
        return estimate_prediction(study, execution)
    if isinstance(study, FeatureStudy):
        return estimate_features(study, execution)
    if isinstance(study, TextPredictionStudy):
        return estimate_text_prediction(study, execution)
    if isinstance(study, TextForgettingStudy):
        return estimate_text_forgetting(study, execution)
    return estimate_forgetting(study, execution)
