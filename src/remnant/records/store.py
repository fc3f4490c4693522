"""A run on disk: ``record.sqlite`` and ``arrays/`` in one folder.

Written in small transactions, so that a run may be killed at any moment and gone on with; read by
report, gate, compare and replay, or by any SQLite tool.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from remnant.errors import InvalidInput, RecordError
from remnant.records import arrays, database
from remnant.records.arrays import OWNER_ONLY, StoredArray
from remnant.records.database import from_json, to_json
from remnant.records.folder import (
    ARRAYS_FOLDER,
    LOCK_FILE,
    RECORD_FILE,
    WriterLock,
    clear_leftovers,
    prepare,
    record_file,
    remove_checkpoints,
    undo,
)
from remnant.records.outcomes import current_results
from remnant.records.provenance import gives_secrets, is_utc, utc_now, without_seeds

Status = Literal["running", "complete"]
_RUN = ("run", 1)


class Record:
    """Everything one run produced.

    ``create``, ``open_or_create`` and ``open(folder, write=True)`` hold the run's lock until
    ``close`` or the end of the ``with`` block; ``open(folder)`` only reads and locks nothing.

    Guarantees:
        * A folder holds a whole record or none, also after a kill during creation.
        * An array or result is the old one or the new one, never something between.
        * No second process can write to a run that is being written.
        * A row that is not as it was written is an error, unless its digest was computed again.

    Attributes:
        folder: Where the run lies.
        question, plan, plan_fingerprint, data_fingerprint, started: As given at creation.
        version: Of its tables. In version 1 no digests were kept: a changed digit is not noticed.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with Record.create(
        ...     folder, question="forgetting", plan={"plan": {"seed": 0}}, plan_fingerprint="3f9c",
        ...     data_fingerprint="a71e", execution={"device": "cpu"}, provenance={},
        ... ) as record:
        ...     record.put_result("task", {"test_accuracy": 0.97})
        ...     record.finish()
        >>> Record.open(folder).result("task")
        {'test_accuracy': 0.97}
    """

    def __init__(self, folder: Path, *, lock: WriterLock | None) -> None:
        self.folder = folder
        self._path = record_file(folder)
        self._lock = lock
        with database.reading(self._path) as connection:
            self.version = database.check(connection, self._path)
            row = connection.execute(
                "SELECT question, plan, plan_fingerprint, data_fingerprint, started FROM run"
            ).fetchone()
        self.question: str = row[0]
        self.plan: dict[str, Any] = from_json(row[1], self._path)
        self.plan_fingerprint: str = row[2]
        self.data_fingerprint: str = row[3]
        self.started: str = self._time(row[4])

    @classmethod
    def create(
        cls,
        folder: str | Path,
        *,
        question: str,
        plan: Mapping[str, Any],
        plan_fingerprint: str,
        data_fingerprint: str,
        execution: Mapping[str, Any],
        provenance: Mapping[str, Any],
        started: str | None = None,
    ) -> Record:
        """Begin a run in a new or empty folder.

        Only the owner may read its database and arrays where the plan's seed gives secrets back.
        ``started`` is when what it records began (UTC), if that was before.

        Raises:
            RecordError: The folder cannot be used; nothing is left half-written.
            InvalidInput: A plan, execution or provenance is not plain JSON.
        """
        folder, now = Path(folder), started or utc_now()
        texts = (to_json(plan, what="plan"), to_json(execution, what="execution"))
        origin = to_json(provenance, what="provenance")

        def fill(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO run VALUES (1, ?, 'running', ?, ?, ?, ?, ?, NULL)",
                (question, plan_fingerprint, data_fingerprint, *texts, now),
            )
            connection.execute("INSERT INTO attempts VALUES (1, ?, ?)", (now, origin))
            database.seal(connection, "run", 1)
            database.seal(connection, "attempts", 1)

        with ExitStack() as on_failure:
            made = prepare(folder)
            on_failure.callback(undo, made)
            lock = WriterLock.acquire(folder)
            if made:
                on_failure.callback((folder / LOCK_FILE).unlink, missing_ok=True)
            on_failure.callback(lock.release)
            prepare(folder)  # again, now that nobody else can begin a run here
            clear_leftovers(folder)
            mode = OWNER_ONLY if gives_secrets(plan) else None
            database.create(folder / RECORD_FILE, fill, mode=mode)
            record = cls(folder, lock=lock)
            on_failure.pop_all()
        return record

    @classmethod
    def open(cls, folder: str | Path, *, write: bool = False) -> Record:
        """Open an existing run, to read or (``write=True``) to add to it.

        Raises:
            RecordError: No record there, damaged, a newer Remnant's, or being written.
        """
        folder = Path(folder)
        record_file(folder)
        if not write:
            return cls(folder, lock=None)
        lock = WriterLock.acquire(folder)
        try:
            record = cls(folder, lock=lock)
        except RecordError:
            lock.release()
            raise
        clear_leftovers(folder)
        return record

    @classmethod
    def open_or_create(
        cls,
        folder: str | Path,
        *,
        question: str,
        plan: Mapping[str, Any],
        plan_fingerprint: str,
        data_fingerprint: str,
        execution: Mapping[str, Any],
        provenance: Mapping[str, Any],
    ) -> Record:
        """Go on with the run in the folder if it is of the same plan and data, or begin one.

        A run gone on with keeps its own execution; the new process's provenance is added to
        ``attempts`` unless the run was complete already.

        Raises:
            RecordError: The folder holds another plan or other data, or as ``create``, ``open``.
        """
        if not (Path(folder) / RECORD_FILE).exists():
            return cls.create(
                folder,
                question=question,
                plan=plan,
                plan_fingerprint=plan_fingerprint,
                data_fingerprint=data_fingerprint,
                execution=execution,
                provenance=provenance,
            )
        origin = to_json(provenance, what="provenance")
        record = cls.open(folder, write=True)
        try:
            record._require_same(question, plan_fingerprint, data_fingerprint)
            if record.status == "running":
                record._add_attempt(origin)
        except RecordError:
            record.close()
            raise
        return record

    def discard_if_empty(self) -> None:
        """Remove a run that was begun and has nothing in it yet, so that nothing is left behind.

        A run with an array, a result or a checkpoint is kept, whatever state the checkpoint is in.
        """
        if self.array_names() or self.results() or any(self.folder.glob("checkpoint*")):
            return
        self.close()
        for path in (self.folder / RECORD_FILE, self.folder / LOCK_FILE):
            path.unlink(missing_ok=True)
        undo([self.folder / ARRAYS_FOLDER, self.folder])

    def remove_checkpoints(self) -> None:
        """Remove the checkpoints of trainings, once everything that they led to is stored.

        Raises:
            RecordError: The record is open for reading only.
        """
        self._require_writer()
        remove_checkpoints(self.folder)

    def close(self) -> None:
        """Give back the lock, where one is held."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def status(self) -> Status:
        """``"running"`` until ``finish`` was called, then ``"complete"``."""
        status: Status = self._one("SELECT status FROM run")
        return status

    @property
    def finished(self) -> str | None:
        """UTC time of ``finish``, or None."""
        finished: str | None = self._one("SELECT finished FROM run")
        return None if finished is None else self._time(finished)

    @property
    def execution(self) -> dict[str, Any]:
        """How it was computed: device, backend, split. May not change numbers."""
        return from_json(self._one("SELECT execution FROM run"), self._path)

    @property
    def provenance(self) -> dict[str, Any]:
        """Of the process that began the run, with the run's times and fingerprints."""
        return self.attempts()[0] | {
            "finished": self.finished,
            "plan_fingerprint": self.plan_fingerprint,
            "data_fingerprint": self.data_fingerprint,
        }

    def attempts(self) -> list[dict[str, Any]]:
        """Provenance and start of each process that worked on the run, the first one first."""
        with database.reading(self._path) as connection:
            rows = connection.execute(
                "SELECT started, provenance FROM attempts ORDER BY attempt"
            ).fetchall()
        if not rows:
            raise RecordError(f"{self._path} is damaged: the table attempts has no row.")
        attempts = [
            from_json(text, self._path) | {"started": self._time(started)} for started, text in rows
        ]
        for attempt in attempts:
            versions = attempt.get("versions") or {}
            if not isinstance(versions, dict) or not all(
                isinstance(version, str | None) for version in versions.values()
            ):
                raise RecordError(f"{self._path} is damaged: versions are recorded as no text.")
        return attempts

    def update_execution(self, changes: Mapping[str, Any]) -> None:
        """Set some keys of ``execution``, leaving the others."""
        merged = self.execution | dict(changes)
        self._write("UPDATE run SET execution = ?", to_json(merged, what="execution"), row=_RUN)

    def note_versions(self, versions: Mapping[str, str]) -> None:
        """Add versions of libraries to the provenance of the process that writes."""
        query = "SELECT attempt, provenance FROM attempts ORDER BY attempt DESC LIMIT 1"
        with database.reading(self._path) as connection:
            attempt, origin = connection.execute(query).fetchone()
        known = from_json(origin, self._path)
        known["versions"] = {**versions, **(known.get("versions") or {})}
        statement = "UPDATE attempts SET provenance = ? WHERE attempt = ?"
        text = to_json(known, what="provenance")
        self._write(statement, text, attempt, row=("attempts", attempt))

    def finish(self) -> None:
        """Mark the run complete; a run that is complete already keeps its time."""
        statement = "UPDATE run SET status = 'complete', finished = coalesce(finished, ?)"
        self._write(statement, utc_now(), row=_RUN)

    def summary(self) -> dict[str, Any]:
        """The record but its arrays' contents, and seeds that give secrets back, as plain JSON."""
        with database.reading(self._path) as connection:
            uses = database.ledger_summary(connection)
        stored = {name: self._stored(name) for name in self.array_names()}
        plan, attempts = self.plan, self.attempts()
        if gives_secrets(plan):
            plan = without_seeds(plan)
            attempts = [
                {key: value for key, value in attempt.items() if key != "seeds"}
                for attempt in attempts
            ]
        return {
            "folder": str(self.folder),
            "schema": self.version,
            "question": self.question,
            "status": self.status,
            "started": self.started,
            "finished": self.finished,
            "plan_fingerprint": self.plan_fingerprint,
            "data_fingerprint": self.data_fingerprint,
            "plan": plan,
            "execution": self.execution,
            "attempts": attempts,
            "results": current_results(self.results(), question=self.question),
            "arrays": {
                name: {"dtype": array.dtype, "shape": list(array.shape), "sha256": array.sha256}
                for name, array in stored.items()
                if array is not None
            },
            "ledger": uses,
        }

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
        checked = database.checked_ledger(rows)
        with database.writing(self._path) as connection:
            connection.execute("DELETE FROM ledger")
            connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", checked)
            database.seal_ledger(connection)

    def ledger(self) -> dict[str, NDArray[np.int64]]:
        """The ledger's columns, ordered by member, canary and step; its digest is compared.

        Raises:
            RecordError: It is not as it was written.
        """
        with database.reading(self._path) as connection:
            columns = database.read_ledger(connection)
            database.check_ledger(connection, columns, self._path)
        return columns

    # -- within -----------------------------------------------------------------------------

    def _require_same(self, question: str, plan_fingerprint: str, data_fingerprint: str) -> None:
        for what, theirs, ours in (
            ("another question", self.question, question),
            ("another plan", self.plan_fingerprint, plan_fingerprint),
            ("a run on other data", self.data_fingerprint, data_fingerprint),
        ):
            if theirs != ours:
                raise RecordError(
                    f"{self.folder} holds {what} ({theirs[:12]}, this one is {ours[:12]}).",
                    hint=self._other_version()
                    or "Choose another --out folder, or remove that run.",
                )

    def _other_version(self) -> str:
        """What to do with a run that another version began; nothing where this one did."""
        import remnant  # not at the top: the package imports this module while it loads

        begun = (self.attempts()[0].get("versions") or {}).get("remnant")
        if begun in (None, remnant.__version__):
            return ""
        return (
            f"Version {begun} began that run, and the same recipe may mean something else in "
            f"{remnant.__version__}: choose another --out folder, or finish it with {begun}."
        )

    def _time(self, text: str) -> str:
        """The text, if it is a time as ``utc_now`` writes it."""
        if not is_utc(text):
            raise RecordError(f"{self._path} is damaged: it holds a time that is none.")
        return text

    def _add_attempt(self, origin: str) -> None:
        attempt = self._one("SELECT max(attempt) + 1 FROM attempts")
        statement = "INSERT INTO attempts VALUES (?, ?, ?)"
        self._write(statement, attempt, utc_now(), origin, row=("attempts", attempt))

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
            database.seal(connection, *row)

    def _require_writer(self) -> None:
        if self._lock is None:
            raise RecordError(
                f"{self.folder} is open for reading only.", hint="Use Record.open(..., write=True)."
            )


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
