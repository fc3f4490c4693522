"""What a record holds: arrays, results and the ledger, each put in one transaction."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, RecordError
from remnant.records import arrays, database, digests, ledger
from remnant.records.arrays import StoredArray
from remnant.records.folder import ARRAYS_FOLDER, record_file
from remnant.records.lock import WriterLock
from remnant.records.plain import to_json


class Contents:
    """The arrays, results and ledger of the run in a folder.

    Attributes:
        folder: Where the run lies.
    """

    def __init__(self, folder: Path, *, lock: WriterLock | None) -> None:
        self.folder = folder
        self._path = record_file(folder)
        self._lock = lock

    # -- arrays -----------------------------------------------------------------------------

    def put_array(self, name: str, array: ArrayLike) -> None:
        """Store an array under a name, in place of an older one of that name.

        Raises:
            InvalidInput: The name or the array's dtype cannot be stored.
            RecordError: The disk refuses, or the record is open for reading only.
        """
        checked = arrays.checked_array(array, name=arrays.checked_name(name))
        self._require_writer()
        others = {other.casefold(): other for other in self.array_names()}
        if others.get(name.casefold(), name) != name:
            raise InvalidInput(
                f"name={name!r} differs from {others[name.casefold()]!r} in case only."
            )
        old = self._stored(name)
        # The new file lies beside the old one until the database points to it.
        file = f"{name}.npy" if old is None or old.file != f"{name}.npy" else f"{name}~.npy"
        private = self._path.stat().st_mode & 0o077 == 0
        new = arrays.write(self.folder / ARRAYS_FOLDER, file, checked, private=private)
        if old is not None and old.sha256 == new.sha256:  # it keeps its name
            arrays.rename(self.folder / ARRAYS_FOLDER, new.file, old.file)
            return
        self._write(
            "INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?, ?, ?)",
            *(name, new.file, new.dtype, json.dumps(new.shape), new.bytes, new.sha256),
            row=("arrays", name),
        )
        if old is not None:
            with suppress(OSError):
                (self.folder / ARRAYS_FOLDER / old.file).unlink()

    def array(self, name: str) -> NDArray[Any]:
        """An array as it was stored; the file's SHA-256 is compared.

        Raises:
            RecordError: No such array, or its file is missing or damaged.
        """
        stored = self._stored(name)
        if stored is None:
            raise RecordError(
                f"{self.folder} holds no array {name!r}; it holds {_listed(self.array_names())}."
            )
        return arrays.read(self.folder / ARRAYS_FOLDER, stored)

    def array_names(self) -> list[str]:
        """Names of the arrays, sorted."""
        with database.reading(self._path) as connection:
            return [row[0] for row in connection.execute("SELECT name FROM arrays ORDER BY name")]

    def verify(self) -> None:
        """Compare the ledger and every array's file with their SHA-256, holding no array in memory.

        All else was compared when the record was opened.

        Raises:
            RecordError: Names what is missing or damaged first.
        """
        self.ledger()
        for name in self.array_names():
            stored = self._stored(name)
            if stored is not None:
                arrays.verify(self.folder / ARRAYS_FOLDER, stored)

    # -- results ----------------------------------------------------------------------------

    def put_result(self, name: str, value: Mapping[str, Any]) -> None:
        """Store a result as JSON, in place of an older one of that name.

        Raises:
            InvalidInput: It holds NaN, an infinity, something JSON cannot say, or the key
                ``"absent"``, which is ``put_absent``'s.
        """
        if "absent" in value:
            raise InvalidInput(
                f"result {name!r} has the key 'absent'.", hint="Use put_absent(name, reason)."
            )
        text = to_json(value, what=f"result {arrays.checked_name(name)}")
        self._write(
            "INSERT OR REPLACE INTO results VALUES (?, ?, NULL)", name, text, row=("results", name)
        )

    def put_absent(self, name: str, reason: str) -> None:
        """Say that something was not measured, and why."""
        if not reason.strip():
            raise InvalidInput(f"result {name!r} is absent without a reason.")
        checked = arrays.checked_name(name)
        statement = "INSERT OR REPLACE INTO results VALUES (?, NULL, ?)"
        self._write(statement, checked, reason, row=("results", name))

    def results(self) -> dict[str, dict[str, Any]]:
        """All results by name; one that was not measured is ``{"absent": reason}``."""
        with database.reading(self._path) as connection:
            rows = connection.execute("SELECT name, value, absent FROM results ORDER BY name")
            return {
                name: {"absent": absent} if value is None else from_json(value, self._path)
                for name, value, absent in rows
            }

    def result(self, name: str) -> dict[str, Any]:
        """One result; one that was not measured is ``{"absent": reason}``.

        Raises:
            RecordError: Nothing was recorded under that name, not even a reason.
        """
        results = self.results()
        if name not in results:
            raise RecordError(
                f"{self.folder} holds no result {name!r}; it holds {_listed(sorted(results))}."
            )
        return results[name]

    # -- the ledger -------------------------------------------------------------------------

    def put_ledger(self, rows: Mapping[str, ArrayLike]) -> None:
        """Store when each canary was used, in place of an older ledger.

        Args:
            rows: Columns ``member``, ``canary``, ``step``, ``uses``: whole numbers, one length.
        """
        self._require_writer()
        checked = ledger.checked_rows(rows)
        with database.writing(self._path) as connection:
            connection.execute("DELETE FROM ledger")
            connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", checked)
            digests.seal_ledger(connection)

    def ledger(self) -> dict[str, NDArray[np.int64]]:
        """The ledger's columns, ordered by member, canary and step; its digest is compared.

        Raises:
            RecordError: It is not as it was written.
        """
        with database.reading(self._path) as connection:
            columns = ledger.read(connection)
            digests.check_ledger(connection, columns, self._path)
        return columns

    # -- within -----------------------------------------------------------------------------

    def _stored(self, name: str) -> StoredArray | None:
        with database.reading(self._path) as connection:
            row = connection.execute(
                "SELECT file, dtype, shape, bytes, sha256 FROM arrays WHERE name = ?", (name,)
            ).fetchone()
        if row is None:
            return None
        file, dtype, shape, size, digest = row
        try:
            arrays.checked_name(file.replace("~", "_"))  # a path would lead out of the folder
            return StoredArray(file, dtype, _shape(shape), size, digest)
        except (ValueError, RecursionError) as error:
            raise RecordError(
                f"{self._path} is damaged: it describes an array in another form."
            ) from error

    def _one(self, query: str) -> Any:
        with database.reading(self._path) as connection:
            return connection.execute(query).fetchone()[0]

    def _write(self, statement: str, *values: object, row: tuple[str, str | int]) -> None:
        """Write one row, named by its table and key, and its digest."""
        self._require_writer()
        with database.writing(self._path) as connection:
            connection.execute(statement, values)
            digests.seal(connection, *row)

    def _require_writer(self) -> None:
        if self._lock is None:
            raise RecordError(
                f"{self.folder} is open for reading only.", hint="Use Record.open(..., write=True)."
            )


def from_json(text: str, path: Path) -> dict[str, Any]:
    """The JSON object the database holds, or a RecordError naming the file."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is damaged: it holds broken JSON.") from error
    if not isinstance(value, dict):
        raise RecordError(f"{path} is damaged: it holds JSON that is no object.")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _shape(text: str) -> tuple[int, ...]:
    """The lengths of an array's axes.

    Raises:
        ValueError: The text is no JSON list of whole numbers.
    """
    lengths = json.loads(text)
    if not isinstance(lengths, list) or not all(type(length) is int for length in lengths):
        raise ValueError("no list of whole numbers")
    return tuple(lengths)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if names else "none"
