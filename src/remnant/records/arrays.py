"""Arrays on disk as ``.npy``, written whole or not at all, never through pickle."""

from __future__ import annotations

import hashlib
import io
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, RecordError, write_error
from remnant.records.database import sync_folder

OWNER_ONLY = 0o600  # mode of the files of a run whose seed gives secrets back
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_KINDS = "biufcSU"
_LOST = "Restore the file from a copy, or remove the run's folder and run it again."


@dataclass(frozen=True, slots=True)
class StoredArray:
    """What the record knows of an array's file.

    Attributes:
        file: Name inside ``arrays/``.
        dtype: NumPy's spelling, such as ``"<f8"``.
        shape: Lengths of the axes.
        bytes: Size of the file.
        sha256: Digest of the file, as ``sha256sum`` prints it.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    sha256: str


class _Digest:
    """Passes bytes on to a file and digests them on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self.sha256.update(data)
        self.bytes += len(data)
        return self._file.write(data)


def checked_name(name: str) -> str:
    """The name, if it can be a file's on any system.

    Raises:
        InvalidInput: It is empty, long, begins with ``.`` or ``-``, or has other characters.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidInput(
            f"name={name!r} is not a usable name.",
            hint="Use 1 to 100 of A-Z a-z 0-9 _ . - and begin with a letter, digit or _.",
        )
    return name


def checked_array(array: ArrayLike, *, name: str) -> NDArray[Any]:
    """The array in C order, if it holds numbers, booleans or fixed-width text.

    Raises:
        InvalidInput: It holds objects, which would need pickle, or fields.
    """
    stored = np.asarray(array, order="C")
    if stored.dtype.kind not in _KINDS:
        raise InvalidInput(
            f"array {name!r} has dtype {stored.dtype}; only numbers, booleans and text are stored."
        )
    return stored


def write(folder: Path, file: str, array: NDArray[Any], *, private: bool = False) -> StoredArray:
    """Write the array under a temporary name, flush it to disk, then rename it.

    Args:
        folder: Made if needed.
        file: Its name.
        array: Its contents.
        private: Whether only the owner may read it.

    Raises:
        RecordError: The disk refuses.
    """
    temporary = folder / f".{file}.tmp-{os.getpid()}"
    try:
        folder.mkdir(exist_ok=True)
        with open(temporary, "wb") as raw:
            if private:
                os.chmod(temporary, OWNER_ONLY)
            digest = _Digest(raw)
            np.lib.format.write_array(digest, array, allow_pickle=False)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(temporary, folder / file)
        sync_folder(folder)
    except OSError as error:
        raise write_error(folder / file, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return StoredArray(file, array.dtype.str, array.shape, digest.bytes, digest.sha256.hexdigest())


def rename(folder: Path, file: str, name: str) -> None:
    """Move an array's file into the place of another one.

    Raises:
        RecordError: The disk refuses.
    """
    try:
        os.replace(folder / file, folder / name)
        sync_folder(folder)
    except OSError as error:
        raise write_error(folder / name, error) from error


def read(folder: Path, stored: StoredArray) -> NDArray[Any]:
    """Read an array and see that it is the one that was stored.

    Raises:
        RecordError: The file is missing, cut short, another array's, or of another digest.
    """
    path = folder / stored.file
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise RecordError(f"{path} is missing.", hint=_LOST) from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}.") from error
    _check(path, stored, len(content), hashlib.sha256(content).hexdigest())
    try:
        array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except ValueError as error:
        raise RecordError(f"{path} is damaged: it is not a NumPy array.", hint=_LOST) from error
    if array.dtype.str != stored.dtype or array.shape != stored.shape:
        raise RecordError(
            f"{path} is damaged: {array.dtype.str} of shape {array.shape}, "
            f"{stored.dtype} of shape {stored.shape} was written.",
            hint=_LOST,
        )
    return array


def verify(folder: Path, stored: StoredArray) -> None:
    """See that a file is the one that was stored, without holding it in memory.

    Raises:
        RecordError: The file is missing, cut short, another array's, or of another digest.
    """
    path = folder / stored.file
    try:
        size = path.stat().st_size
        digest = file_sha256(path) if size == stored.bytes else ""
    except FileNotFoundError as error:
        raise RecordError(f"{path} is missing.", hint=_LOST) from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}.") from error
    _check(path, stored, size, digest)


def _check(path: Path, stored: StoredArray, size: int, digest: str) -> None:
    if size != stored.bytes:
        raise RecordError(
            f"{path} is damaged: {size} bytes, {stored.bytes} were written.", hint=_LOST
        )
    if digest != stored.sha256:
        raise RecordError(f"{path} is damaged: its SHA-256 is not the one recorded.", hint=_LOST)


def file_sha256(path: Path) -> str:
    """Digest of a file, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as raw:
        while piece := raw.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
