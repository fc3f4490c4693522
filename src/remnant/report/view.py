"""Record -> view: everything the report shows, as plain frozen data.

The views are the only files that know under which names a record keeps its results, one file a
question. What a run did not measure is a ``NotMeasured`` with its reason, never a number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from remnant.errors import RecordError
from remnant.records import Record
from remnant.records.folder import RECORD_FILE
from remnant.records.listing import SHADOW_POOL
from remnant.report.exposure_reading import read_exposure
from remnant.report.exposure_view import ExposureView
from remnant.report.feature_audit_view import FeatureAuditView, read_feature_audit
from remnant.report.features_reading import read_features
from remnant.report.features_view import FeaturesView
from remnant.report.forgetting_view import ForgettingView, read_forgetting
from remnant.report.one_run_view import OneRunView, read_one_run
from remnant.report.prediction_reading import read_prediction
from remnant.report.prediction_view import PredictionView
from remnant.report.run_view import NotMeasured
from remnant.report.text_forgetting_view import TextForgettingView, read_text_forgetting
from remnant.report.training_reading import read_training
from remnant.report.training_view import TrainingView

__all__ = ["NotMeasured", "View", "read_view", "read_views"]

View = (
    ForgettingView
    | ExposureView
    | TrainingView
    | OneRunView
    | TextForgettingView
    | PredictionView
    | FeaturesView
    | FeatureAuditView
)

_READERS: dict[str, Callable[[Record], View]] = {
    "forgetting": read_forgetting,
    "exposure": read_exposure,
    "translation-exposure": read_exposure,
    "exposure-training": read_training,
    "one-run": read_one_run,
    "text-forgetting": read_text_forgetting,
    "prediction": read_prediction,
    "text-prediction": read_prediction,
    "unique-features": read_features,
    "feature-audit": read_feature_audit,
}


def read_view(record: Record) -> View:
    """Read a record into the view of its question.

    Raises:
        RecordError: The question is not one of ours, or a result is there but not in the form it
            should have.
    """
    if record.question == SHADOW_POOL:
        raise RecordError(
            f"{record.folder} is a pool of shadow models’ scores, and no run.",
            hint="Name the run that was made with it.",
        )
    reader = _READERS.get(record.question)
    if reader is None:
        *others, last = _READERS
        raise RecordError(
            f"{record.folder} asks the question {record.question!r}; a report can be made for "
            f"{', '.join(others)} and {last}.",
            hint="Use the version of Remnant that wrote it.",
        )
    return reader(record)


def read_views(folder: str | Path) -> tuple[View, ...]:
    """Read the run in a folder, if there is one, and then the runs directly under it, by name.

    A shadow pool under it is no run and is passed over.

    Raises:
        RecordError: There is no run at all, or one of them cannot be read.
    """
    folder = Path(folder)
    found = sorted(path.parent for path in folder.glob(f"*/{RECORD_FILE}") if path.is_file())
    below = [record for one in found if (record := Record.open(one)).question != SHADOW_POOL]
    # Without any run the folder itself is opened, for the error that it gives.
    own = [Record.open(folder)] if not below or (folder / RECORD_FILE).exists() else []
    return tuple(read_view(record) for record in [*own, *below])
