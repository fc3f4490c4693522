"""Everything a run produced, on disk: one SQLite file and its arrays per run."""

from remnant.records.database import SCHEMA_VERSION
from remnant.records.listing import RunSummary, list_runs
from remnant.records.outcomes import (
    EXIT_CODES,
    FINDINGS,
    OUTCOMES,
    Outcome,
    current,
    exit_code,
    finding_row,
    gate_row,
)
from remnant.records.provenance import gather as gather_provenance
from remnant.records.store import Record

__all__ = [
    "EXIT_CODES",
    "FINDINGS",
    "OUTCOMES",
    "SCHEMA_VERSION",
    "Outcome",
    "Record",
    "RunSummary",
    "current",
    "exit_code",
    "finding_row",
    "gate_row",
    "gather_provenance",
    "list_runs",
]
