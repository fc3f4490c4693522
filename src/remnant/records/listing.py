"""Which runs lie in a folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from remnant.errors import RecordError
from remnant.records.folder import RECORD_FILE, being_written
from remnant.records.outcomes import current
from remnant.records.store import Record

SHADOW_POOL = "shadow-pool"  # the question of records that runs take shadow models' scores from


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in a list of runs.

    Attributes:
        folder: Where it lies.
        question, plan_fingerprint, started: As recorded; None where the record is damaged.
        status: ``"complete"``, ``"running"`` (a process holds it now), ``"interrupted"`` (begun,
            and no process holds it), ``"pool"`` (shadow models' scores, which can always be
            topped up and so are never complete) or ``"damaged"``.
        verdict: PASS, FAIL or INCONCLUSIVE; None for a finding, and where there is none.
        headline: A finding's; None for a gate.
        groups: How many groups of models are done, such as ``"7 of 12"``; None where the record
            does not say.
        fault: What is wrong with a damaged record, or None.
    """

    folder: Path
    question: str | None
    status: str
    plan_fingerprint: str | None
    started: str | None
    verdict: str | None
    headline: str | None = None
    groups: str | None = None
    fault: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return asdict(self) | {"folder": str(self.folder)}


def list_runs(parent: str | Path) -> list[RunSummary]:
    """The runs in the folders directly under ``parent``, by folder name.

    A damaged record is listed with its fault; it does not hide the others.

    Raises:
        RecordError: ``parent`` is no folder or cannot be read.
    """
    parent = Path(parent)
    if not parent.exists():
        raise RecordError(f"There is no folder {parent}.", hint="Pass the folder that holds runs.")
    try:
        folders = sorted(path for path in parent.iterdir() if (path / RECORD_FILE).is_file())
    except OSError as error:
        raise RecordError(f"{parent} cannot be listed: {error.strerror}.") from error
    return [summarise(folder) for folder in folders]


def summarise(folder: Path) -> RunSummary:
    """One run's line in the list."""
    try:
        record = Record.open(folder)
        status: str = record.status
        if status == "running" and not being_written(folder):
            status = "pool" if record.question == SHADOW_POOL else "interrupted"
        row = current(record.results().get("verdict", {}), question=record.question)
        if not all(isinstance(row.get(name), str | None) for name in ("outcome", "headline")):
            raise RecordError(
                f"{folder} holds a malformed result 'verdict': its outcome is no text."
            )
        return RunSummary(
            folder=folder,
            question=record.question,
            status=status,
            plan_fingerprint=record.plan_fingerprint,
            started=record.started,
            verdict=row.get("outcome"),
            headline=row.get("headline"),
            groups=_groups(record),
        )
    except RecordError as error:
        return RunSummary(folder, None, "damaged", None, None, None, fault=str(error))


def _groups(record: Record) -> str | None:
    groups = record.execution.get("groups")
    return groups if isinstance(groups, str) else None
