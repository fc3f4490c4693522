"""``--out`` of a prediction: one row a sample, as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remnant.cli.planting import refuse_odd
from remnant.errors import InvalidInput

if TYPE_CHECKING:
    from remnant.cli.predict_told import Told

FIRST = "index,label,predicted,loss,logit_gap,psmi"
_OWNER_ONLY = 0o600  # who is at risk is nobody else's business


def check_out(path: Path, *, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse a file that cannot or should not be written, before anything is computed.

    Raises:
        InvalidInput: Neither CSV nor JSON, an input, no folder for it, or another file is there and
            ``force`` is not set.
    """
    if path.suffix not in (".csv", ".json"):
        raise InvalidInput(f"--out {path} is neither a .csv nor a .json file.")
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"--out {path} is not the path of a file in a folder that exists.")
    refuse_odd("--out", path)
    if path.resolve() in {one.resolve() for one in inputs}:
        raise InvalidInput(f"--out {path} is one of the inputs.", hint="Choose another file.")
    if force or not path.is_file():
        return
    try:
        with path.open("rb") as file:
            begin = file.read(256)
    except OSError as fault:
        raise InvalidInput(f"--out {path} cannot be read: {fault.strerror}.") from None
    ours = begin.startswith(FIRST.encode()) or b'"remnant": "predict"' in begin
    if begin and not ours:
        raise InvalidInput(
            f"--out {path} is there already, and is no prediction.",
            hint="Name another file, or overwrite it with --force.",
        )


def write_out(path: Path, told: Told) -> None:
    """Write the rows; the file appears whole or not at all, and only its owner can read it.

    Raises:
        InvalidInput: It cannot be written.
    """
    from remnant.canaries.whole_file import writing_whole
    from remnant.cli.naming import naming
    from remnant.cli.predict_told import predict_fields, sample_rows

    rows = sample_rows(told)
    if path.suffix == ".csv":
        text = io.StringIO(newline="")
        table = csv.writer(text, lineterminator="\n")
        table.writerow(rows[0])
        table.writerows([_cell(value) for value in row.values()] for row in rows)
        written = text.getvalue()
    else:
        fields = {"remnant": "predict", **predict_fields(told, path), "samples": rows}
        written = json.dumps(fields, indent=1, allow_nan=False) + "\n"
    with naming("--out", path), writing_whole(path, mode=_OWNER_ONLY) as file:
        file.write(written.encode())


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return format(value, ".6g") if isinstance(value, float) else value
