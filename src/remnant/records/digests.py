"""Digests of the rows of ``record.sqlite``, so that damage and careless edits are noticed.

Each row of run, attempts, arrays and results has a SHA-256 in the table ``digests``, and the ledger
has one as a whole. They protect nothing from whoever computes them again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from remnant.errors import RecordError
from remnant.records import ledger

KEYS = {"run": "id", "attempts": "attempt", "arrays": "name", "results": "name"}
LEDGER = "ledger"
_LOST = "Restore the folder from a copy, or remove it and measure again."


def seal(connection: sqlite3.Connection, table: str, key: str | int) -> None:
    """Store the digest of a row that was just written; records of version 1 have none."""
    if _has_digests(connection):
        rows = connection.execute(f"SELECT * FROM {table} WHERE {KEYS[table]} = ?", (key,))
        _store(connection, table, str(key), _of_rows(rows))


def seal_ledger(connection: sqlite3.Connection) -> None:
    """Store the digest of the whole ledger; records of version 1 have none."""
    if _has_digests(connection):
        _store(connection, LEDGER, "", _of_columns(ledger.read(connection)))


def check(connection: sqlite3.Connection, path: Path) -> None:
    """Compare every row but those of the ledger with its digest.

    Raises:
        RecordError: A row is not as it was written, or one is missing or was added.
    """
    stored = {
        (table, key): digest
        for table, key, digest in connection.execute("SELECT * FROM digests")
        if table != LEDGER
    }
    found = {(table, key): digest for table, key, digest in _all_rows(connection)}
    for table, key in sorted(stored.keys() | found.keys()):
        if stored.get((table, key)) != found.get((table, key)):
            raise _changed(path, f"the row {key[:40]!r} of the table {table[:40]}")


def check_ledger(
    connection: sqlite3.Connection, columns: Mapping[str, NDArray[np.int64]], path: Path
) -> None:
    """Compare the ledger with its digest; records of version 1 have none.

    Raises:
        RecordError: It is not as it was written.
    """
    if not _has_digests(connection):
        return
    row = connection.execute("SELECT sha256 FROM digests WHERE place = ?", (LEDGER,)).fetchone()
    if row is None or row[0] != _of_columns(columns):
        raise _changed(path, "its ledger")


def _has_digests(connection: sqlite3.Connection) -> bool:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version > 1


def _store(connection: sqlite3.Connection, place: str, row: str, digest: str) -> None:
    connection.execute("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", (place, row, digest))


def _all_rows(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    for table, key in KEYS.items():
        cursor = connection.execute(f"SELECT * FROM {table}")
        at = [column[0] for column in cursor.description].index(key)
        for row in cursor:
            yield table, str(row[at]), _of_rows([row])


def _of_rows(rows: Iterable[tuple[Any, ...]]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def _of_columns(columns: Mapping[str, NDArray[np.int64]]) -> str:
    digest = hashlib.sha256()
    for name in ledger.COLUMNS:
        digest.update(columns[name].astype("<i8").tobytes())
    return digest.hexdigest()


def _changed(path: Path, what: str) -> RecordError:
    return RecordError(f"{path} is damaged: {what} is not as it was written.", hint=_LOST)
