"""Short-lived connections to ``record.sqlite``, with SQLite's faults in our words.

Every operation opens its own connection and closes it, in SQLite's rollback-journal mode: between
operations the record is one plain file, and a kill at any moment leaves the last transaction whole.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from remnant.errors import RecordError, disk_full, write_error
from remnant.records.schema import lay_out

_WAIT_SECONDS = 10.0
_CANNOT = ("unable to open", "readonly", "read-only", "disk i/o")


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
