"""Runs a study of any question: load, plant, record, jobs, ledger, measure, finish.

What differs between questions is in the ``run.py`` of their rooms, each with two functions:
``prepare(study, execution, progress)`` returns a ``Prepared``, and ``estimate(study, execution)``
times a few steps. Both refuse what cannot be planted or trained, and write nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from remnant.data.own_code import explained
from remnant.data.own_files import Origin
from remnant.errors import RemnantError
from remnant.plans import Ledger
from remnant.progress import Progress
from remnant.records import Record, gather_provenance
from remnant.records.folder import RECORD_FILE
from remnant.records.provenance import command_facts, used_libraries
from remnant.studies.own_code import check_same_code, with_digests
from remnant.studies.registry import QUESTIONS, load
from remnant.studies.shared.settings import Execution
from remnant.studies.shared.study import Study


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A study that is loaded, planted and checked, and has written nothing yet.

    Attributes:
        data_fingerprint: A digest of the data, and of the user's own files.
        seeds: Every seed by name.
        origins: The user's own files that data were read from; the provenance names them.
        work: Trains, probes and measures, and puts what it finds into the record. It skips what
            the record holds already.
        ledger: When each canary is used; None where the study has none, or ``work`` puts it.
        afterwards: Called with the folder of the complete record.
    """

    data_fingerprint: str
    seeds: Mapping[str, int]
    origins: Iterable[Origin | None]
    work: Callable[[Record], None]
    ledger: Ledger | None = None
    afterwards: Callable[[Path], None] | None = None


class Room(Protocol):
    """The module of the registry's ``run``."""

    def prepare(self, study: Any, execution: Execution, progress: Progress | None) -> Prepared:
        """Load, plant and check a study.

        Raises:
            RemnantError: Anything that the user can fix.
        """
        ...

    def estimate(self, study: Any, execution: Execution) -> dict[str, Any]:
        """Time a few steps of a study and return what the whole run would take."""
        ...


def run_study(
    study: Study, folder: Path, execution: Execution, *, progress: Progress | None = None
) -> None:
    """Run a study in ``folder``. Skips a completed run and resumes an interrupted one.

    Args:
        study: Of any question.
        folder: Where the record is written.
        execution: Device, data folder and what else does not change numbers.
        progress: Called with the name of a stage, the steps done and the steps in all.

    Raises:
        RecordError: The disk is full, or a file of the run is damaged. What is stored stays, also
            checkpoints, and running the same study again continues from there.
        RemnantError: Anything else that the user can fix. A folder in which nothing was stored yet
            then holds nothing new.
    """
    study = with_digests(study, execution)
    with explained(execution.trusted):
        prepared = _room(study).prepare(study, execution, progress)
    _run_in_record(study, folder, execution, prepared)
    if prepared.afterwards is not None:
        prepared.afterwards(folder)


def estimate_study(study: Study, execution: Execution) -> dict[str, Any]:
    """Time a few steps of a study and return what the whole run would take; writes nothing."""
    study = with_digests(study, execution)
    with explained(execution.trusted):
        return _room(study).estimate(study, execution)


def _room(study: Study) -> Room:
    room: Room = load(QUESTIONS[study.QUESTION].run)
    return room


def _run_in_record(study: Study, folder: Path, execution: Execution, prepared: Prepared) -> None:
    """Do the work in the study's record, new or cut short; leave a complete one as it is."""
    plain = study.to_dict()
    if (folder / RECORD_FILE).exists():
        check_same_code(Record.open(folder).plan, plain)
    with Record.open_or_create(
        folder,
        question=plain["question"],
        plan=plain,
        plan_fingerprint=study.fingerprint,
        data_fingerprint=prepared.data_fingerprint,
        execution=execution.facts(),
        provenance=gather_provenance(
            device=device_name(execution.device),
            threads=execution.threads(),
            seeds=dict(prepared.seeds),
        )
        | _own_files(prepared.origins)
        | command_facts(),
    ) as record:
        if record.status == "complete":
            record.verify()
            record.remove_checkpoints()  # a kill after the last result may have left them
            return
        try:
            with explained(execution.trusted):
                prepared.work(record)
            if prepared.ledger is not None:
                put_ledger(record, prepared.ledger)
            record.finish()
            record.remove_checkpoints()
            record.note_versions(used_libraries())
        except RemnantError:
            record.discard_if_empty()
            raise


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


class StepClock:
    """Notes when each step was done, also on a GPU, which is asked to finish it first."""

    def __init__(self, device: str) -> None:
        self.times: list[float] = []
        self._waits = device.startswith("cuda")

    def __call__(self, _: int) -> None:
        """Note that one more step is done."""
        if self._waits:
            torch.cuda.synchronize()
        self.times.append(time.perf_counter())

    @property
    def typical(self) -> float:
        """Seconds of a step: the median of those between two notes."""
        return statistics.median(b - a for a, b in itertools.pairwise(self.times))


def device_name(device: str) -> str:
    """Return the device with the name of its GPU, where it is one."""
    if device.startswith("cuda") and torch.cuda.is_available():
        return f"{device} ({torch.cuda.get_device_name()})"
    return device
