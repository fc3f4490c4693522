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
from remnant.report.exposure_reading import read_exposure
from remnant.report.exposure_view import ExposureView
from remnant.report.forgetting_view import ForgettingView, read_forgetting
from remnant.report.one_run_view import OneRunView, read_one_run
from remnant.report.run_view import NotMeasured
from remnant.report.text_forgetting_view import TextForgettingView, read_text_forgetting

__all__ = ["NotMeasured", "View", "read_view", "read_views"]

View = ForgettingView | ExposureView | OneRunView | TextForgettingView

_READERS: dict[str, Callable[[Record], View]] = {
    "forgetting": read_forgetting,
    "exposure": read_exposure,
    "one-run": read_one_run,
    "text-forgetting": read_text_forgetting,
}


def read_view(record: Record) -> View:
    """Read a record into the view of its question.

    Raises:
        RecordError: The question is not one of ours, or a result is there but not in the form it
            should have.
    """
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

    Raises:
        RecordError: There is no run at all, or one of them cannot be read.
    """
    folder = Path(folder)
    below = sorted(path.parent for path in folder.glob(f"*/{RECORD_FILE}") if path.is_file())
    # Without any run the folder itself is opened, for the error that it gives.
    own = [folder] if not below or (folder / RECORD_FILE).exists() else []
    return tuple(read_view(Record.open(one)) for one in [*own, *below])
