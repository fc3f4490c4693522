"""``record.sqlite``: its tables and the JSON in them, digests of rows, the ledger, connections.

``PRAGMA user_version`` holds the version of the tables and ``PRAGMA application_id`` marks the file
as ours, so that any SQLite tool can tell what it is looking at. So that damage and careless edits
are noticed, the table ``digests`` has a SHA-256 of each row of run, attempts, arrays and results,
and of the ledger as a whole; they protect nothing from whoever computes them again.

Every operation opens its own connection and closes it, in SQLite's rollback-journal mode: between
operations the record is one plain file, and a kill at any moment leaves the last transaction whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, RecordError, disk_full, require, write_error

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
LEDGER_COLUMNS = ("member", "canary", "step", "uses")
_KEYS = {"run": "id", "attempts": "attempt", "arrays": "name", "results": "name"}
_LEDGER = "ledger"
_LOST = "Restore the folder from a copy, or remove it and measure again."
_WAIT_SECONDS = 10.0
_CANNOT = ("unable to open", "readonly", "read-only", "disk i/o")


# -- connections ---------------------------------------------------------------------------


def _in_our_words(error: Exception, path: Path) -> RecordError:
    text = str(error)
    if "locked" in text:
        return RecordError(f"{path} is being written by another process.", hint="Try again later.")
    if "is full" in text:
        return disk_full(path)
    if any(sign in text.lower() for sign in _CANNOT):
        return RecordError(f"{path} cannot be read or written: {text}.")
    return RecordError(f"{path} is damaged: {text}.")


@contextmanager
def _connection(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        uri = f"{path.resolve().as_uri()}?mode={mode}"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
        ) as connection:
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _in_our_words(error, path) from error


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to read with; works in a folder we may not write to."""
    # A process killed inside a transaction leaves a journal that only a writable
    # connection may roll back, so that is what a reader takes when it can.
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    with _connection(path, mode) as connection:
        yield connection


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection inside one transaction: all of it is kept, or none."""
    with _connection(path, "rw") as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def create(
    path: Path, fill: Callable[[sqlite3.Connection], None], *, mode: int | None = None
) -> None:
    """Build the database under a temporary name, fill it, then give it its name at once.

    Args:
        path: Of the database.
        fill: Fills it, within a transaction.
        mode: Of the file, from its first byte on; SQLite gives it to its journals too.
    """
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    try:
        for leftover in path.parent.glob(f"{path.name}.tmp*"):
            leftover.unlink()
        if mode is not None:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        with _connection(temporary, "rwc") as connection:
            lay_out(connection)
            connection.execute("BEGIN IMMEDIATE")
            fill(connection)
            connection.execute("COMMIT")
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, RecordError):
            raise
        raise write_error(path, error) from error
    finally:
        for leftover in path.parent.glob(f"{temporary.name}*"):
            leftover.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename inside the folder survive a loss of power, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- tables --------------------------------------------------------------------------------


def lay_out(connection: sqlite3.Connection) -> None:
    """Write the tables and the version into an empty database."""
    connection.executescript(DDL)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    seal_ledger(connection)


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
        _check_digests(connection, path)
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


# -- JSON in a column: NaN and infinities are refused, since JSON has neither ------------


def plain(value: Any, *, what: str) -> Any:
    """A copy of the value made of dict, list, str, int, float, bool and None.

    Args:
        value: Mappings with string keys, sequences, NumPy arrays and scalars, plain values.
        what: What the value is called in the error.

    Raises:
        InvalidInput: Lists every place that holds NaN, an infinity, or something JSON has no
            word for.

    Example:
        >>> plain({"lags": np.arange(3), "fpr": np.float64(0.1)}, what="the curve")
        {'lags': [0, 1, 2], 'fpr': 0.1}
    """
    faults: list[str] = []
    copy = _plain(value, what, faults)
    require(
        faults,
        hint="Leave out what was not measured, or record the reason with put_absent.",
    )
    return copy


def to_json(value: Mapping[str, Any], *, what: str) -> str:
    """The value as strict JSON text, in the order given."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} is a {type(value).__name__}, not a dict.")
    return json.dumps(plain(value, what=what), allow_nan=False, ensure_ascii=False)


def from_json(text: str, path: Path) -> dict[str, Any]:
    """The JSON object the database holds, or a RecordError naming the file."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is damaged: it holds broken JSON.") from error
    if not isinstance(value, dict):
        raise RecordError(f"{path} is damaged: it holds JSON that is no object.")
    return value


def _plain(value: Any, where: str, faults: list[str]) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {
            _text(key, f"a key of {where}", faults): _plain(item, f"{where}.{key}", faults)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]", faults) for i, item in enumerate(value)]
    if isinstance(value, str):
        return _text(value, where, faults)
    if isinstance(value, float):
        if not math.isfinite(value):
            faults.append(f"{where} is {value}")
        return float(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    faults.append(f"{where} is a {type(value).__name__}, which JSON has no word for")
    return None


def _text(value: Any, where: str, faults: list[str]) -> str:
    if not isinstance(value, str):
        faults.append(f"{where} is {value!r}, no text")
        return ""
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        faults.append(f"{where} is not valid Unicode text")
    return str(value)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


# -- digests of rows -----------------------------------------------------------------------


def seal(connection: sqlite3.Connection, table: str, key: str | int) -> None:
    """Store the digest of a row that was just written; records of version 1 have none."""
    if _has_digests(connection):
        rows = connection.execute(f"SELECT * FROM {table} WHERE {_KEYS[table]} = ?", (key,))
        _store(connection, table, str(key), _of_rows(rows))


def seal_ledger(connection: sqlite3.Connection) -> None:
    """Store the digest of the whole ledger; records of version 1 have none."""
    if _has_digests(connection):
        _store(connection, _LEDGER, "", _of_columns(read_ledger(connection)))


def _check_digests(connection: sqlite3.Connection, path: Path) -> None:
    """Compare every row but those of the ledger with its digest.

    Raises:
        RecordError: A row is not as it was written, or one is missing or was added.
    """
    stored = {
        (table, key): digest
        for table, key, digest in connection.execute("SELECT * FROM digests")
        if table != _LEDGER
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
    row = connection.execute("SELECT sha256 FROM digests WHERE place = ?", (_LEDGER,)).fetchone()
    if row is None or row[0] != _of_columns(columns):
        raise _changed(path, "its ledger")


def _has_digests(connection: sqlite3.Connection) -> bool:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version > 1


def _store(connection: sqlite3.Connection, place: str, row: str, digest: str) -> None:
    connection.execute("INSERT OR REPLACE INTO digests VALUES (?, ?, ?)", (place, row, digest))


def _all_rows(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    for table, key in _KEYS.items():
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
    for name in LEDGER_COLUMNS:
        digest.update(columns[name].astype("<i8").tobytes())
    return digest.hexdigest()


def _changed(path: Path, what: str) -> RecordError:
    return RecordError(f"{path} is damaged: {what} is not as it was written.", hint=_LOST)


# -- the ledger: which member used which canary at which step, how many times --------------


def checked_ledger(ledger: Mapping[str, ArrayLike]) -> list[tuple[int, int, int, int]]:
    """The ledger as rows, rows of the same member, canary and step added up.

    Raises:
        InvalidInput: A column is missing or too many, not whole numbers, of another length,
            negative, or a count of uses is not positive.
    """
    if set(ledger) != set(LEDGER_COLUMNS):
        needed = ", ".join(LEDGER_COLUMNS)
        raise InvalidInput(f"ledger has columns {sorted(ledger)}; needs {needed}.")
    columns = {name: np.asarray(ledger[name]) for name in LEDGER_COLUMNS}
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


def read_ledger(connection: sqlite3.Connection) -> dict[str, NDArray[np.int64]]:
    """The ledger as columns of whole numbers, ordered by member, canary and step."""
    rows = connection.execute(
        "SELECT member, canary, step, uses FROM ledger ORDER BY member, canary, step"
    ).fetchall()
    table = np.array(rows, dtype=np.int64).reshape(-1, len(LEDGER_COLUMNS))
    return {name: table[:, i].copy() for i, name in enumerate(LEDGER_COLUMNS)}


def ledger_summary(connection: sqlite3.Connection) -> dict[str, Any] | None:
    """Counts and first and last step of the whole ledger, or None where it is empty."""
    names = ("members", "canaries", "uses", "first_step", "last_step")
    row = connection.execute(
        "SELECT count(DISTINCT member), count(DISTINCT canary), sum(uses), min(step), max(step)"
        " FROM ledger"
    ).fetchone()
    return None if row[0] == 0 else dict(zip(names, row, strict=True))
