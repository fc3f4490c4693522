"""A run's folder: where a record may be made, what may lie in it, and its one writer.

The lock is an advisory one on ``record.lock``. The operating system drops it when its holder ends,
however it ends, so a killed run can be gone on with at once and no stale lock is ever left. Where
the system has no ``flock`` (Windows) nothing is locked, and SQLite's own locks alone keep the
record whole.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import weakref
from contextlib import suppress
from pathlib import Path

from remnant.errors import RecordError, is_disk_full, write_error

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

RECORD_FILE = "record.sqlite"
ARRAYS_FOLDER = "arrays"
REPORT_FILE = "report.html"
LOCK_FILE = "record.lock"

_OURS = ("record.sqlite.tmp*", "checkpoint*", ".tmp??????")
_TEMPORARY = re.compile(r"\.tmp[A-Za-z0-9]{6}|\..+\.tmp-\d+|checkpoint.*\.tmp")
# Neither follow a link to another file, which would be overwritten, nor wait for a FIFO's reader.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_TRIES = 5
_PAUSE_SECONDS = 0.05


def prepare(folder: Path) -> list[Path]:
    """Make the folder, or check that an existing one holds no files of another program.

    What an interrupted start of ours may leave is tolerated: a temporary database, the lock,
    ``arrays/``, ``checkpoint*``, ``.tmp??????`` of safetensors and ``report.html``. So are folders
    that hold a record, whose report the folder's own covers.

    Returns:
        The folders made here, deepest first, for ``undo``.

    Raises:
        RecordError: It is a file, cannot be made, already holds a run, or holds other files.
    """
    if folder.exists() and not folder.is_dir():
        raise RecordError(f"{folder} is a file, not a folder.", hint="Choose another --out folder.")
    made: list[Path] = []
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            with suppress(FileExistsError):  # another process was quicker
                path.mkdir()
                made.insert(0, path)
        contents = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        undo(made)
        raise RecordError(f"{folder} cannot be used: {error.strerror}.") from error
    if RECORD_FILE in contents:
        raise RecordError(f"{folder} already holds a run.", hint="Choose another --out folder.")
    foreign = [name for name in contents if not _is_ours(folder / name)]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise RecordError(
            f"{folder} is not empty: it holds {foreign[0]}{more} but no record.",
            hint="Choose an empty --out folder.",
        )
    return made


def undo(made: list[Path]) -> None:
    """Remove the folders that ``prepare`` made, as far as they are empty."""
    for path in made:
        with suppress(OSError):
            path.rmdir()


def clear_leftovers(folder: Path) -> None:
    """Remove the temporary files that a killed process left; the run's lock must be held.

    These are half-written arrays, checkpoints and reports, and ``.tmp??????`` of safetensors, in
    the folder, in ``arrays/`` and in the folders of saved models. Other runs below the folder have
    locks of their own; theirs are left alone.
    """
    others = {path.parent for name in (LOCK_FILE, RECORD_FILE) for path in folder.glob(f"*/{name}")}
    for pattern in ("*", "*/*", "*/*/*"):
        for path in folder.glob(pattern):
            if not others.isdisjoint(path.parents):
                continue
            if _TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):
                    path.unlink()


def remove_checkpoints(folder: Path) -> None:
    """Remove the checkpoints of trainings whose results are stored."""
    for path in folder.glob("checkpoint*"):
        path.unlink(missing_ok=True)


def record_file(folder: Path) -> Path:
    """The path of an existing run's database.

    Raises:
        RecordError: There is no such folder, or no record in it.
    """
    path = folder / RECORD_FILE
    if not folder.exists():
        raise RecordError(f"{folder} does not exist.", hint="Pass the folder of a run.")
    if not folder.is_dir():
        raise RecordError(f"{folder} is a file, not a folder.", hint="Pass the folder of a run.")
    if not path.is_file():
        raise RecordError(
            f"{folder} holds no record: {RECORD_FILE} is missing.",
            hint="Pass the folder of a run.",
        )
    return path


def _is_ours(path: Path) -> bool:
    named = path.name in (LOCK_FILE, ARRAYS_FOLDER, REPORT_FILE)
    return named or any(path.match(name) for name in _OURS) or (path / RECORD_FILE).is_file()


def runs_covered(folder: str | Path) -> list[Path]:
    """The folders of the runs that ``remnant report`` and ``remnant show`` cover.

    The folder itself, where it holds a record or none is directly under it, and then those directly
    under it, by name.
    """
    own = Path(folder)
    below = sorted(path.parent for path in own.glob(f"*/{RECORD_FILE}") if path.is_file())
    return [own, *below] if not below or (own / RECORD_FILE).exists() else below


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
