"""One writer per run: an advisory lock on ``record.lock``.

The operating system drops the lock when its holder ends, however it ends, so a killed run can be
gone on with at once and no stale lock is ever left. Where the system has no ``flock`` (Windows)
nothing is locked, and SQLite's own locks alone keep the record whole.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import weakref
from pathlib import Path

from remnant.errors import RecordError, is_disk_full, write_error

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "record.lock"
# Neither follow a link to another file, which would be overwritten, nor wait for a FIFO's reader.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TRIES = 5
_PAUSE_SECONDS = 0.05


class WriterLock:
    """The right to write to a run, held until ``release`` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._close = weakref.finalize(self, os.close, descriptor)

    @classmethod
    def acquire(cls, folder: Path) -> WriterLock:
        """Take the lock of a run's folder.

        Raises:
            RecordError: Another process (or this one) holds it, it is a link or no plain file, or
                the folder cannot be written.
        """
        path = folder / LOCK_FILE
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN_FILE, 0o644)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise _odd(path)
        except OSError as error:
            if isinstance(error, RecordError):
                raise
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise _odd(path) from error
            raise write_error(folder, error) from error
        lock = cls(descriptor)
        try:
            if not _taken(descriptor):
                raise _busy(folder, descriptor)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        except OSError as error:
            lock.release()
            if isinstance(error, RecordError):
                raise
            if is_disk_full(error):
                raise write_error(path, error) from error
            raise RecordError(f"{path} cannot be locked: {error.strerror}.") from error
        return lock

    def release(self) -> None:
        """Give the lock back; doing so twice is harmless."""
        self._close()


def being_written(folder: Path) -> bool:
    """Whether some process holds the lock of this run now."""
    if fcntl is None:  # pragma: no cover - Windows
        return False
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | _PLAIN_FILE)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(descriptor)
    return False


def _taken(descriptor: int) -> bool:
    if fcntl is None:  # pragma: no cover - Windows
        return True
    # A few tries: `being_written` takes the lock for a moment to look at it.
    for attempt in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            if attempt + 1 < _TRIES:
                time.sleep(_PAUSE_SECONDS)
        else:
            return True
    return False


def _odd(path: Path) -> RecordError:
    return RecordError(
        f"{path} is a link, or no plain file.", hint="Remove it, or choose another --out folder."
    )


def _busy(folder: Path, descriptor: int) -> RecordError:
    holder = os.read(descriptor, 20).decode("ascii", "replace")
    if holder == str(os.getpid()):
        return RecordError(
            f"{folder} is being written by this very process.", hint="Close the other Record first."
        )
    named = f" ({holder})" if holder.isdigit() else ""
    return RecordError(
        f"{folder} is being written by another process{named}.",
        hint="Wait for it to end, or choose another --out folder.",
    )
