"""Runs a study in a record: skips a completed run and resumes an interrupted one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from remnant.data import AuditData
from remnant.data.own_code import explained
from remnant.data.own_files import Origin
from remnant.errors import RemnantError
from remnant.plans import Ledger
from remnant.progress import Progress as Progress
from remnant.records import Record, gather_provenance
from remnant.records.folder import RECORD_FILE
from remnant.records.provenance import command_facts, used_libraries
from remnant.studies.own_code import check_same_code
from remnant.studies.shared.classifiers import load_data
from remnant.studies.shared.machine import device_name
from remnant.studies.shared.settings import Classifiers, Execution

S = TypeVar("S", bound=Classifiers)


class Recorded(Protocol):
    """What a record keeps of a study."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything that changes numbers."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data, its question included."""
        ...


def run_in_record(
    study: Recorded,
    folder: Path,
    execution: Execution,
    *,
    data_fingerprint: str,
    seeds: dict[str, int],
    work: Callable[[Record], None],
    origins: Iterable[Origin | None] = (),
) -> None:
    """Open the study's record, new or cut short, and do the work in it.

    Args:
        study, folder, execution: What is run, where, and how.
        data_fingerprint: A digest of the data, and of the user's own files.
        seeds: Every seed by name.
        work: Trains, probes and measures.
        origins: The user's own files that data were read from; the provenance names them.

    Raises:
        RecordError: The disk is full, or a file of the run is damaged. What is stored stays, also
            checkpoints, and running the same study again continues from there.
        RemnantError: Anything else the user can fix. A folder in which nothing was stored yet then
            holds nothing new.
    """
    plain = study.to_dict()
    if (folder / RECORD_FILE).exists():
        check_same_code(Record.open(folder).plan, plain)
    with Record.open_or_create(
        folder,
        question=plain["question"],
        plan=plain,
        plan_fingerprint=study.fingerprint,
        data_fingerprint=data_fingerprint,
        execution=execution.facts(),
        provenance=gather_provenance(
            device=device_name(execution.device), threads=execution.threads(), seeds=seeds
        )
        | _own_files(origins)
        | command_facts(),
    ) as record:
        if record.status == "complete":
            record.verify()
            record.remove_checkpoints()  # a kill after the last result may have left them
            return
        try:
            with explained(execution.trusted):
                work(record)
            record.note_versions(used_libraries())
        except RemnantError:
            record.discard_if_empty()
            raise


def run_on_images(
    study: S,
    folder: Path,
    execution: Execution,
    progress: Progress | None,
    *,
    check: Callable[[S, AuditData, Execution], None],
    work: Callable[[S, AuditData, Execution, Record, Progress | None], None],
) -> None:
    """Load a classifier study's images, check it, and do its work in its record.

    Args:
        study, folder, execution, progress: As the room's ``run_`` function gets them.
        check: Refuses what cannot be planted or trained, before anything is written.
        work: Trains, probes and measures. It gets study, data, execution, record and progress.

    Raises:
        RemnantError: Anything the user can fix; the folder then holds nothing new.
    """
    data = load_data(study, execution)
    check(study, data, execution)
    run_in_record(
        study,
        folder,
        execution,
        data_fingerprint=data.fingerprint,
        seeds={"plan": study.plan.seed, "data": study.data.seed},
        origins=[data.origin],
        work=lambda record: work(study, data, execution, record, progress),
    )


def _own_files(origins: Iterable[Origin | None]) -> dict[str, Any]:
    """Return what the provenance says of the user's own files; of several, all files."""
    made: dict[str, Any] = {}
    for origin in filter(None, origins):
        files = made.get("data_files", {}) | dict(origin.files)
        made |= origin.to_dict() | {"data_files": files}
    return made


def joint_fingerprint(fingerprints: Iterable[str]) -> str:
    """Return the fingerprint of several texts together; of one distinct text, its own.

    Example:
        >>> joint_fingerprint(["0a1b", "0a1b"])
        '0a1b'
    """
    distinct = list(dict.fromkeys(fingerprints))
    if len(distinct) == 1:
        return distinct[0]
    return hashlib.sha256("".join(distinct).encode()).hexdigest()[:16]


def put_ledger(record: Record, ledger: Ledger) -> None:
    """Put the uses of the canaries into the record."""
    columns = ("member", "canary", "step", "uses")
    record.put_ledger({name: getattr(ledger, name) for name in columns})
