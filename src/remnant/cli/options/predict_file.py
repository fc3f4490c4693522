"""``--out`` of a prediction: one row per sample, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.options.out_files import check_inputs, check_old_file, check_place, write_whole
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.studies.prediction.early_measure import EarlyPrediction

FIRST = "index,label,predicted,loss,logit_gap,psmi"


def check_out(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse an output file that cannot or should not be written, before anything is computed.

    Raises:
        InvalidInput: It is neither CSV nor JSON, it is an input, its folder does not exist, or
            another file exists and ``force`` is not set.
    """
    if path.suffix not in (".csv", ".json"):
        raise InvalidInput(f"--out {path} is neither a .csv nor a .json file.")
    check_place("--out", path)
    check_inputs(path, inputs)
    check_old_file(path, _is_prediction, kind="prediction", force=force)


def _is_prediction(old: bytes) -> bool:
    return old.startswith(FIRST.encode()) or b'"remnant": "predict"' in old[:256]


def write_out(path: Path, early: EarlyPrediction) -> None:
    """Write the rows, the whole file or nothing; only its owner can read it.

    Raises:
        InvalidInput: It cannot be written.
    """
    from remnant.records.typed import plain
    from remnant.studies.prediction.early_measure import early_result, sample_rows

    if path.suffix == ".csv":
        written = csv_text(early)
    else:
        rows = sample_rows(early)
        fields = {"remnant": "predict", **plain(early_result(early, out=path)), "samples": rows}
        written = json.dumps(fields, indent=1, allow_nan=False) + "\n"
    write_whole("--out", path, written)


def csv_text(early: EarlyPrediction) -> str:
    """Return the rows as CSV."""
    from remnant.studies.prediction.early_measure import sample_rows

    rows = sample_rows(early)
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(rows[0])
    table.writerows([_cell(value) for value in row.values()] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return format(value, ".6g") if isinstance(value, float) else value
