"""A run's folder: when it may be made, and what may already lie in it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from remnant.errors import RecordError
from remnant.records.lock import LOCK_FILE

RECORD_FILE = "record.sqlite"
ARRAYS_FOLDER = "arrays"
REPORT_FILE = "report.html"

_OURS = ("record.sqlite.tmp*", "checkpoint*", ".tmp??????")
_TEMPORARY = re.compile(r"\.tmp[A-Za-z0-9]{6}|\..+\.tmp-\d+|checkpoint.*\.tmp")


def prepare(folder: Path) -> list[Path]:
    """Make the folder, or check that an existing one holds no files of another program.

    What an interrupted start of ours may leave is tolerated: a temporary database, the lock,
    ``arrays/``, ``checkpoint*``, ``.tmp??????`` of safetensors and ``report.html``.

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
    foreign = [name for name in contents if not _is_ours(name)]
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
    the folder, in ``arrays/`` and in the folders of saved models.
    """
    for pattern in ("*", "*/*", "*/*/*"):
        for path in folder.glob(pattern):
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


def _is_ours(name: str) -> bool:
    return name in (LOCK_FILE, ARRAYS_FOLDER, REPORT_FILE) or any(
        Path(name).match(pattern) for pattern in _OURS
    )
