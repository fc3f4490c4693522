"""The ledger: which member used which canary at which step, and how many times."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, require

COLUMNS = ("member", "canary", "step", "uses")


def checked_rows(ledger: Mapping[str, ArrayLike]) -> list[tuple[int, int, int, int]]:
    """The ledger as rows, rows of the same member, canary and step added up.

    Raises:
        InvalidInput: A column is missing or too many, not whole numbers, of another length,
            negative, or a count of uses is not positive.
    """
    if set(ledger) != set(COLUMNS):
        raise InvalidInput(f"ledger has columns {sorted(ledger)}; needs {', '.join(COLUMNS)}.")
    columns = {name: np.asarray(ledger[name]) for name in COLUMNS}
    lengths = {name: column.shape for name, column in columns.items()}
    faults = [
        f"ledger column {name} has shape {column.shape}, {columns['member'].shape} expected"
        for name, column in columns.items()
        if column.ndim != 1 or lengths[name] != lengths["member"]
    ]
    for name, column in columns.items():
        smallest = 1 if name == "uses" else 0
        if column.size and column.dtype.kind not in "iu":
            faults.append(f"ledger column {name} has dtype {column.dtype}, whole numbers expected")
        elif column.size and column.min() < smallest:
            faults.append(f"ledger column {name} holds {column.min()}, at least {smallest} allowed")
    require(faults)
    total: dict[tuple[int, int, int], int] = {}
    for member, canary, step, uses in zip(*(c.tolist() for c in columns.values()), strict=True):
        total[member, canary, step] = total.get((member, canary, step), 0) + uses
    return [(*key, uses) for key, uses in sorted(total.items())]


def read(connection: sqlite3.Connection) -> dict[str, NDArray[np.int64]]:
    """The ledger as columns of whole numbers, ordered by member, canary and step."""
    rows = connection.execute(
        "SELECT member, canary, step, uses FROM ledger ORDER BY member, canary, step"
    ).fetchall()
    table = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))
    return {name: table[:, i].copy() for i, name in enumerate(COLUMNS)}


def summary(connection: sqlite3.Connection) -> dict[str, Any] | None:
    """Counts and first and last step of the whole ledger, or None where it is empty."""
    names = ("members", "canaries", "uses", "first_step", "last_step")
    row = connection.execute(
        "SELECT count(DISTINCT member), count(DISTINCT canary), sum(uses), min(step), max(step)"
        " FROM ledger"
    ).fetchone()
    return None if row[0] == 0 else dict(zip(names, row, strict=True))
