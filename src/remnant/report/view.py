"""Record -> view: everything the report shows, as plain frozen data.

The views are the only files that know under which names a record keeps its results, one file a
question. What a run did not measure is a ``NotMeasured`` with its reason, never a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

__all__ = ["DamagedRun", "NotMeasured", "View", "read_sound_views", "read_view", "read_views"]

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


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A run that a report has to leave out.

    Attributes:
        name: Of its folder.
        fault: Why, in one sentence.
    """

    name: str
    fault: str


def read_views(folder: str | Path) -> tuple[View, ...]:
    """Read the run in a folder, if there is one, and then the runs directly under it, by name.

    A shadow pool under it is no run and is passed over.

    Raises:
        RecordError: There is no run at all, or one of them cannot be read.
    """
    views = []
    for one in _runs_in(Path(folder)):
        view = _verified_view(one, own=one == Path(folder))
        views += [] if view is None else [view]
    # With pools alone under it the folder itself is opened, for the error that it gives.
    return tuple(views) or (read_view(Record.open(folder)),)


def read_sound_views(folder: str | Path) -> tuple[tuple[View, ...], tuple[DamagedRun, ...]]:
    """Read the runs that ``read_views`` reads, and say which of them cannot be read.

    Raises:
        RecordError: There is no run at all, or none that can be read.
    """
    views: list[View] = []
    damaged, first = [], None
    for one in _runs_in(Path(folder)):
        try:
            view = _verified_view(one, own=one == Path(folder))
        except RecordError as fault:
            first = first or fault
            damaged.append(DamagedRun(one.resolve().name, str(fault)))
            continue
        views += [] if view is None else [view]
    if not views and first is not None:
        raise first
    return tuple(views) or (read_view(Record.open(folder)),), tuple(damaged)


def _runs_in(folder: Path) -> list[Path]:
    """The folder itself, if it holds a record or there is none under it, and those under it."""
    below = sorted(path.parent for path in folder.glob(f"*/{RECORD_FILE}") if path.is_file())
    return [folder, *below] if not below or (folder / RECORD_FILE).exists() else below


def _verified_view(folder: Path, *, own: bool) -> View | None:
    """Read a run whose arrays are all as they were stored; None for a pool under the folder."""
    record = Record.open(folder)
    if record.question == SHADOW_POOL and not own:
        return None
    record.verify()
    return read_view(record)
