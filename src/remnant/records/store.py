"""A run on disk: ``record.sqlite`` and ``arrays/`` in one folder.

Written in small transactions, so that a run may be killed at any moment and gone on with; read by
report, gate, compare and replay, or by any SQLite tool.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from remnant.errors import RecordError
from remnant.records import database, digests, ledger, schema
from remnant.records.contents import Contents, from_json
from remnant.records.folder import (
    ARRAYS_FOLDER,
    RECORD_FILE,
    clear_leftovers,
    prepare,
    record_file,
    remove_checkpoints,
    undo,
)
from remnant.records.lock import LOCK_FILE, WriterLock
from remnant.records.outcomes import current_results
from remnant.records.plain import to_json
from remnant.records.provenance import is_utc, utc_now
from remnant.records.secret_seeds import OWNER_ONLY, gives_secrets, without_seeds

Status = Literal["running", "complete"]
_RUN = ("run", 1)


class Record(Contents):
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
        super().__init__(folder, lock=lock)
        with database.reading(self._path) as connection:
            self.version = schema.check(connection, self._path)
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
            digests.seal(connection, "run", 1)
            digests.seal(connection, "attempts", 1)

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
            uses = ledger.summary(connection)
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
