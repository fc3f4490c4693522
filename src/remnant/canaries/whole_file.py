"""A file that appears whole or not at all, and what a killed process left of one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from remnant.errors import InvalidInput

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".remnant-"
_TRIES = 100
_UNFINISHED = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")


@contextmanager
def writing_whole(path: Path, *, mode: int) -> Iterator[BinaryIO]:
    """Write a new file beside ``path``, and let it take that place once it is complete.

    Guarantees:
        * An error or a kill while writing leaves what was at ``path`` as it was.
        * Nobody but the owner can read the file before it is complete; then it has ``mode``.
        * What a killed process left beside ``path`` is removed first.

    Raises:
        InvalidInput: It cannot be written there.
    """
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a file.")
    clear_leftovers(path.parent)
    try:
        handle, temporary = _locked(lambda: tempfile.mkstemp(prefix=_PREFIX, dir=path.parent))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
    try:
        # A second descriptor of the same file holds the lock until the file is in its place.
        with _closed(os.dup(handle)), open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.chmod(temporary, mode)
            os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
        raise


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Make a folder beside ``path`` for unfinished files, and remove it with them on leaving.

    Guarantees:
        * Nobody but the owner can look into it.
        * What a killed process left beside ``path`` is removed first.

    Raises:
        OSError: It cannot be made.
    """
    clear_leftovers(path.parent)
    descriptor, folder = _locked(lambda: _new_folder(path.parent))
    try:
        with _closed(descriptor):
            yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def one_writer(*paths: Path) -> Iterator[None]:
    """Let one process at a time check what is at ``paths`` and write there; the others wait."""
    with ExitStack() as stack:
        for folder in sorted({path.parent.resolve() for path in paths}):
            if fcntl is not None:
                with suppress(OSError):  # some network file systems have no locks
                    descriptor = os.open(folder, os.O_RDONLY)
                    stack.callback(os.close, descriptor)
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def clear_leftovers(folder: Path) -> None:
    """Remove unfinished files and folders that a killed process left: they may hold secrets.

    Each is locked by whoever writes it, and the system drops the lock when the process ends.
    What is locked, is no unfinished file of this package, or belongs to another user stays. Where
    the system has no ``flock`` everything stays.
    """
    if fcntl is None:  # pragma: no cover - Windows
        return
    with suppress(OSError), os.scandir(folder) as entries:
        unfinished = [entry for entry in entries if _UNFINISHED.fullmatch(entry.name)]
        for entry in unfinished:
            if entry.is_symlink() or entry.stat().st_uid != os.getuid():
                continue
            if entry.is_dir():
                _remove_left(entry.path, lambda path: shutil.rmtree(path, ignore_errors=True))
            elif entry.is_file():
                _remove_left(entry.path, os.unlink)


def _remove_left(path: str, remove: Callable[[str], object]) -> None:
    """Remove an unfinished file or folder whose lock nobody holds, and hold it meanwhile."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with _closed(descriptor):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)


def _new_folder(parent: Path) -> tuple[int, str]:
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    return os.open(folder, os.O_RDONLY), folder


def _locked(make: Callable[[], tuple[int, str]]) -> tuple[int, str]:
    """Make a file or folder and lock it; again, if another process took it for a left one."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            descriptor, path = make()
            if fcntl is None:
                return descriptor, path
            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.lexists(path):
                return descriptor, path
            os.close(descriptor)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


@contextmanager
def _closed(descriptor: int) -> Iterator[None]:
    """Close a descriptor on leaving, which ends its lock."""
    try:
        yield
    finally:
        os.close(descriptor)
