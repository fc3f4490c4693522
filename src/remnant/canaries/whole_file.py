"""A file that appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from remnant.errors import InvalidInput


@contextmanager
def writing_whole(path: Path, *, mode: int) -> Iterator[BinaryIO]:
    """Write a new file beside ``path``, and let it take that place once it is complete.

    Guarantees:
        * An error or a kill while writing leaves what was at ``path`` as it was.
        * Nobody but the owner can read the file before it is complete; then it has ``mode``.

    Raises:
        InvalidInput: It cannot be written there.
    """
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a file.")
    try:
        handle, temporary = tempfile.mkstemp(prefix=".remnant-", dir=path.parent)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with open(handle, "wb") as file:
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
