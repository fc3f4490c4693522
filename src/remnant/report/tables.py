"""Tables as CSV and as plain rows for JSON, with the values as they were measured."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from remnant.report.blocks import Column, Table
from remnant.report.numerals import plain_spaces

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_PARTS = (("low", "low"), ("high", "high"), ("at_least", "at least"))


def plain_rows(table: Table) -> list[dict[str, Any]]:
    """Return all rows of a table, each as plain data by column name.

    A value with ``low`` and ``high`` (or ``at_least``) becomes a column a part. A value that is not
    plain data is the text that the page shows. Every row has the same names, in the same order.
    """
    columns = table.shown()
    names = _unique([f"{c.group}: {c.name}" if c.group else c.name for c in columns])
    rows = [
        {
            key: value
            for name, column in zip(names, columns, strict=True)
            for key, value in _parts(name, column, row)
        }
        for row in table.rows
    ]
    # A part may be there in some rows only: it then stands after the value that it belongs to.
    order = {name: i for i, name in enumerate(names)}
    keys = {key: None for row in rows for key in row} or dict.fromkeys(names)
    ordered = sorted(keys, key=lambda key: (order[_owner(key, order)], key not in order))
    return [{key: row.get(key) for key in ordered} for row in rows]


def json_text(table: Table) -> str:
    """Return the rows of a table as JSON."""
    return json.dumps(plain_rows(table), ensure_ascii=False, allow_nan=False, indent=1)


def csv_text(table: Table) -> str:
    """Return the rows of a table as CSV, with a row of names.

    Text that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    rows = plain_rows(table)
    names = list(rows[0]) if rows else [column.name for column in table.shown()]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([_csv_cell(name) for name in names])
    writer.writerows([[_csv_cell(row[name]) for name in names] for row in rows])
    return out.getvalue()


def sort_value(column: Column, row: Any) -> str:
    """Return what a row is sorted by in a column: a number where there is one, else text."""
    value = column.of(row)
    value = getattr(value, "value", value)
    if isinstance(value, list | tuple) and value:
        value = value[0]
    value = _scalar(value)
    if value is None or isinstance(value, int | float | str):
        return "" if value is None else str(value)
    return column.cell(row).main


def _parts(name: str, column: Column, row: Any) -> Iterator[tuple[str, Any]]:
    value = column.of(row)
    if not hasattr(value, "value"):
        yield name, _plain(value, column, row)
        return
    yield name, _plain(value.value, column, row)
    for attribute, part in _PARTS:
        if hasattr(value, attribute):
            yield f"{name}, {part}", _plain(getattr(value, attribute), column, row)


def _plain(value: Any, column: Column, row: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(inner, column, row) for inner in value]
    value = _scalar(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    cell = column.cell(row)
    return plain_spaces(f"{cell.main} {cell.small}".strip())


def _scalar(value: Any) -> Any:
    """A number of NumPy as Python's own; one that is not finite as its name."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list):
        value = "; ".join("" if inner is None else str(inner) for inner in value)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    risky = value.lstrip().startswith(_FORMULA) and not _NUMBER.fullmatch(value.strip())
    return f"'{value}" if risky or value.startswith(("\t", "\r", "\n")) else value


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _owner(key: str, names: dict[str, int]) -> str:
    """The column that a key is of: itself, or the one whose part it is."""
    return key if key in names else key.rpartition(", ")[0]
