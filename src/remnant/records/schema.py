"""The tables of ``record.sqlite``, and the version that says how to read them.

``PRAGMA user_version`` holds the version and ``PRAGMA application_id`` marks the file as ours, so
that any SQLite tool can tell what it is looking at.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from remnant.errors import RecordError
from remnant.records import digests

SCHEMA_VERSION = 2  # version 1 had no digests
APPLICATION_ID = 0x524D4E54  # "RMNT"

DDL = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    question TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'complete')),
    plan_fingerprint TEXT NOT NULL,
    data_fingerprint TEXT NOT NULL,
    plan TEXT NOT NULL,            -- JSON: changes numbers
    execution TEXT NOT NULL,       -- JSON: may not change numbers
    started TEXT NOT NULL,         -- UTC, ISO 8601
    finished TEXT                  -- UTC, ISO 8601; NULL while running
);
CREATE TABLE attempts (            -- one row per process that wrote: the first, then resumptions
    attempt INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    provenance TEXT NOT NULL       -- JSON
);
CREATE TABLE arrays (
    name TEXT PRIMARY KEY,
    file TEXT NOT NULL UNIQUE,     -- inside arrays/
    dtype TEXT NOT NULL,           -- NumPy's spelling, such as <f8
    shape TEXT NOT NULL,           -- JSON list
    bytes INTEGER NOT NULL,        -- of the file
    sha256 TEXT NOT NULL           -- of the file
);
CREATE TABLE results (
    name TEXT PRIMARY KEY,
    value TEXT,                    -- JSON, or NULL where it was not measured
    absent TEXT,                   -- why it was not measured
    CHECK ((value IS NULL) <> (absent IS NULL))
);
CREATE TABLE ledger (              -- when each canary was used, by whom, how many times
    member INTEGER NOT NULL,
    canary INTEGER NOT NULL,
    step INTEGER NOT NULL,
    uses INTEGER NOT NULL CHECK (uses > 0),
    PRIMARY KEY (member, canary, step)
) WITHOUT ROWID;
CREATE TABLE digests (             -- SHA-256 of each row, and of the ledger as a whole
    place TEXT NOT NULL,           -- the table
    row TEXT NOT NULL,             -- its key; empty for the ledger
    sha256 TEXT NOT NULL,
    PRIMARY KEY (place, row)
) WITHOUT ROWID;
"""

_TABLES = frozenset({"run", "attempts", "arrays", "results", "ledger"})
_DIGESTS = "digests"
_LARGEST = 2**53  # a whole number of the ledger above it is damage, and no float could hold it


def lay_out(connection: sqlite3.Connection) -> None:
    """Write the tables and the version into an empty database."""
    connection.executescript(DDL)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    digests.seal_ledger(connection)


def check(connection: sqlite3.Connection, path: Path) -> int:
    """See that the database is ours, readable by this version, and as it was written.

    The ledger is only compared with its digest where it is read.

    Returns:
        The version of its tables.

    Raises:
        RecordError: It is another program's file, a newer Remnant's, or damaged.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise RecordError(f"{path} is not a Remnant record.")
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"{path} was written by a newer Remnant "
            f"(schema {version}, this one reads up to {SCHEMA_VERSION}): upgrade."
        )
    faults = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
    if faults != ["ok"]:
        raise RecordError(f"{path} is damaged: {'; '.join(faults)}.")
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if (version == 1) == (_DIGESTS in tables) or version < 1:
        raise RecordError(f"{path} is damaged: its version and its tables do not agree.")
    if missing := sorted(_TABLES - tables):
        raise RecordError(f"{path} is damaged: it has no table {', '.join(missing)}.")
    if connection.execute("SELECT count(*) FROM run").fetchone()[0] != 1:
        raise RecordError(f"{path} is damaged: the table run has no row.")
    _check_columns(connection, path)
    if version > 1:
        digests.check(connection, path)
    return int(version)


def _check_columns(connection: sqlite3.Connection, path: Path) -> None:
    """See that every value has the type of its column, which SQLite itself does not enforce."""
    faults = []
    for table in sorted(_TABLES):
        for _, column, kind, required, _, key in connection.execute(f"PRAGMA table_info({table})"):
            allowed = [kind.lower()] + ([] if required or key else ["null"])
            listed = ", ".join(f"'{name}'" for name in allowed)
            wrong = f"typeof({column}) NOT IN ({listed})"
            if table == "ledger":
                wrong += f" OR {column} NOT BETWEEN 0 AND {_LARGEST}"
            if connection.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchone():
                faults.append(f"{table}.{column}")
    if faults:
        raise RecordError(f"{path} is damaged: {', '.join(faults)} holds a value of another type.")
