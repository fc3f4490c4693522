"""The result of a command that measures, as a record with its report in a folder of its own.

A command measures first and writes at the end, all at once: a folder holds a whole record or none.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from remnant.errors import RecordError, write_error
from remnant.plans.plan import fingerprint
from remnant.records import Record, gather_provenance
from remnant.records.database import plain
from remnant.records.folder import LOCK_FILE, RECORD_FILE, REPORT_FILE, WriterLock, undo
from remnant.records.provenance import (
    command_facts,
    file_digest,
    joint_digest,
    running_command,
    used_libraries,
)
from remnant.records.typed import Result, put_result
from remnant.studies.reporting import PRIVATE, REVEALED, write_report

_UNFINISHED = ".remnant-unfinished-"
_OWNER_FILE, _OWNER_FOLDER = 0o600, 0o700
_DIGITS = 16  # of a digest, as of a plan's fingerprint


def check_command_folder(folder: str | Path) -> None:
    """Refuse a folder in which no record can be written, before anything is measured.

    A record is never replaced: the folder must be new or empty. What a killed process left half
    written in it does not count.

    Raises:
        RecordError: It is a file, holds a record or other files, or cannot be written.
    """
    folder = Path(folder)
    try:
        if folder.exists() and not folder.is_dir():
            raise RecordError(f"{folder} is a file, not a folder.", hint="Name a new folder.")
        names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
        place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    except OSError as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"{folder} cannot be used: {error.strerror}.") from error
    if RECORD_FILE in names:
        raise RecordError(
            f"{folder} already holds a record.", hint="Name a new folder, or remove that one."
        )
    others = [name for name in names if name != LOCK_FILE and not name.startswith(_UNFINISHED)]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise RecordError(
            f"{folder} is not empty: it holds {others[0]}{more} but no record.",
            hint="Name a new or an empty folder.",
        )
    if not place.is_dir():
        raise RecordError(f"{folder} cannot be made: {place} is a file.", hint="Name another.")
    try:  # permissions alone do not say it: a file system may be read-only, or no real one
        os.rmdir(tempfile.mkdtemp(prefix=_UNFINISHED, dir=place))
    except OSError as error:
        raise RecordError(
            f"{folder} cannot be written: in {place}, {error.strerror or error}.",
            hint="Name another folder.",
        ) from error


def write_command_record(
    folder: str | Path,
    *,
    question: str,
    plan: Mapping[str, Any],
    result: Result,
    arrays: Mapping[str, ArrayLike] | None = None,
    files: Mapping[str, str] | None = None,
    data: Any = None,
    device: str = "cpu",
    execution: Mapping[str, Any] | None = None,
    seeds: Mapping[str, int] | None = None,
    private: bool = False,
    reveal: bool = False,
) -> Path:
    """Write the result of a command as a record with its report, and return the report's path.

    Everything is written beside its place and moved there at the end. An error or an interrupt
    leaves the folder as it was.

    Args:
        folder: A new or an empty folder; see ``check_command_folder``.
        question: Its name in ``remnant.studies.registry``.
        plan: What was asked for, as plain data: what changes numbers. Tables named ``model``,
            ``data`` or ``text`` are shown on the first screen of the report. Contains no secret.
        result: Of the class that the registry names for the question.
        arrays: By name; the page reads them with ``run.array(name)``.
        files: Texts of more files in the folder, by name, such as a table in CSV.
        data: Digests of what was read, as plain data, for the fingerprint of the data.
        device: Where models ran.
        execution: What else does not change numbers, as plain data.
        seeds: Every seed by name.
        private: Whether only the owner may read the files, because they describe training samples.
        reveal: Whether the result shows secrets: the files are private, and the page says so.

    Raises:
        RecordError: The folder cannot be used.
        InvalidInput: Plan or result are not plain JSON.
    """
    target = Path(folder).resolve()
    recorded_plan = plain(_in_unicode({"question": question, **plan}), what="plan")
    data_fingerprint = fingerprint(plain(_in_unicode(data), what="data"))
    how = {"device": device, **(execution or {})}
    how |= {PRIVATE: True} if private or reveal else {}
    how |= {REVEALED: True} if reveal else {}
    command = running_command()
    provenance = gather_provenance(device=device, threads=_threads(), seeds=seeds or {})
    provenance |= command_facts(folders=True)
    provenance["versions"] = used_libraries() | provenance["versions"]
    with _unfinished(target, private=private or reveal) as inner:
        with Record.create(
            inner,
            question=question,
            plan=recorded_plan,
            plan_fingerprint=fingerprint(recorded_plan),
            data_fingerprint=data_fingerprint,
            execution=how,
            provenance=_in_unicode(provenance),
            started=None if command is None else command.started,
        ) as record:
            for name, array in (arrays or {}).items():
                record.put_array(name, array)
            put_result(record, _in_unicode(result))
            record.finish()
        for name, text in (files or {}).items():
            (inner / name).write_text(text, encoding="utf-8", newline="")
        write_report(inner)
    return Path(folder) / REPORT_FILE


def weights_digest(path: str | Path) -> str:
    """Return a digest of a file, or of the safetensors files in a folder; each is read once.

    Raises:
        RecordError: A file cannot be read.
    """
    path = Path(path)
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    return (file_digest(files[0]) if len(files) == 1 else joint_digest(files))[:_DIGITS]


def array_digests(**arrays: Any) -> dict[str, str]:
    """Return a digest of each array by its name, for the fingerprint of the data."""
    return {
        name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:_DIGITS]
        for name, array in arrays.items()
    }


def _in_unicode(value: Any) -> Any:
    """The value with codes for what is no Unicode, such as bytes in the name of a file."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_in_unicode(name): _in_unicode(inner) for name, inner in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_in_unicode, value))
    if isinstance(value, list | tuple):
        return type(value)(map(_in_unicode, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field.name for field in dataclasses.fields(value))
        return dataclasses.replace(
            value, **{name: _in_unicode(getattr(value, name)) for name in fields}
        )
    return value


@contextmanager
def _unfinished(folder: Path, *, private: bool) -> Iterator[Path]:
    """A folder of the same name inside ``folder``, whose contents are moved to it at the end."""
    check_command_folder(folder)
    made: list[Path] = []
    try:
        for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            path.mkdir()
            made.insert(0, path)
        if private and made:
            made[0].chmod(_OWNER_FOLDER)
        lock = WriterLock.acquire(folder)
    except OSError as error:
        undo(made)
        raise error if isinstance(error, RecordError) else write_error(folder, error) from error
    try:
        for leftover in folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        inner = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder)) / folder.name
        yield inner
        if private:
            _for_the_owner(inner)
        check_command_folder(folder)  # again, now that nobody else can write here
        # The database last: a folder without it holds no record.
        moved = {path.name for path in inner.iterdir()} - {LOCK_FILE, RECORD_FILE}
        for name in (*sorted(moved), RECORD_FILE):
            os.rename(inner / name, folder / name)
    except OSError as error:
        raise error if isinstance(error, RecordError) else write_error(folder, error) from error
    finally:
        for leftover in folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        if not (folder / RECORD_FILE).exists():
            with suppress(OSError):
                (folder / LOCK_FILE).unlink(missing_ok=True)
            undo(made)
        lock.release()


def _for_the_owner(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(_OWNER_FOLDER if path.is_dir() else _OWNER_FILE)


def _threads() -> int:
    """Threads used for arithmetic, by PyTorch where it is loaded."""
    torch = sys.modules.get("torch")
    return (os.cpu_count() or 1) if torch is None else int(torch.get_num_threads())
