"""Scores that were computed elsewhere, from arrays, files and data frames."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import NO_ARRAYS, InvalidInput, import_failure

KINDS = (".csv", ".npy", ".parquet", ".tsv")


def read_scores(source: Any, column: str | None = None) -> Any:
    """Return scores, one number a record, from a file, a data frame or an array.

    Args:
        source: A path that ends in ``.csv``, ``.tsv``, ``.parquet`` or ``.npy``; a data frame or a
            column of pandas; or anything that NumPy reads, which is returned as it is.
        column: Of a table, the column with the scores; not needed where it has only one.

    Raises:
        InvalidInput: The file cannot be read, two columns have one name, the only column has no
            name, or the column is missing or holds no numbers.
        MissingExtra: A Parquet file, and pyarrow is not installed.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "seen.csv").write_text("row,score\\n1,0.5\\n2,-1.25\\n")
        >>> read_scores(folder / "seen.csv", column="score")
        array([ 0.5 , -1.25])
        >>> read_scores([0.5, -1.25])
        [0.5, -1.25]
    """
    if isinstance(source, str | Path):
        path = Path(source)
        return _array(path) if path.suffix == ".npy" else _picked(_table(path), column, str(path))
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return _picked(_frame(source), column, "the data frame")
    if column is not None:
        raise InvalidInput(f"column={column!r} is for tables, and this is an array.")
    return source


def read_curve(source: Any) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of a forgetting curve from a long table: one row a score.

    Args:
        source: A file or a data frame, as for ``read_scores``, with the columns ``lag``,
            ``seen`` (1 or 0, true or false) and ``score``, and ``trial`` where there are several.

    Returns:
        ``lags``, ``seen_scores`` and ``unseen_scores``, as ``forgetting_curve`` takes them. The
        scores of a lag and trial are in the order of their rows.

    Raises:
        InvalidInput: A column is missing, or lags and trials have different numbers of scores.

    Example:
        >>> import tempfile
        >>> rows = ["lag,seen,score", "0,1,3", "0,0,0", "10,1,2", "10,0,1"]
        >>> path = Path(tempfile.mkdtemp()) / "scores.csv"
        >>> _ = path.write_text("\\n".join(rows))
        >>> curve = read_curve(path)
        >>> curve["lags"], curve["seen_scores"].shape, curve["unseen_scores"].tolist()
        (array([ 0., 10.]), (2, 1, 1), [[[0.0]], [[1.0]]])
    """
    is_file = isinstance(source, str | Path)
    table = _table(Path(source)) if is_file else _frame(source)
    named = str(source) if is_file else "the data frame"
    lag, score = _picked(table, "lag", named), _picked(table, "score", named)
    trial = _picked(table, "trial", named) if "trial" in table else np.zeros(len(lag))
    truth = [str(value).strip().lower() for value in table.get("seen", [])]
    if set(truth) - {"0", "1", "0.0", "1.0", "true", "false"} or not truth:
        raise InvalidInput(f"{named} has no column seen of 0 and 1, or true and false.")
    seen = np.array([value in ("1", "1.0", "true") for value in truth])
    lags, trials = np.unique(lag), np.unique(trial)
    sides: dict[str, NDArray[np.float64]] = {"lags": lags}
    for name, side in (("seen_scores", seen), ("unseen_scores", ~seen)):
        cells = [[score[side & (lag == at) & (trial == of)] for of in trials] for at in lags]
        counts = sorted({len(cell) for row in cells for cell in row})
        if len(counts) != 1 or not counts[0]:
            raise InvalidInput(
                f"{named} has between {counts[0]} and {counts[-1]} {name.replace('_', ' ')} for a "
                "lag and trial; each needs the same number, at least one."
            )
        sides[name] = np.array(cells, dtype=np.float64)
    return sides


def _array(path: Path) -> NDArray[Any]:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except NO_ARRAYS as fault:
        raise InvalidInput(f"{path} is not a readable npy file: {fault}.") from None


def _frame(frame: Any) -> dict[str, Any]:
    """Return the columns of a data frame by their names."""
    names = [str(name) for name in frame.columns]
    _check_names(names, "the data frame")
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def _check_names(names: Sequence[str], named: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(
            f"{named} has several columns {twice!r}.", hint="Give each column a name of its own."
        )


def _table(path: Path) -> dict[str, Any]:
    """Read the columns of a file by their names."""
    if path.suffix not in KINDS:
        raise InvalidInput(f"{path} does not end in {', '.join(KINDS)}.")
    if not path.is_file():
        raise InvalidInput(f"{path} is not a file.")
    if path.suffix == ".parquet":
        return _parquet(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.reader(lines, delimiter="\t" if path.suffix == ".tsv" else ","))
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidInput(f"{path} cannot be read as CSV: {fault}.") from None
    head, *body = [row for row in rows if row] or [[]]
    _check_names(head, str(path))
    if len(head) == 1 and _is_number(head[0]):
        raise InvalidInput(
            f"{path} begins with the number {head[0]} and not with the name of its column.",
            hint="Put a header above the scores.",
        )
    uneven = next((at for at, row in enumerate(body, 2) if len(row) != len(head)), None)
    if uneven is not None:
        raise InvalidInput(f"{path}, row {uneven}, has another number of fields than the header.")
    return {name: [row[at] for row in body] for at, name in enumerate(head)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> dict[str, Any]:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table
    except ImportError as fault:
        raise import_failure(
            fault, library="pyarrow", message="A Parquet file needs pyarrow.", extra="notebook"
        ) from fault
    try:
        table = read_table(path)
        return {name: table[name].to_pylist() for name in table.column_names}
    except (OSError, ArrowException) as fault:
        raise InvalidInput(f"{path} cannot be read as Parquet: {fault}.") from None


def _picked(table: dict[str, Any], column: str | None, named: str) -> NDArray[np.float64]:
    """Return a column as numbers."""
    if column is None and len(table) == 1:
        column = next(iter(table))
    if column is None or column not in table:
        said = "several columns" if column is None else f"no column {column!r}"
        raise InvalidInput(
            f"{named} has {said}: {', '.join(table) or 'it is empty'}.",
            hint="Name the column with the scores.",
        )
    values = np.asarray(table[column])
    try:
        if values.dtype.kind not in "cmM":  # complex numbers and times have no order of their own
            return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise InvalidInput(f"Column {column!r} of {named} does not hold only numbers.")
